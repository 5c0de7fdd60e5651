"""Name scopes as groups: the cut through their tree at one level, so that what is alike is
folded alike.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from loopscope.ir.model import LayerId
from loopscope.view.drawing_order import turned
from loopscope.view.reading_order import SEPARATOR, Inputs

_NUMBER = re.compile(r"\d+")
_MOST_TURNED = 8
_MOST_LINES = 6
"""Name scopes that would add upward lines, or more lines for each box, are not drawn as groups."""


def scope_prefixes(label: str) -> Iterator[str]:
    """The scopes that a node's label lies in, outermost first.

    >>> list(scope_prefixes("encoder%2Flayer.1%2Fadd"))
    ['encoder%2F', 'encoder%2Flayer.', 'encoder%2Flayer.1%2F']
    """
    for match in SEPARATOR.finditer(label):
        if match.start() > 0 and match.end() < len(label):
            yield label[: match.end()]


def scope_cut(prefix: str, names: Sequence[str], most: int) -> tuple[str, ...]:
    """The finest cut of the tree of scopes below ``prefix`` that leaves at most ``most`` boxes;
    empty when there is none.

    Scopes that differ in numbers only, such as ``layers.0/`` to ``layers.23/``, are opened together
    or not at all, as is what they hold.

    >>> names = [f"net/layers.{layer}/{part}/{op}" for layer in range(3) for part in "ab" for op in ("x", "y")]
    >>> scope_cut("", [name.replace("/", "%2F") for name in names], 5)
    ('net%2Flayers.0%2F', 'net%2Flayers.1%2F', 'net%2Flayers.2%2F')
    """
    size: dict[str, int] = defaultdict(int)
    inside: dict[str, dict[str, None]] = defaultdict(dict)
    loose: dict[str, int] = defaultdict(int)
    for name in names:
        around = prefix
        for scope in scope_prefixes(name):
            if len(scope) > len(prefix):
                size[scope] += 1
                inside[around][scope] = None
                around = scope
        loose[around] += 1
    visible = len(inside[prefix]) + loose[prefix]
    if not inside[prefix] or visible > most:
        return ()
    cut = dict(inside[prefix])
    waiting = _families(cut)
    while waiting:
        together = waiting.pop(
            max(range(len(waiting)), key=lambda at: max(size[scope] for scope in waiting[at]))
        )
        more = sum(len(inside[scope]) + loose[scope] - 1 for scope in together)
        if visible + more <= most:
            visible += more
            below = {scope: None for outer in together for scope in inside[outer]}
            cut = {scope: None for scope in (*cut, *below) if scope not in together}
            # What is inside layers that are alike is opened in all of them, at one level.
            waiting += ([list(below)] if below else []) if len(together) > 1 else _families(below)
    return tuple(sorted(cut))


def _families(scopes: Mapping[str, None]) -> list[list[str]]:
    """Scopes whose names differ in numbers only."""
    found: dict[str, list[str]] = defaultdict(list)
    for scope in scopes:
        found[_NUMBER.sub("#", scope)].append(scope)
    return list(found.values())


def flows(
    label: Mapping[LayerId, str], inputs: Inputs, layers: Sequence[LayerId], scopes: Sequence[str]
) -> bool:
    """Whether boxes for these scopes make a picture that is read from above to below, with few
    lines back and forth.
    """
    box = {layer: box_of(label[layer], scopes) for layer in layers}
    pairs = (
        (box[source], box[layer]) for layer in layers for source in inputs[layer] if source in box
    )
    between = list(dict.fromkeys((source, target) for source, target in pairs if source != target))
    boxes = list(dict.fromkeys(box.values()))
    return len(turned(boxes, between)) <= max(_MOST_TURNED, len(boxes) // 8) and len(
        between
    ) <= _MOST_LINES * len(boxes)


def box_of(label: str, scopes: Sequence[str]) -> str:
    """The one of these scopes, sorted and none the beginning of another, with which a label begins;
    itself when there is none.

    >>> box_of("b/x", ["a/", "b/"]), box_of("c", ["a/", "b/"])
    ('b/', 'c')
    """
    at = bisect.bisect_right(scopes, label)
    return scopes[at - 1] if at and label.startswith(scopes[at - 1]) else label
