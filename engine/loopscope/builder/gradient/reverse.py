"""Reverse-mode differentiation of one graph, node by node from the last to the first.

The backward If of an If has the same condition. Its branches are copies of the forward branches,
followed by their derivatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from loopscope.builder.branches import build_if
from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient.backward_body import Reverse
from loopscope.builder.gradient.loops_back import back_through_loop
from loopscope.builder.gradient.node_edits import adopt, drop_unused
from loopscope.builder.gradient.step import (
    BodyTensors,
    Flow,
    GradientStep,
    adjoints_of_inputs,
    check_repeatable,
    filled,
)
from loopscope.builder.graph_builder import Graph
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import (
    IF,
    LOOP,
    SCAN,
    TENSOR_ITERATOR,
    Body,
    InputMap,
    LayerId,
    Node,
    OutputRef,
)
from loopscope.ir.rt_info import has_way_back, walks_back
from loopscope.ops.declare import Operation

_SCOPE = re.compile(r"backward(_\d+)?")
"""Scope names of gradient nodes; the name of the differentiated node follows."""


class NoWayBack(BuildError):
    """An operation without a derivative on a required path."""

    def __init__(self, what: str, node: Node, inside: Sequence[str], path: str) -> None:
        self.what, self.node, self.inside = what, node, inside
        place = "".join(f", inside {shorten(name)!r}" for name in inside)
        super().__init__(f"{what}{place}; it is on the path {path}")


@dataclass(frozen=True, slots=True)
class Seed:
    """A target, with a weight for each of its elements."""

    target: Tensor
    adjoint: Tensor


def adjoints(graph: Graph, seeds: Sequence[Seed], sources: Sequence[Tensor]) -> list[Tensor | None]:
    """Return the derivative of the weighted sum of the targets with respect to each source, or None
    if it does not depend on it.

    All tensors are in ``graph.frame``. ``BuildError`` for an operation without a rule on a path.
    """
    walk = _Walk(graph, graph.frame, Inputs.of(graph.frame), {tensor.source for tensor in sources})
    walk.depending = depending(walk.inputs, graph.frame, walk.sources)
    for seed in seeds:
        walk.add(seed.target.source, seed.adjoint)
    for layer in reversed(range(walk.inputs.count)):
        walk.back_through(layer)
    return [walk.total(tensor.source) for tensor in sources]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Sources of the inputs of all nodes of a frame, at the time of the call."""

    of_node: tuple[tuple[OutputRef | None, ...], ...]

    @property
    def count(self) -> int:
        return len(self.of_node)

    @staticmethod
    def of(frame: GraphFrame) -> Inputs:
        outputs = [
            {port.id: number for number, port in enumerate(node.outputs)} for node in frame.nodes
        ]
        places = [
            {port.id: number for number, port in enumerate(node.inputs)} for node in frame.nodes
        ]
        by_position: list[dict[int, OutputRef]] = [{} for _ in frame.nodes]
        for edge in frame.edges:
            source = OutputRef(edge.from_layer, outputs[edge.from_layer][edge.from_port])
            by_position[edge.to_layer][places[edge.to_layer][edge.to_port]] = source
        return Inputs(
            tuple(
                tuple(sources.get(index) for index in range(len(node.inputs)))
                for sources, node in zip(by_position, frame.nodes, strict=True)
            )
        )


def depending(inputs: Inputs, frame: GraphFrame, sources: set[OutputRef]) -> set[OutputRef]:
    """Return the sources, and the real tensors that are computed from them.

    A path ends at integers and conditions, and at nodes marked without a gradient.
    """
    dependent = set(sources)
    for layer, fed in enumerate(inputs.of_node):
        if any(source in dependent for source in fed) and has_way_back(frame.nodes[layer]):
            dependent |= {
                output.source
                for output in frame.tensors[layer]
                if output.element_type is None or output.element_type in REAL_FLOATS
            }
    return dependent


@dataclass(slots=True)
class _Walk:
    graph: Graph
    frame: GraphFrame
    inputs: Inputs
    sources: set[OutputRef]
    depending: set[OutputRef] = field(default_factory=set)
    parts: dict[OutputRef, list[Tensor]] = field(default_factory=dict)
    """Adjoint of each tensor so far: a summand from each of its readers."""
    came_from: dict[OutputRef, LayerId] = field(default_factory=dict)
    """Reader that contributed the first summand of a tensor's adjoint."""

    def add(self, source: OutputRef, adjoint: Tensor, reader: LayerId | None = None) -> None:
        if source in self.depending:
            self.parts.setdefault(source, []).append(adjoint)
            if reader is not None:
                self.came_from.setdefault(source, reader)

    def total(self, source: OutputRef) -> Tensor | None:
        """Return the sum of the summands, which is computed once. The first summand, which may be a
        slice of a loop output, is the last operand.

        OpenVINO's CPU plugin (2026.4) stores ``slice + product`` in the memory of the sliced
        tensor, but not ``product + slice``.
        """
        parts = self.parts.get(source)
        if not parts:
            return None
        whole = parts[0]
        for part in parts[1:]:
            whole = self.graph.apply("Add", (part, whole), {})[0]
        self.parts[source] = [whole]
        return whole

    def back_through(self, layer: int) -> None:
        """Propagate the adjoints of a node's outputs to its inputs."""
        fed = self.inputs.of_node[layer]
        outputs = self.frame.tensors[layer]
        if not any(source in self.depending for source in fed) or not any(
            item.source in self.parts for item in outputs
        ):
            return
        node = self.frame.nodes[layer]
        known = [self.total(item.source) for item in outputs]
        if node.bodies:
            return self._back_through_bodies(node, fed, known)
        operation = self.graph.catalogue.find(node.type, node.opset)
        if operation is None or operation.gradient is None:
            raise self._no_rule(node, "its operation has no derivative here")
        inputs = {place: self._tensor(item) for place, item in enumerate(fed) if item is not None}
        with self.graph.within(node.name):
            try:
                input_adjoints = adjoints_of_inputs(self.graph, node, operation, inputs, known)
            except ValueError as problem:
                raise self._no_rule(node, str(problem)) from problem
        for source, adjoint in zip(
            [item for item in fed if item is not None], input_adjoints, strict=True
        ):
            if adjoint is not None:
                self.add(source, adjoint, node.id)

    def _back_through_bodies(
        self, node: Node, fed: Sequence[OutputRef | None], known: Sequence[Tensor | None]
    ) -> None:
        """Propagate adjoints through a Loop, TensorIterator or If."""
        active = frozenset(number for number, source in enumerate(fed) if source in self.depending)
        step = GradientStep(
            self.graph,
            node,
            tuple(None if source_ref is None else self._tensor(source_ref) for source_ref in fed),
            tuple(known),
            active,
        )
        with self.graph.within(node.name):
            try:
                input_adjoints = self._through(node)(step, self._inner)
            except ValueError as problem:
                if isinstance(problem, NoWayBack):
                    raise NoWayBack(
                        problem.what,
                        problem.node,
                        [*problem.inside, node.name],
                        self._path(node.id),
                    ) from problem
                raise self._no_rule(node, str(problem)) from problem
        for number, adjoint in input_adjoints.items():
            source = fed[number]
            if source is not None:
                self.add(source, adjoint, node.id)

    def _through(self, node: Node) -> Callable[[GradientStep, Reverse], Mapping[int, Tensor]]:
        if node.type == IF and len(node.bodies) == 2:
            return back_through_if
        if node.type in (LOOP, TENSOR_ITERATOR, SCAN) and not node.is_foreign:
            return back_through_loop
        raise ValueError(f"the bodies of {node.type} cannot be differentiated")

    def _inner(
        self, seeds: Sequence[tuple[Tensor, Tensor]], sources: Sequence[Tensor]
    ) -> list[Tensor | None]:
        return adjoints(self.graph, [Seed(target, adjoint) for target, adjoint in seeds], sources)

    def _tensor(self, source: OutputRef) -> Tensor:
        return self.frame.tensors[source.layer][source.output]

    def _no_rule(self, node: Node, why: str) -> NoWayBack:
        operation: Operation | None = self.graph.catalogue.find(node.type, node.opset)
        title = operation.title if operation else node.type
        walked = self._walked_back_by(node)
        origin_clause = f", which computes the gradient of {shorten(walked)!r}," if walked else ""
        return NoWayBack(
            f"{title} {shorten(node.name)!r}{origin_clause} cannot be differentiated: {why}",
            node,
            [],
            self._path(node.id),
        )

    def _walked_back_by(self, node: Node) -> str:
        """Return the name of the node that a gradient node belongs to, from its name; "" for other
        nodes.

        In a body the node may be missing, because unneeded copies are removed.
        """
        names = {candidate.name for candidate in self.frame.nodes[: node.id]}
        parts = node.name.split("/")
        begin = max(
            (place + 1 for place, part in enumerate(parts) if _SCOPE.fullmatch(part)),
            default=len(parts),
        )
        inner = ["/".join(parts[begin:end]) for end in range(len(parts) - 1, begin, -1)]
        return next((candidate for candidate in inner if candidate in names), next(iter(inner), ""))

    def _path(self, layer: LayerId) -> str:
        """Return a path from a source to a target through a node, as names."""
        names = [self.frame.nodes[layer].name]
        place = layer
        while (
            source := next(
                (
                    tensor
                    for tensor in self.inputs.of_node[place]
                    if tensor is not None and tensor in self.depending
                ),
                None,
            )
        ) is not None:
            names.insert(0, self.frame.nodes[source.layer].name)
            if source in self.sources:
                break
            place = source.layer
        reader: LayerId | None = layer
        while reader is not None:
            reader = next(
                (
                    self.came_from[tensor.source]
                    for tensor in self.frame.tensors[reader]
                    if tensor.source in self.came_from
                ),
                None,
            )
            names += [self.frame.nodes[reader].name] if reader is not None else []
        visible = (
            names
            if len(names) <= MOST_NAMES
            else [*names[: MOST_NAMES // 2], "...", *names[-MOST_NAMES // 2 :]]
        )
        return " -> ".join(repr(shorten(name)) if name != "..." else name for name in visible)


MOST_NAMES = 12
"""Maximum number of names of a path in a message."""


def back_through_if(step: GradientStep, reverse: Reverse) -> Mapping[int, Tensor]:
    """Return the adjoints of an If's inputs by index; zeros from a branch that does not use an
    input.
    """
    bodies = [step.node.body(name) for name in ("then", "else")]
    flows = [_flow(step, body) for body in bodies]
    externals = sorted(
        {
            entry.external
            for flow, body in zip(flows, bodies, strict=True)
            for entry in _active_entries(flow, body)
        }
    )
    condition = step.fed[0]
    if not externals or condition is None:
        return {}
    frames, results = [], []
    for body, flow in zip(bodies, flows, strict=True):
        frame = GraphFrame(
            step.graph,
            step.graph.frame,
            f"the backward {body.name} branch of {step.node.name!r}",
        )
        with step.graph.inside(frame):
            branch_adjoints = _build_branch(step, body, flow, externals, reverse)
        pruned = drop_unused(frame, 0, branch_adjoints)
        check_repeatable(step.graph, frame.nodes)
        moved = [pruned.moved(tensor) for tensor in branch_adjoints]
        with step.graph.inside(frame):
            results.append([(frame.result(tensor, "gradient"), tensor) for tensor in moved])
        frames.append(frame)
    outputs = build_if(
        step.graph,
        "If",
        condition,
        frames,
        results,
        walks_back(step.node, [[tensor] for tensor in externals]),
    )
    return dict(zip(externals, outputs, strict=True))


def _flow(step: GradientStep, body: Body) -> Flow:
    target_results = {
        entry.internal
        for number, entry in enumerate(body.outer_outputs)
        if step.adjoints[number] is not None
    }
    active = {entry.internal for entry in body.inputs if entry.external in step.active}
    return Flow.of(BodyTensors.of(step, body), active, target_results)


def _active_entries(flow: Flow, body: Body) -> list[InputMap]:
    return [entry for entry in body.inputs if entry.internal in flow.parameters]


def _build_branch(
    step: GradientStep, body: Body, flow: Flow, externals: list[int], reverse: Reverse
) -> list[Tensor]:
    """Return the adjoint of each input in this branch."""
    graph, inside = step.graph, BodyTensors.of(step, body)
    bound = {}
    for entry in body.inputs:
        fed = step.fed[entry.external] if 0 <= entry.external < len(step.fed) else None
        if fed is not None:
            bound[entry.internal] = graph.frame.bring(fed)
    copies = adopt(graph.frame, body.graph, inside.known, bound)
    seeds = []
    for number, output in enumerate(body.outer_outputs):
        adjoint, source = step.adjoints[number], inside.source(output.internal)
        if adjoint is not None and source is not None and output.internal in flow.results:
            seeds.append((copies[source], graph.frame.bring(adjoint)))
    layers = list({entry.external: entry.internal for entry in _active_entries(flow, body)}.items())
    with graph.within("backward"):
        by_external = dict(
            zip(
                [external for external, _ in layers],
                reverse(seeds, [bound[layer] for _, layer in layers]),
                strict=True,
            )
        )
        adjoints = []
        for external in externals:
            outer, adjoint = step.fed[external], by_external.get(external)
            assert outer is not None
            adjoints.append(
                filled(graph, 0, graph.frame.bring(outer)) if adjoint is None else adjoint
            )
    return adjoints
