"""Reasons for a gradient that is zero everywhere: the places that cut every path from a source to
the targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from loopscope.errors import elided
from loopscope.ir.address import ROOT, labels
from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ir.model import IF, LOOP, Body, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ir.rt_info import has_way_back
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.derivative import flat

_Tensor = tuple[str, LayerId, int]
"""Address of a graph, id of a node, and index of its output."""
_MAX_NAMED = 3
_CONTROL_CLAUSES = {
    LOOP: "determines only how often it runs",
    IF: "determines only which branch runs",
}
_CONTROL_INPUTS = {LOOP: 2, IF: 1}
"""Number of first inputs that control the node."""


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """A node on a path to a target that no gradient passes."""

    address: str
    title: str
    why: str
    is_asked_for: bool = False
    """True for ``stop_gradient`` and ``back_prop=False``."""

    def __str__(self) -> str:
        return f"{self.title} {elided(self.address)!r}, which {self.why}"


def sentence(of: str, x: str, dead_ends: Sequence[DeadEnd]) -> str:
    """Return an explanation for users; ``of`` and ``x`` are names of tensors."""
    zero = f"The gradient of {elided(of)!r} with respect to {elided(x)!r} is zero everywhere"
    if not dead_ends:
        return f"{zero}: {elided(of)!r} does not depend on {elided(x)!r}."
    ends = "; and by ".join(map(str, dead_ends[:_MAX_NAMED]))
    more = (
        f"; and at {len(dead_ends) - _MAX_NAMED} more places" if len(dead_ends) > _MAX_NAMED else ""
    )
    return f"{zero}: every way between them is cut, by {ends}{more}."


@dataclass(frozen=True, slots=True)
class _Way:
    """A dependency of one tensor on another, and its cut, if any."""

    start: _Tensor
    end: _Tensor
    cut: DeadEnd | None


class Ways:
    """The dependencies between the tensors of a graph, including its bodies."""

    def __init__(self, graph: ModelGraph, catalogue: Catalogue) -> None:
        self._from: dict[_Tensor, list[_Way]] = {}
        self._to: dict[_Tensor, list[_Way]] = {}
        for way in _ways(graph, ROOT, catalogue):
            self._from.setdefault(way.start, []).append(way)
            self._to.setdefault(way.end, []).append(way)

    def dead_ends(self, source: OutputRef, targets: Iterable[OutputRef]) -> list[DeadEnd] | None:
        """Return the places that cut all paths, in graph order; an empty list without any path.

        The result is None if a gradient passes.
        """
        ends = {(ROOT, item.layer, item.output) for item in targets}
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
        return sorted(set(cuts), key=lambda item: (item.address.count("/"), item.address))

    def _reached(self, tensors: set[_Tensor]) -> set[_Tensor]:
        """Return the tensors that are reachable without a cut."""
        waiting = list(tensors)
        while waiting:
            for way in self._from.get(waiting.pop(), ()):
                if way.cut is None and way.end not in tensors:
                    tensors.add(way.end)
                    waiting.append(way.end)
        return tensors

    def _needed(self, tensors: set[_Tensor]) -> set[_Tensor]:
        """Return the tensors that the targets depend on, including cut paths."""
        waiting = list(tensors)
        while waiting:
            for way in self._to.get(waiting.pop(), ()):
                if way.start not in tensors:
                    tensors.add(way.start)
                    waiting.append(way.start)
        return tensors


def _ways(graph: ModelGraph, address: str, catalogue: Catalogue) -> Iterator[_Way]:
    names = labels(graph)
    for node in graph.nodes:
        place = f"{address}/{names[node.id]}"
        if not has_way_back(node):
            yield from _through(
                graph,
                address,
                node,
                DeadEnd(place, node.type, "stops the gradient by request", is_asked_for=True),
            )
        elif node.bodies:
            yield from _control_dependencies(
                graph, address, node, DeadEnd(place, node.type, _CONTROL_CLAUSES.get(node.type, ""))
            )
            for body in node.bodies:
                yield from _through_body(graph, address, node, body, f"{place}/{body.name}")
                yield from _ways(body.graph, f"{place}/{body.name}", catalogue)
        else:
            operation = catalogue.find(node.type, node.opset)
            title = operation.title if operation else node.type
            steps = operation is not None and operation.gradient is flat
            yield from _through(
                graph,
                address,
                node,
                DeadEnd(place, title, "changes only in steps") if steps else None,
                title,
                place,
            )


def _through(
    graph: ModelGraph,
    address: str,
    node: Node,
    cut: DeadEnd | None,
    title: str = "",
    place: str = "",
) -> Iterator[_Way]:
    """Yield a dependency of each output on each input; a nonfloat output cuts it."""
    for source in graph.sources[node.id]:
        for output, port in enumerate(node.outputs):
            if source is not None:
                of_type = (
                    None
                    if _is_real(port) or not _is_real(graph.tensor(source))
                    else _type_cut(place, title, port)
                )
                yield _Way(
                    (address, source.layer, source.output),
                    (address, node.id, output),
                    cut or of_type,
                )


def _control_dependencies(
    graph: ModelGraph, address: str, node: Node, cut: DeadEnd
) -> Iterator[_Way]:
    """Yield a cut dependency of each output of a loop or branch on its trip count or conditions."""
    deciders: list[_Tensor] = [
        (address, source.layer, source.output)
        for source in graph.sources[node.id][: _CONTROL_INPUTS.get(node.type, 0)]
        if source
    ]
    for body in node.bodies:
        inside = f"{cut.address}/{body.name}"
        condition_results = [
            entry.internal for entry in body.outputs if entry.purpose == "execution_condition"
        ]
        deciders += [
            (inside, source.layer, source.output)
            for layer in condition_results
            for source in body.graph.sources.get(layer, ())
            if source
        ]
    for start in deciders:
        for output in range(len(node.outputs)):
            yield _Way(start, (address, node.id, output), cut)


def _through_body(
    graph: ModelGraph, address: str, node: Node, body: Body, inside: str
) -> Iterator[_Way]:
    """Yield the dependencies through Parameters, Results and back edges of a body."""
    fed = graph.sources[node.id]
    for entry in body.inputs:
        source = fed[entry.external] if 0 <= entry.external < len(fed) else None
        if source is not None:
            yield _Way((address, source.layer, source.output), (inside, entry.internal, 0), None)
    for number, output in enumerate(body.outer_outputs[: len(node.outputs)]):
        for source in _result_sources(body, output.internal):
            yield _Way((inside, source.layer, source.output), (address, node.id, number), None)
    for edge in body.back_edges:
        for source in _result_sources(body, edge.from_layer):
            yield _Way((inside, source.layer, source.output), (inside, edge.to_layer, 0), None)


def _result_sources(body: Body, result: LayerId) -> Iterator[OutputRef]:
    """Yield the source of a Result."""
    return (source for source in body.graph.sources.get(result, ()) if source is not None)


def _is_real(port: Port) -> bool:
    return port.element_type is None or port.element_type in REAL_FLOATS


def _type_cut(place: str, title: str, port: Port) -> DeadEnd:
    kind = "a condition" if port.element_type is ElementType.BOOLEAN else "whole numbers"
    return DeadEnd(place, title, f"gives {kind} ({port.element_type})")
