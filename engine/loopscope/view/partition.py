"""Groups for nodes that are too many to draw one by one: name scopes where names have them, else
repeated blocks, else stretches.

A block's address says what it is called: ``main/*~A3.24~120..163`` is the third of 24 blocks A,
``main/*~A24~34..1066`` all of them as one box, ``main/*~A1-32.1000~0..3200`` the first 32 of a
thousand. Numbers after the last ``~`` are positions among the nodes that the text before names.
Stars say which nodes belong to a scope (``ReadingOrder.homes``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ir.model import LayerId, ModelGraph
from loopscope.view.reading_order import ReadingOrder, reading_order
from loopscope.view.repeats import Repeat, kinds, repeats
from loopscope.view.scope_cut import box_of, flows, scope_cut

MOST_SIBLINGS = 120
"""Boxes that stand side by side in an opened group at most."""
_WAY = re.compile(r"(\*+)")
_SPAN = re.compile(r"~(\d{1,9})\.\.(\d{1,9})")
_COPIES = re.compile(
    r"~(?P<letter>[A-Z]+)(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})\.(?P<total>\d{1,9}))?~\d{1,9}\.\.\d{1,9}$"
)
"""The end of an address that names several copies of a block."""
_TELLING = 8
"""Where scopes make so many boxes, no other reading of the names is tried."""
_STRETCH = 60
"""Operations of one box that is named by what most of them are, where there is room for several
boxes.
"""
_SMALLEST_BLOCK = 4
"""Copies of fewer nodes are drawn as one box for all of them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a sequence: one box, or nodes that stand for themselves."""

    begin: int
    end: int
    name: str = ""
    """Of blocks; a stretch has none."""
    loose: bool = False


def has_span(address: str) -> bool:
    """Whether a group is a stretch or a block, not a scope."""
    return _SPAN.search(address) is not None


def holds_blocks(address: str, nodes: int) -> bool:
    """Whether a group of so many nodes is opened as blocks, because it is several copies of one
    that is worth a box.
    """
    found = _copies_in(address)
    return found is not None and nodes >= _SMALLEST_BLOCK * found[1]


def _copies_in(address: str) -> tuple[str, int, int, int] | None:
    """Of a group that is several copies of a block: its letter, how many they are, the number of
    the first, and of all there are.

    >>> _copies_in("main/*~B24~3..27"), _copies_in("main/*~B5-8.24~3..27"), _copies_in("main/*~B5.24~3..27")
    (('B', 24, 1, 24), ('B', 4, 5, 24), None)
    """
    found = _COPIES.search(address)
    if found is None:
        return None
    first, last = int(found["first"]), int(found["last"] or 0)
    return (
        (found["letter"], last - first + 1, first, int(found["total"]))
        if last
        else (found["letter"], first, 1, first)
    )


def members_of(address: str, place: str, order: ReadingOrder) -> tuple[LayerId, ...]:
    """The nodes that a group of this kind holds, in reading order, constants left out."""
    prefix, way, spans = _WAY.split(address[len(place) + 1 :], maxsplit=1)
    found = order.beginning_with(prefix, way)
    for begin, end in _SPAN.findall(spans):
        found = found[int(begin) : int(end)]
    return found


def partition(graph: ModelGraph, place: str, base: str, most: int) -> tuple[str, ...]:
    """Groups that leave at most about ``most`` boxes. ``base``: address of the group to divide,
    ``main/*`` for a whole graph.
    """
    order = reading_order(graph)
    layers = members_of(base, place, order)
    if copies := _copies_in(base):
        letter, count, first, total = copies
        boxes = count if count <= MOST_SIBLINGS else most
        return tuple(
            _address(base, piece)
            for piece in _copies(
                Repeat(0, len(layers) // count, count), letter, boxes, first, total
            )
        )
    boxes, scopes = (0, ()) if has_span(base) else _scopes(order, layers, place, base, most)
    if len(scopes) > 1:
        return scopes
    pieces = _pieces(graph, order, layers, most)
    # One scope may be round everything, and say nothing of it.
    if scopes and boxes >= sum(piece.end - piece.begin if piece.loose else 1 for piece in pieces):
        return scopes
    return tuple(_address(base, piece) for piece in pieces if not piece.loose)


def _scopes(
    order: ReadingOrder, layers: Sequence[LayerId], place: str, base: str, most: int
) -> tuple[int, tuple[str, ...]]:
    """The scopes that make the most boxes, of those that make a picture, and how many boxes that
    are; names as they are come first.
    """
    prefix, own, _ = _WAY.split(base[len(place) + 1 :], maxsplit=1)
    best: tuple[int, tuple[str, ...]] = (0, ())
    for room in (most, MOST_SIBLINGS) if prefix else (most,):
        for way in (own,) if prefix else order.homes:
            text = order.homes[way]
            scopes = scope_cut(prefix, [text[layer] for layer in layers], room)
            boxes = len({box_of(text[layer], scopes) for layer in layers}) if scopes else 0
            if boxes > best[0] and flows(text, order.inputs, layers, scopes):
                best = boxes, tuple(f"{place}/{scope}{way}" for scope in scopes)
            if best[0] >= _TELLING:
                return best
    return best


def _address(base: str, piece: Piece) -> str:
    return f"{base}{piece.name}~{piece.begin}..{piece.end}"


def _pieces(
    graph: ModelGraph, order: ReadingOrder, layers: Sequence[LayerId], most: int
) -> list[Piece]:
    """The boxes and loose nodes that a sequence is divided into."""
    first, after = _between_ports(graph, layers)
    inner = layers[first:after]
    room = max(2, most - (len(layers) - len(inner)))
    position = {layer: number for number, layer in enumerate(inner)}
    taken_by = list(range(len(inner)))
    for number, layer in enumerate(inner):
        for source in order.inputs[layer]:
            if source in position:
                taken_by[position[source]] = number
    found = repeats(kinds(graph, inner), np.array(taken_by))
    pieces = _with_rests(found, len(inner), room)
    return [Piece(one.begin + first, one.end + first, one.name, one.loose) for one in pieces]


def _between_ports(graph: ModelGraph, layers: Sequence[LayerId]) -> tuple[int, int]:
    """What lies between the Parameters that a sequence begins with and the Results that it ends
    with.
    """
    first, after = 0, len(layers)
    while first < after and graph.by_id[layers[first]].type == "Parameter":
        first += 1
    while first < after and graph.by_id[layers[after - 1]].type == "Result":
        after -= 1
    return first, after


def _with_rests(found: Sequence[Repeat], total: int, room: int) -> list[Piece]:
    """Blocks, and what lies between: together so many boxes as there is room for."""
    if len(found) > room // 3:
        # Too many kinds of blocks to tell apart: the largest, in their order.
        largest = sorted(found, key=lambda one: one.begin - one.end)[: max(1, room // 3)]
        found = sorted(largest, key=lambda one: one.begin)
    edges = [0, *(edge for one in found for edge in (one.begin, one.end)), total]
    rests = [
        (begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True) if end > begin
    ]
    each = dict.fromkeys(found, 1)
    spare = room - len(found) - len(rests)
    for one in sorted(found, key=lambda repeat: repeat.count):
        if one.length >= _SMALLEST_BLOCK and one.count - 1 <= spare:
            each[one], spare = one.count, spare - one.count + 1
    pieces: list[Piece] = []
    for letter, one in zip(_letters(), found, strict=False):
        pieces += _copies(one, letter, each[one])
    for begin, end in sorted(rests, key=lambda rest: rest[1] - rest[0]):
        size = end - begin
        if size - 1 <= spare:
            pieces.append(Piece(begin, end, loose=True))
            spare -= size - 1
            continue
        share = min(spare + 1, -(-size // _STRETCH))
        pieces += (
            Piece(begin + size * k // share, begin + size * (k + 1) // share) for k in range(share)
        )
        spare -= share - 1
    return sorted(pieces, key=lambda one: one.begin)


def _copies(
    repeat: Repeat, letter: str, boxes: int, first: int = 1, total: int = 0
) -> Iterator[Piece]:
    """The copies as so many boxes, or as one box for all, or as boxes of several copies each.
    ``first``: number of the first one.
    """
    if boxes == 1 and repeat.count > 1:
        yield Piece(repeat.begin, repeat.end, f"~{letter}{repeat.count}")
        return
    together = -(-repeat.count // boxes)
    for number in range(0, repeat.count, together):
        last = min(number + together, repeat.count)
        which = (
            f"{number + first}" if last == number + 1 else f"{number + first}-{last + first - 1}"
        )
        begin, end = (repeat.begin + repeat.length * copy for copy in (number, last))
        yield Piece(begin, end, f"~{letter}{which}.{total or repeat.count}")


def _letters() -> Iterator[str]:
    """A to Z, then A1 and on would read as numbers, so AA and on."""
    alphabet = [chr(ord("A") + number) for number in range(26)]
    yield from alphabet
    yield from (first + second for first in alphabet for second in alphabet)
