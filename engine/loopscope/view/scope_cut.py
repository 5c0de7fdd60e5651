"""Name scopes as groups: a cut through the scope tree that folds similar scopes alike."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from loopscope.ir.model import LayerId
from loopscope.view.drawing_order import cycle_closing_arcs
from loopscope.view.reading_order import SEPARATOR, Inputs

_NUMBER = re.compile(r"\d+")
_MAX_UPWARD_LINES = 8
_MAX_LINES_PER_BOX = 6
"""Limits on upward lines, and on lines per box, for scopes as groups."""


def scope_prefixes(label: str) -> Iterator[str]:
    """Yield the scopes that a node's label belongs to, outermost first.

    >>> list(scope_prefixes("encoder%2Flayer.1%2Fadd"))
    ['encoder%2F', 'encoder%2Flayer.', 'encoder%2Flayer.1%2F']
    """
    for match in SEPARATOR.finditer(label):
        if match.start() > 0 and match.end() < len(label):
            yield label[: match.end()]


def scope_cut(prefix: str, names: Sequence[str], max_boxes: int) -> tuple[str, ...]:
    """Return the finest cut of the scopes below ``prefix`` with at most ``max_boxes`` boxes; empty
    if none fits.

    Scopes that differ in numbers only, such as ``layers.0/`` to ``layers.23/``, are opened
    together, and so are their contents.

    >>> names = [f"net/layers.{n}/{part}/{op}" for n in range(3) for part in "ab" for op in "xy"]
    >>> scope_cut("", [name.replace("/", "%2F") for name in names], 5)
    ('net%2Flayers.0%2F', 'net%2Flayers.1%2F', 'net%2Flayers.2%2F')
    """
    size: dict[str, int] = defaultdict(int)
    inside: dict[str, dict[str, None]] = defaultdict(dict)
    loose: dict[str, int] = defaultdict(int)
    for name in names:
        enclosing = prefix
        for scope in scope_prefixes(name):
            if len(scope) > len(prefix):
                size[scope] += 1
                inside[enclosing][scope] = None
                enclosing = scope
        loose[enclosing] += 1
    visible = len(inside[prefix]) + loose[prefix]
    if not inside[prefix] or visible > max_boxes:
        return ()
    cut = dict(inside[prefix])
    waiting = _families(cut)
    while waiting:
        similar = waiting.pop(
            max(range(len(waiting)), key=lambda index: max(size[scope] for scope in waiting[index]))
        )
        added = sum(len(inside[scope]) + loose[scope] - 1 for scope in similar)
        if visible + added <= max_boxes:
            visible += added
            inner_scopes = {scope: None for outer in similar for scope in inside[outer]}
            cut = {scope: None for scope in (*cut, *inner_scopes) if scope not in similar}
            # The contents of similar scopes are opened in all of them, at one level.
            waiting += (
                ([list(inner_scopes)] if inner_scopes else [])
                if len(similar) > 1
                else _families(inner_scopes)
            )
    return tuple(sorted(cut))


def _families(scopes: Mapping[str, None]) -> list[list[str]]:
    """Group scopes whose names differ in numbers only."""
    families: dict[str, list[str]] = defaultdict(list)
    for scope in scopes:
        families[_NUMBER.sub("#", scope)].append(scope)
    return list(families.values())


def is_readable_cut(
    label: Mapping[LayerId, str], inputs: Inputs, layers: Sequence[LayerId], scopes: Sequence[str]
) -> bool:
    """Return True if boxes for these scopes make a picture from top to bottom with few lines."""
    box = {layer: box_of(label[layer], scopes) for layer in layers}
    pairs = (
        (box[source], box[layer]) for layer in layers for source in inputs[layer] if source in box
    )
    between = list(dict.fromkeys((source, target) for source, target in pairs if source != target))
    boxes = list(dict.fromkeys(box.values()))
    return len(cycle_closing_arcs(boxes, between)) <= max(
        _MAX_UPWARD_LINES, len(boxes) // 8
    ) and len(between) <= _MAX_LINES_PER_BOX * len(boxes)


def box_of(label: str, scopes: Sequence[str]) -> str:
    """Return the scope that a label begins with, or the label itself.

    ``scopes`` are sorted, and none is a prefix of another.

    >>> box_of("b/x", ["a/", "b/"]), box_of("c", ["a/", "b/"])
    ('b/', 'c')
    """
    index = bisect.bisect_right(scopes, label)
    return scopes[index - 1] if index and label.startswith(scopes[index - 1]) else label
