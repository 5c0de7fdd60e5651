"""Groups that divide a graph with too many nodes: name scopes if there are any, else repeated
blocks, else stretches.

Name scopes are a cut through the scope tree that folds similar scopes alike.

The address of a block contains its title: ``main/*~A3.24~120..163`` is block 3 of 24 blocks A,
``main/*~A24~34..1066`` is all of them as one box, and ``main/*~A1-32.1000~0..3200`` is the first 32
of 1000. The numbers after the last ``~`` are positions among the nodes that the text before them
names. The number of stars selects the text that decides a node's scope (``ReadingOrder.homes``).
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ir.model import LayerId, ModelGraph
from loopscope.view.node_order import (
    SEPARATOR,
    Inputs,
    ReadingOrder,
    cycle_closing_arcs,
    reading_order,
)
from loopscope.view.repeats import Repeat, kinds, repeats

MOST_SIBLINGS = 120
"""Largest number of boxes side by side in an opened group."""
_STARS = re.compile(r"(\*+)")
_SPAN = re.compile(r"~(\d{1,9})\.\.(\d{1,9})")
_COPIES = re.compile(
    r"~(?P<letter>[A-Z]+)(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})\.(?P<total>\d{1,9}))?"
    r"~\d{1,9}\.\.\d{1,9}$"
)
"""End of an address that names several copies of a block."""
_ENOUGH_BOXES = 8
"""Number of boxes from which scopes are used without trying another reading of the names."""
_STRETCH_LENGTH = 60
"""Number of operations per stretch, if there is room for several boxes."""
_MIN_BLOCK_NODES = 4
"""Number of nodes from which copies of a block are drawn as separate boxes."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a sequence: one box, or nodes with a box each."""

    begin: int
    end: int
    name: str = ""
    """Name of a block; empty for a stretch."""
    loose: bool = False


def has_span(address: str) -> bool:
    """Return True if a group is a stretch or a block instead of a scope."""
    return _SPAN.search(address) is not None


def holds_blocks(address: str, nodes: int) -> bool:
    """Return True if a group with this number of nodes opens into blocks.

    That is a group of several copies of a block that is large enough for a box.
    """
    copies = _parse_copies(address)
    return copies is not None and nodes >= _MIN_BLOCK_NODES * copies[1]


def _parse_copies(address: str) -> tuple[str, int, int, int] | None:
    """Parse a group of several copies of a block: letter, count, number of the first, total number.

    >>> _parse_copies("main/*~B24~3..27"), _parse_copies("main/*~B5-8.24~3..27")
    (('B', 24, 1, 24), ('B', 4, 5, 24))
    >>> _parse_copies("main/*~B5.24~3..27")
    """
    match = _COPIES.search(address)
    if match is None:
        return None
    first, last = int(match["first"]), int(match["last"] or 0)
    return (
        (match["letter"], last - first + 1, first, int(match["total"]))
        if last
        else (match["letter"], first, 1, first)
    )


def members_of(address: str, place: str, order: ReadingOrder) -> tuple[LayerId, ...]:
    """Return the nodes of a group in reading order, without constants."""
    prefix, stars, spans = _STARS.split(address[len(place) + 1 :], maxsplit=1)
    layers = order.beginning_with(prefix, stars)
    for begin, end in _SPAN.findall(spans):
        layers = layers[int(begin) : int(end)]
    return layers


def partition(graph: ModelGraph, place: str, base: str, max_boxes: int) -> tuple[str, ...]:
    """Return groups that leave about ``max_boxes`` boxes at most.

    ``base`` is the address of the group to divide, ``main/*`` for a whole graph.
    """
    order = reading_order(graph)
    layers = members_of(base, place, order)
    if copies := _parse_copies(base):
        letter, count, first, total = copies
        boxes = count if count <= MOST_SIBLINGS else max_boxes
        return tuple(
            _address(base, piece)
            for piece in _copy_pieces(
                Repeat(0, len(layers) // count, count), letter, boxes, first, total
            )
        )
    boxes, scopes = (
        (0, ()) if has_span(base) else _best_scopes(order, layers, place, base, max_boxes)
    )
    if len(scopes) > 1:
        return scopes
    pieces = _pieces(graph, order, layers, max_boxes)
    # A single scope around all nodes carries no information.
    if scopes and boxes >= sum(piece.end - piece.begin if piece.loose else 1 for piece in pieces):
        return scopes
    return tuple(_address(base, piece) for piece in pieces if not piece.loose)


def _best_scopes(
    order: ReadingOrder, layers: Sequence[LayerId], place: str, base: str, max_boxes: int
) -> tuple[int, tuple[str, ...]]:
    """Return the number of boxes and the scopes of the best readable cut, with the most boxes.

    The readings of the names are tried in order, the names as they are first.
    """
    prefix, own, _ = _STARS.split(base[len(place) + 1 :], maxsplit=1)
    best: tuple[int, tuple[str, ...]] = (0, ())
    for room in (max_boxes, MOST_SIBLINGS) if prefix else (max_boxes,):
        for stars in (own,) if prefix else order.homes:
            text = order.homes[stars]
            scopes = scope_cut(prefix, [text[layer] for layer in layers], room)
            boxes = len({box_of(text[layer], scopes) for layer in layers}) if scopes else 0
            if boxes > best[0] and is_readable_cut(text, order.inputs, layers, scopes):
                best = boxes, tuple(f"{place}/{scope}{stars}" for scope in scopes)
            if best[0] >= _ENOUGH_BOXES:
                return best
    return best


def _address(base: str, piece: Piece) -> str:
    return f"{base}{piece.name}~{piece.begin}..{piece.end}"


def _pieces(
    graph: ModelGraph, order: ReadingOrder, layers: Sequence[LayerId], max_boxes: int
) -> list[Piece]:
    """Divide a sequence into boxes and loose nodes."""
    first, after = _between_ports(graph, layers)
    inner = layers[first:after]
    room = max(2, max_boxes - (len(layers) - len(inner)))
    position = {layer: number for number, layer in enumerate(inner)}
    last_uses = list(range(len(inner)))
    for number, layer in enumerate(inner):
        for source in order.inputs[layer]:
            if source in position:
                last_uses[position[source]] = number
    repeated = repeats(kinds(graph, inner), np.array(last_uses))
    pieces = _pieces_in_room(repeated, len(inner), room)
    return [
        Piece(piece.begin + first, piece.end + first, piece.name, piece.loose) for piece in pieces
    ]


def _between_ports(graph: ModelGraph, layers: Sequence[LayerId]) -> tuple[int, int]:
    """Return the range between the leading Parameters and the trailing Results of a sequence."""
    first, after = 0, len(layers)
    while first < after and graph.by_id[layers[first]].type == "Parameter":
        first += 1
    while first < after and graph.by_id[layers[after - 1]].type == "Result":
        after -= 1
    return first, after


def _pieces_in_room(blocks: Sequence[Repeat], total: int, room: int) -> list[Piece]:
    """Return pieces for the repeated blocks and the parts between them, within ``room`` boxes."""
    if len(blocks) > room // 3:
        # With too many kinds of blocks, only the largest are used, in their order.
        largest = sorted(blocks, key=lambda block: block.begin - block.end)[: max(1, room // 3)]
        blocks = sorted(largest, key=lambda block: block.begin)
    edges = [0, *(edge for block in blocks for edge in (block.begin, block.end)), total]
    rests = [
        (begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True) if end > begin
    ]
    each = dict.fromkeys(blocks, 1)
    spare = room - len(blocks) - len(rests)
    for block in sorted(blocks, key=lambda repeat: repeat.count):
        if block.length >= _MIN_BLOCK_NODES and block.count - 1 <= spare:
            each[block], spare = block.count, spare - block.count + 1
    pieces: list[Piece] = []
    for letter, block in zip(_letters(), blocks, strict=False):
        pieces += _copy_pieces(block, letter, each[block])
    for begin, end in sorted(rests, key=lambda rest: rest[1] - rest[0]):
        size = end - begin
        if size - 1 <= spare:
            pieces.append(Piece(begin, end, loose=True))
            spare -= size - 1
            continue
        share = min(spare + 1, -(-size // _STRETCH_LENGTH))
        pieces += (
            Piece(begin + size * k // share, begin + size * (k + 1) // share) for k in range(share)
        )
        spare -= share - 1
    return sorted(pieces, key=lambda block: block.begin)


def _copy_pieces(
    repeat: Repeat, letter: str, boxes: int, first: int = 1, total: int = 0
) -> Iterator[Piece]:
    """Yield the copies of a block as ``boxes`` boxes: one each, several per box, or one box for
    all.

    ``first`` is the number of the first copy.
    """
    if boxes == 1 and repeat.count > 1:
        yield Piece(repeat.begin, repeat.end, f"~{letter}{repeat.count}")
        return
    per_box = -(-repeat.count // boxes)
    for number in range(0, repeat.count, per_box):
        last = min(number + per_box, repeat.count)
        numbers = (
            f"{number + first}" if last == number + 1 else f"{number + first}-{last + first - 1}"
        )
        begin, end = (repeat.begin + repeat.length * index for index in (number, last))
        yield Piece(begin, end, f"~{letter}{numbers}.{total or repeat.count}")


def _letters() -> Iterator[str]:
    """Yield A to Z, then AA, AB and so on (A1 would read as a number)."""
    alphabet = [chr(ord("A") + number) for number in range(26)]
    yield from alphabet
    yield from (first + second for first in alphabet for second in alphabet)


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
