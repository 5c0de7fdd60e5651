"""``gradients`` and ``stop_gradient`` as in TensorFlow, and reasons for a gradient of zeros.

The reasons are the places that cut every path from a source to the targets.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient.node_edits import drop_unused
from loopscope.builder.gradient.reverse import Seed, adjoints
from loopscope.builder.gradient.step import filled
from loopscope.builder.graph_builder import Graph, graph_of
from loopscope.builder.structure import align_leaves, leaves
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, elided, shorten
from loopscope.ir.address import ROOT, labels
from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ir.model import IF, LOOP, Body, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ir.model import ModelGraph as Finished
from loopscope.ir.rt_info import NO_WAY_BACK, has_way_back
from loopscope.ir.shape import is_of_an_array
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.derivative import flat


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str | None = None) -> list[Tensor]:
    """Return the derivative of the sum of all elements of ``ys`` with respect to each of ``xs``:
    one tensor of its type and shape each, in order.

    ``ys``, ``xs``: a tensor, or several in any structure. ``grad_ys``: a weight for each element of
    ``ys``, in its shape (None: ones); the weight of a single tensor may be in a list. The
    derivative is zero if no ``y`` depends on an ``x``. Loops and branches are differentiated like
    other operations. Integers, conditions and trip counts end a path.

    ``BuildError`` for an ``x`` without a derivative, such as an integer, and for an operation
    without a rule on a path from one of ``xs`` to one of ``ys``; the message contains the path. A
    Python warning lists the causes if integers, step functions or conditions cut all paths to an
    ``x``, because its zeros are then not informative.
    """
    results = with_reasons(ys, xs, grad_ys, name)
    for leaf, (_, ends) in zip(leaves(xs), results, strict=True):
        if ends and not any(item.is_asked_for for item in ends):
            target_names = ", ".join(item.value.name for item in leaves(ys))
            warnings.warn(dead_ends_sentence(target_names, leaf.value.name, ends), stacklevel=2)
    return [tensor for tensor, _ in results]


def with_reasons(
    ys: Any, xs: Any, grad_ys: Any = None, name: str | None = None
) -> list[tuple[Tensor, list[DeadEnd] | None]]:
    """Return the result of ``gradients``, and for each gradient the places that cut all its paths
    (None if a path is intact).
    """
    source_leaves, targets = leaves(xs), leaves(ys)
    graph = graph_of([leaf.value for leaf in (*targets, *source_leaves)], "gradients")
    weights_structure = _unwrap_weight(ys, grad_ys)
    weights = (
        [None] * len(targets)
        if weights_structure is None
        else [leaf.value for leaf in align_leaves(ys, weights_structure, "gradients(): grad_ys")]
    )
    if not targets or not source_leaves:
        raise BuildError(
            f"gradients(): {'xs' if targets else 'ys'} is empty, expected at least one tensor"
        )
    with _unchanged_on_failure(graph.frame):
        sources = [_require_real(graph, leaf.value, f"xs{leaf.path}") for leaf in source_leaves]
        first = len(graph.frame.nodes)
        with graph.within(name or "backward"):
            seeds = [
                _seed(graph, leaf.value, weight, leaf.path)
                for leaf, weight in zip(targets, weights, strict=True)
            ]
            ways = Ways(
                Finished(tuple(graph.frame.nodes), tuple(graph.frame.edges)), graph.catalogue
            )
            ends = [
                ways.dead_ends(source.source, [seed.target.source for seed in seeds])
                for source in sources
            ]
            by_source = adjoints(graph, seeds, sources)
            results = [
                filled(graph, 0, source) if adjoint is None else adjoint
                for adjoint, source in zip(by_source, sources, strict=True)
            ]
        pruned = drop_unused(graph.frame, first, results)
        return [(pruned.moved(tensor), cut) for tensor, cut in zip(results, ends, strict=True)]


def _unwrap_weight(ys: Any, grad_ys: Any) -> Any:
    """Return the weight of a single tensor, which may be in a list, as in TensorFlow. A list of the
    tensor's rank is the weight itself.
    """
    if not isinstance(ys, Tensor) or not isinstance(grad_ys, (list, tuple)) or len(grad_ys) != 1:
        return grad_ys
    (only,) = grad_ys
    return (
        only if only is None or isinstance(only, Tensor) or np.ndim(grad_ys) != ys.rank else grad_ys
    )


@contextmanager
def _unchanged_on_failure(frame: GraphFrame) -> Iterator[None]:
    """Restore the graph if differentiation fails, because forward loops may already have additional
    outputs.
    """
    nodes, tensors = list(frame.nodes), list(frame.tensors)
    try:
        with frame.all_or_nothing():
            yield
    except BaseException as error:
        frame.nodes[:], frame.tensors[:] = nodes, tensors
        if isinstance(error, RecursionError):
            raise BuildError("gradients(): loops and branches are nested too deeply") from None
        raise


def _require_real(graph: Graph, value: object, what: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise BuildError(f"gradients(): {what} is {value!r}, expected a tensor")
    tensor = graph.frame.bring(value)
    if tensor.element_type not in REAL_FLOATS:
        raise BuildError(
            f"gradients(): {what} is {tensor!r}, but only f64, f32, f16 and bf16 have "
            "derivatives: convert it before it is used"
        )
    if tensor.shape.is_static and not is_of_an_array(tensor.shape.lengths):
        raise BuildError(
            f"gradients(): {what} is {shorten(repr(tensor))}, which is larger than any array"
        )
    return tensor


def _seed(graph: Graph, value: object, weight: Any, path: str) -> Seed:
    target = _require_real(graph, value, f"ys{path}")
    if weight is None:
        return Seed(target, filled(graph, 1, target))
    lifted = graph.lift(
        weight, [target.element_type] if target.element_type else [], f"gradients(): grad_ys{path}"
    )
    if (
        lifted.element_type is not target.element_type
        or target.shape.intersect(lifted.shape) is None
    ):
        raise BuildError(
            f"gradients(): grad_ys{path} is {lifted!r}, expected the type and shape of {target!r}"
        )
    return Seed(target, lifted)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:  # TensorFlow's name
    """Return ``input`` unchanged; ``gradients`` treats the result as a constant.

    The result is a Convert to the same type, which every runtime supports. Its ``rt_info`` marks
    that it has no gradient.
    """
    graph = graph_of([input], "stop_gradient")
    tensor = graph.lift(input, what="stop_gradient(): input")
    if tensor.element_type is None:
        raise BuildError(
            f"stop_gradient(): input is {tensor!r}, expected a known element type: convert it first"
        )
    to = {"destination_type": str(tensor.element_type)}
    return graph.frame.add(
        "Convert",
        "opset1",
        to,
        (tensor,),
        (tensor.known,),
        name=name or "StopGradient",
        rt_info=NO_WAY_BACK,
    )[0]


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


def dead_ends_sentence(of: str, x: str, dead_ends: Sequence[DeadEnd]) -> str:
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
