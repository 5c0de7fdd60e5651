"""Search for nodes in all bodies of a model, by name, type, shape, element type or value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loopscope.ir.address import decode, nodes
from loopscope.ir.address_search import addresses_ending
from loopscope.ir.model import Model, Node
from loopscope.ir.readable import STEP

MOST_HITS = 200
_NUMBERS = re.compile("([0-9]+)")
_CONSTANTS = frozenset({"Const", "Constant"})
_ADDRESS_MARKS = ("/", "%", STEP)


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching node."""

    address: str
    """Static address."""
    type: str
    name: str
    why: str
    """Kind of the matching text: ``address``, ``name``, ``type``, ``shape``, ``element type``,
    ``attribute`` or ``value``.
    """
    rank: int
    """Quality of the match, smaller is better: exact, then prefix, then substring."""


def search(
    model: Model,
    text: str,
    value_of: Callable[[str], str | None] | None = None,
    max_hits: int = MOST_HITS,
) -> tuple[Hit, ...]:
    """Return the best hits for a search text, best first. Every word must match a text of the node.

    An address in any form, or an end of one, ranks its nodes first. ``value_of`` returns the
    preview of a node's value by static address, if there is one.
    """
    words = text.lower().split()
    if not words:
        return ()
    matching_addresses = (
        frozenset(addresses_ending(model, text))
        if any(mark in text for mark in _ADDRESS_MARKS)
        else frozenset()
    )
    hits: list[Hit] = []
    for address, node in nodes(model):
        hit = _hit(address, node, words, value_of)
        if address in matching_addresses:
            hit = Hit(address, node.type, decode(address.rpartition("/")[2]), "address", -1)
        if hit is not None:
            hits.append(hit)
    hits.sort(key=lambda hit: _order(hit, value_of))
    return tuple(hits[:max_hits])


def _order(
    hit: Hit, value_of: Callable[[str], str | None] | None
) -> tuple[int, bool, bool, int, list[str]]:
    """Return the sort key of a hit: its rank, then operations before constants, nodes that ran,
    outer graphs, and numbers in their order.
    """
    ran = value_of is not None and bool(value_of(hit.address))
    is_constant = hit.type in _CONSTANTS
    return hit.rank, is_constant, not ran, hit.address.count("/"), _by_number(hit.address)


def _by_number(address: str) -> list[str]:
    """Return a sort key by which ``add_2`` precedes ``add_10``: numbers with more digits are
    larger.
    """
    return [
        f"{len(part):09}{part}" if number % 2 else part
        for number, part in enumerate(_NUMBERS.split(address))
    ]


def _hit(
    address: str, node: Node, words: list[str], value_of: Callable[[str], str | None] | None
) -> Hit | None:
    texts = list(_texts(node))
    if value_of is not None:
        preview = value_of(address)
        if preview:
            texts.append(("value", preview.lower()))
    why, rank = "", 0
    for word in words:
        match = min(
            ((_rank(word, text), kind) for kind, text in texts if word in text), default=None
        )
        if match is None:
            return None
        rank += match[0]
        why = why or match[1]
    return Hit(address, node.type, decode(address.rpartition("/")[2]), why, rank)


def _texts(node: Node) -> Iterator[tuple[str, str]]:
    yield "name", node.name.lower()
    yield "type", node.type.lower()
    for port in node.outputs:
        yield "shape", str(port.shape)
        if port.element_type is not None:
            yield "element type", port.element_type.value
        for name in port.names:
            yield "name", name.lower()
    for name, value in node.attributes.items():
        if isinstance(value, str) and len(value) < 200:
            yield "attribute", f"{name}={value}".lower()


def _rank(word: str, text: str) -> int:
    return 0 if word == text else 1 if text.startswith(word) else 2
