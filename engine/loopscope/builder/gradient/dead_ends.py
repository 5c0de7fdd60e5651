"""Why a gradient is zero everywhere: the places at which every way from a source to the targets
is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from loopscope.errors import elided
from loopscope.ir.address import ROOT, labels
from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ir.gradient_info import has_way_back
from loopscope.ir.model import IF, LOOP, Body, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.derivative import flat

_Tensor = tuple[str, LayerId, int]
"""The address of a graph, a node of it, and the number of the node's output."""
_MOST_NAMED = 3
_DECIDES = {LOOP: "decides only how often it runs", IF: "decides only which branch it takes"}
_DECIDERS = {LOOP: 2, IF: 1}
"""How many of the first inputs decide."""


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """A node through which a tensor reaches a target, and no gradient comes back."""

    address: str
    title: str
    why: str
    is_asked_for: bool = False
    """``stop_gradient`` and ``back_prop=False``."""

    def __str__(self) -> str:
        return f"{self.title} {elided(self.address)!r}, which {self.why}"


def sentence(of: str, x: str, found: Sequence[DeadEnd]) -> str:
    """For people: ``of`` and ``x`` are the names that they know."""
    zero = f"The gradient of {elided(of)!r} with respect to {elided(x)!r} is zero everywhere"
    if not found:
        return f"{zero}: {elided(of)!r} does not depend on {elided(x)!r}."
    ends = "; and by ".join(map(str, found[:_MOST_NAMED]))
    more = f"; and at {len(found) - _MOST_NAMED} more places" if len(found) > _MOST_NAMED else ""
    return f"{zero}: every way between them is cut, by {ends}{more}."


@dataclass(frozen=True, slots=True)
class _Way:
    """From a tensor to one that is made of it."""

    start: _Tensor
    end: _Tensor
    cut: DeadEnd | None


class Ways:
    """Of the values of a graph, also through its bodies."""

    def __init__(self, graph: ModelGraph, catalogue: Catalogue) -> None:
        self._from: dict[_Tensor, list[_Way]] = {}
        self._to: dict[_Tensor, list[_Way]] = {}
        for way in _ways(graph, ROOT, catalogue):
            self._from.setdefault(way.start, []).append(way)
            self._to.setdefault(way.end, []).append(way)

    def dead_ends(self, source: OutputRef, targets: Iterable[OutputRef]) -> list[DeadEnd] | None:
        """Where all ways are cut, in the order of the graph; none where there is no way. None
        where a gradient comes through.
        """
        ends = {(ROOT, one.layer, one.output) for one in targets}
        live = self._reached({(ROOT, source.layer, source.output)})
        if live & ends:
            return None
        needed = self._needed(ends)
        cuts = (
            way.cut
            for start in live
            for way in self._from.get(start, ())
            if way.cut is not None and way.end in needed
        )
        return sorted(set(cuts), key=lambda one: (one.address.count("/"), one.address))

    def _reached(self, found: set[_Tensor]) -> set[_Tensor]:
        """What a gradient comes back from."""
        waiting = list(found)
        while waiting:
            for way in self._from.get(waiting.pop(), ()):
                if way.cut is None and way.end not in found:
                    found.add(way.end)
                    waiting.append(way.end)
        return found

    def _needed(self, found: set[_Tensor]) -> set[_Tensor]:
        """What the targets are made of, by whatever way."""
        waiting = list(found)
        while waiting:
            for way in self._to.get(waiting.pop(), ()):
                if way.start not in found:
                    found.add(way.start)
                    waiting.append(way.start)
        return found


def _ways(graph: ModelGraph, at: str, catalogue: Catalogue) -> Iterator[_Way]:
    names = labels(graph)
    for node in graph.nodes:
        place = f"{at}/{names[node.id]}"
        if not has_way_back(node):
            yield from _through(
                graph,
                at,
                node,
                DeadEnd(
                    place, node.type, "lets no gradient through, as it was built", is_asked_for=True
                ),
            )
        elif node.bodies:
            yield from _by_deciding(
                graph, at, node, DeadEnd(place, node.type, _DECIDES.get(node.type, ""))
            )
            for body in node.bodies:
                yield from _through_body(graph, at, node, body, f"{place}/{body.name}")
                yield from _ways(body.graph, f"{place}/{body.name}", catalogue)
        else:
            operation = catalogue.find(node.type, node.opset)
            title = operation.title if operation else node.type
            steps = operation is not None and operation.gradient is flat
            yield from _through(
                graph,
                at,
                node,
                DeadEnd(place, title, "changes only in steps") if steps else None,
                title,
                place,
            )


def _through(
    graph: ModelGraph, at: str, node: Node, cut: DeadEnd | None, title: str = "", place: str = ""
) -> Iterator[_Way]:
    """From each input to each output; what is no float cuts the way."""
    for source in graph.sources[node.id]:
        for output, port in enumerate(node.outputs):
            if source is not None:
                of_type = (
                    None
                    if _is_real(port) or not _is_real(graph.tensor(source))
                    else _of_type(place, title, port)
                )
                yield _Way((at, source.layer, source.output), (at, node.id, output), cut or of_type)


def _by_deciding(graph: ModelGraph, at: str, node: Node, cut: DeadEnd) -> Iterator[_Way]:
    """From a trip count or condition to all that a loop or branch gives."""
    deciders: list[_Tensor] = [
        (at, one.layer, one.output)
        for one in graph.sources[node.id][: _DECIDERS.get(node.type, 0)]
        if one
    ]
    for body in node.bodies:
        inside = f"{cut.address}/{body.name}"
        asked = [entry.internal for entry in body.outputs if entry.purpose == "execution_condition"]
        deciders += [
            (inside, one.layer, one.output)
            for layer in asked
            for one in body.graph.sources.get(layer, ())
            if one
        ]
    for start in deciders:
        for output in range(len(node.outputs)):
            yield _Way(start, (at, node.id, output), cut)


def _through_body(
    graph: ModelGraph, at: str, node: Node, body: Body, inside: str
) -> Iterator[_Way]:
    """In by Parameters, out by Results, and from one iteration to the next."""
    fed = graph.sources[node.id]
    for entry in body.inputs:
        source = fed[entry.external] if 0 <= entry.external < len(fed) else None
        if source is not None:
            yield _Way((at, source.layer, source.output), (inside, entry.internal, 0), None)
    for number, made in enumerate(body.outer_outputs[: len(node.outputs)]):
        for source in _given(body, made.internal):
            yield _Way((inside, source.layer, source.output), (at, node.id, number), None)
    for edge in body.back_edges:
        for source in _given(body, edge.from_layer):
            yield _Way((inside, source.layer, source.output), (inside, edge.to_layer, 0), None)


def _given(body: Body, result: LayerId) -> Iterator[OutputRef]:
    """What a Result is given."""
    return (source for source in body.graph.sources.get(result, ()) if source is not None)


def _is_real(port: Port) -> bool:
    return port.element_type is None or port.element_type in REAL_FLOATS


def _of_type(place: str, title: str, port: Port) -> DeadEnd:
    kind = "a condition" if port.element_type is ElementType.BOOLEAN else "whole numbers"
    return DeadEnd(place, title, f"gives {kind} ({port.element_type})")
