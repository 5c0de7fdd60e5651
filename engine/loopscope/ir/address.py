"""Addresses of every place in a model or a run: ``main/while_3[2]/body/if_2/then/Split_4:1``.

``graphs`` and ``nodes`` yield every graph and node of a model with its address, without recursion.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from loopscope.errors import AddressError, shorten
from loopscope.ir.model import Body, LayerId, Model, ModelGraph, Node

ROOT = "main"
_RESERVED = "%/[]:*~"
_ENCODED = str.maketrans({character: f"%{ord(character):02X}" for character in _RESERVED})
_FIND_RESERVED = re.compile(f"[{re.escape(_RESERVED)}]").search
_SEGMENT = re.compile(r"(?P<name>[^\[\]/:*]*)(?:\[(?P<iteration>\d{1,18}|\*)\])?")
ANY_ITERATION = -1


def encode(name: str) -> str:
    """Percent-encode the characters of a name that addresses reserve.

    >>> encode("a/b[0]:~%")
    'a%2Fb%5B0%5D%3A%7E%25'
    """
    return name.translate(_ENCODED) if _FIND_RESERVED(name) else name


def decode(text: str) -> str:
    """Decode an address segment to a name: the inverse of ``encode``."""
    return re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)


def labels(graph: ModelGraph) -> Mapping[LayerId, str]:
    """Return the address segment of each node of a graph.

    A segment is the encoded name, with ``~ID`` appended if several nodes have that name.
    """
    uses = Counter(node.name for node in graph.nodes)
    return {
        node.id: encode(node.name) + (f"~{node.id}" if uses[node.name] > 1 else "")
        for node in graph.nodes
    }


def is_within(address: str, around: str) -> bool:
    """Return True if ``address`` equals ``around`` or lies inside it.

    Either both addresses have iterations or neither has.

    >>> is_within("main/loop/body/add", "main/loop"), is_within("main/loop", "main/loop")
    (True, True)
    >>> is_within("main/loop_2", "main/loop")
    False
    """
    return f"{address}/".startswith(f"{around}/")


def must_be_text(address: object) -> None:
    """Raise ``AddressError`` if an address is not a string."""
    if not isinstance(address, str):
        raise AddressError(
            f"{shorten(repr(address))} is not an address: "
            "text such as main/while_3[2]/body/Add_1 is expected"
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of an address: the label of a node or body, and optionally an iteration."""

    label: str
    iteration: int | None = None
    """Iteration number from 0; ``ANY_ITERATION`` for ``[*]``."""

    def __str__(self) -> str:
        if self.iteration is None:
            return self.label
        return f"{self.label}[{'*' if self.iteration == ANY_ITERATION else self.iteration}]"


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address. ``segments[0]`` is always ``main``; nodes and bodies alternate after it."""

    segments: tuple[Segment, ...]
    output: int = 0

    @staticmethod
    def parse(text: str) -> Address:
        """Parse an address; raise ``AddressError`` with the reason if the text is not one.

        >>> str(Address.parse("main/while_3[2]/body/Add_1:1"))
        'main/while_3[2]/body/Add_1:1'
        >>> Address.parse("while_3[5]").static
        'main/while_3'
        """
        must_be_text(text)
        # Only line ends are stripped: a name may begin and end with blanks.
        path, colon, output = text.strip("\r\n").rpartition(":")
        if not colon:
            path, output = output, "0"
        if not output.isascii() or not output.isdigit() or len(output) > 9:
            raise AddressError(
                f"{shorten(text)!r} is not an address: after ':' an output number is expected"
            )
        segments = []
        for part in path.split("/"):
            match = _SEGMENT.fullmatch(part)
            if match is None or not match["name"]:
                raise AddressError(
                    f"{shorten(text)!r} is not an address: "
                    "expected names joined by '/', such as main/while_3[2]/body/Add_1:0"
                )
            iteration = match["iteration"]
            segments.append(
                Segment(
                    match["name"],
                    None
                    if iteration is None
                    else ANY_ITERATION
                    if iteration == "*"
                    else int(iteration),
                )
            )
        if segments[0].label != ROOT:
            segments.insert(0, Segment(ROOT))
        return Address(tuple(segments), int(output))

    @property
    def static(self) -> str:
        """The address without iterations and output number."""
        return "/".join(segment.label for segment in self.segments)

    @property
    def names_a_graph(self) -> bool:
        """True if the address leads to the outermost graph or to a body, not to a node."""
        return len(self.segments) % 2 == 1

    @property
    def iterations(self) -> tuple[int | None, ...]:
        """The iteration of each segment that has one, outermost first."""
        return tuple(
            segment.iteration for segment in self.segments if segment.iteration is not None
        )

    def __str__(self) -> str:
        path = "/".join(str(segment) for segment in self.segments)
        return f"{path}:{self.output}" if self.output else path


@dataclass(frozen=True, eq=False)
class PlacedGraph:
    """A graph with its address in the model."""

    address: str
    """Static address: ``main`` or ``main/while_3/body``."""
    graph: ModelGraph
    owner: Node | None = None
    """The control-flow node that the graph belongs to; None for the outermost graph."""
    body: Body | None = None

    @cached_property
    def labels(self) -> Mapping[LayerId, str]:
        """Return the address segment of each node."""
        return labels(self.graph)


def graphs(model: Model) -> Iterator[PlacedGraph]:
    """Yield every graph in document order, an outer graph before its inner graphs."""
    waiting = [PlacedGraph(ROOT, model.graph)]
    while waiting:
        place = waiting.pop()
        yield place
        if not any(node.bodies for node in place.graph.nodes):
            continue
        inner = [
            PlacedGraph(
                f"{place.address}/{place.labels[node.id]}/{body.name}", body.graph, node, body
            )
            for node in place.graph.nodes
            for body in node.bodies
        ]
        waiting.extend(reversed(inner))


def nodes(model: Model) -> Iterator[tuple[str, Node]]:
    """Yield every node of every graph with its static address."""
    for place in graphs(model):
        for node in place.graph.nodes:
            yield f"{place.address}/{place.labels[node.id]}", node
