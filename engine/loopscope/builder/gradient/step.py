"""Steps of the reverse pass: the gradient rule of an operation, or a Loop, TensorIterator or If
with the gradient flow in its bodies.

The gradient flows through the values that depend on a source and on which the target depends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.builder.graph_builder import Graph
from loopscope.builder.iterate import scan
from loopscope.builder.operations import Operations
from loopscope.builder.tensor import Tensor
from loopscope.checks.order import order
from loopscope.checks.propagate import Propagated, propagate
from loopscope.ir.address import ROOT
from loopscope.ir.address import nodes as nodes_inside
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import Body, Edge, LayerId, Model, Node, OutputRef, Port
from loopscope.ir.model import ModelGraph as FinishedGraph
from loopscope.ir.rt_info import has_way_back
from loopscope.object_cache import cache_by_object
from loopscope.ops.declare import NOTHING_KNOWN, Known, Operation, Role, typed
from loopscope.ops.derivative import Reverse, WithGaps


def reverse_of(
    graph: Graph,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    adjoints: Sequence[Tensor | None],
    attributes: dict[str, Any],
    places: Sequence[int] = (),
) -> Reverse:
    """Return the argument of a gradient rule."""

    def several(type: str, /, *inputs: Any, **attributes: Any) -> tuple[Tensor, ...]:
        return graph.apply(type, inputs, attributes)

    ops = _operations(graph)
    return Reverse(
        tuple(inputs),
        tuple(outputs),
        tuple(adjoints),
        attributes,
        ops,
        several,
        graph.constant,
        scan,
        tuple(places),
    )


@cache_by_object
def _operations(graph: Graph) -> Operations:
    """Return the operation functions, which are created once per graph and not per node."""
    return Operations(graph.catalogue)


def filled(graph: Graph, number: float, like: Tensor) -> Tensor:
    """Return a tensor with one number everywhere, in the type and shape of ``like``."""
    return graph.lift(reverse_of(graph, (), (), (), {}).filled(number, like))


def zeros(graph: Graph, known: Known) -> Tensor:
    """Return zeros of a known type and shape."""
    zero = np.zeros((), known.element_type.dtype if known.element_type else np.float32)
    lengths = np.array(known.shape.lengths, np.int64)
    return (
        graph.apply("Broadcast", (zero, lengths), {})[0] if lengths.size else graph.constant(zero)
    )


def adjoints_of_inputs(
    graph: Graph,
    node: Node,
    operation: Operation,
    inputs: Mapping[int, Tensor],
    adjoints: Sequence[Tensor | None],
) -> Sequence[Tensor | None]:
    """Return the adjoints of a node's connected inputs, by position, from the operation's rule.

    ``ValueError`` if the rule does not support these attributes.
    """
    assert operation.gradient is not None
    if len(inputs) < max(inputs, default=-1) + 1 and not isinstance(operation.gradient, WithGaps):
        raise ValueError("it omits an input before the last one")
    outputs = graph.frame.tensors[node.id]
    step = reverse_of(
        graph,
        tuple(inputs.values()),
        outputs,
        adjoints,
        typed(operation, node.attributes),
        tuple(inputs),
    )
    results = operation.gradient(step)
    if len(results) != len(inputs):
        raise ValueError(f"its rule gives {len(results)} adjoints for {len(inputs)} inputs")
    return [adjoint if adjoint is None else graph.lift(adjoint) for adjoint in results]


@dataclass(frozen=True, slots=True, eq=False)
class GradientStep:
    """A node with bodies, its inputs, the adjoints of its outputs, and the inputs that depend on a
    source.
    """

    graph: Graph
    node: Node
    fed: tuple[Tensor | None, ...]
    adjoints: tuple[Tensor | None, ...]
    active: frozenset[int]

    @property
    def known(self) -> list[Known]:
        """Knowledge about the inputs."""
        return [NOTHING_KNOWN if tensor is None else tensor.known for tensor in self.fed]


def check_repeatable(graph: Graph, nodes: Sequence[Node]) -> None:
    """Raise ``ValueError`` for operations that may return another value when repeated: random
    numbers, and variables.
    """
    for _, node in nodes_inside(Model(FinishedGraph(tuple(nodes), ()))):
        operation = graph.catalogue.find(node.type, node.opset)
        if operation is not None and (operation.stateful or operation.role is Role.READ_VALUE):
            clause = "draws random numbers" if operation.stateful else "reads a variable"
            raise ValueError(
                f"{operation.title} {node.name!r} in it {clause}, which cannot be repeated in the "
                "backward pass"
            )


@dataclass(frozen=True, slots=True, eq=False)
class BodyTensors:
    """Knowledge about the tensors of a body over all its iterations."""

    body: Body
    address: str
    propagated: Propagated

    @staticmethod
    def of(step: GradientStep, body: Body) -> BodyTensors:
        alone, inputs = _isolate(step)
        return BodyTensors(
            body, f"{ROOT}/region/{body.name}", propagate(alone, step.graph.catalogue, inputs)
        )

    def known(self, layer: LayerId, output: int = 0) -> Known:
        """Return the knowledge about an output, or about the input of a Result."""
        return self.propagated.output(self.address, layer, output)

    def source(self, result: LayerId) -> OutputRef | None:
        """Return the source of a Result."""
        sources = self.body.graph.sources.get(result, ())
        return sources[0] if sources else None


def _isolate(step: GradientStep) -> tuple[Model, dict[LayerId, Known]]:
    """Return a model with the node only, its inputs as Parameters, and the knowledge about
    these.
    """
    node = step.node
    region_id = LayerId(len(node.inputs))
    feeders, edges = [], []
    inputs: dict[LayerId, Known] = {}
    for number, (port, fed) in enumerate(zip(node.inputs, step.fed, strict=True)):
        if fed is not None:
            layer = LayerId(number)
            feeders.append(
                Node(layer, f"input {number}", "Parameter", "opset1", outputs=(Port(0),))
            )
            edges.append(Edge(layer, 0, region_id, port.id))
            inputs[layer] = fed.known
    alone = Node(
        region_id,
        "region",
        node.type,
        node.opset,
        node.attributes,
        node.inputs,
        node.outputs,
        node.bodies,
    )
    return Model(
        FinishedGraph((*feeders, alone), tuple(edges)), dialect=step.graph.catalogue.dialect
    ), inputs


@dataclass(frozen=True, slots=True)
class Flow:
    """Gradient flow through one body, over all its iterations."""

    parameters: frozenset[LayerId]
    """Parameters whose adjoint is needed and can be nonzero."""
    results: frozenset[LayerId]
    """Results that depend on a source and that the target depends on."""

    @staticmethod
    def of(inside: BodyTensors, active: Collection[LayerId], targets: Collection[LayerId]) -> Flow:
        """Return the gradient flow through a body.

        ``active``: Parameters that depend on an outer source. ``targets``: Results that the outer
        target depends on.
        """
        body = inside.body
        starts, depending = set(active), set[OutputRef]()
        while True:
            depending = _depending(inside, starts)
            later = {
                edge.to_layer
                for edge in body.back_edges
                if inside.source(edge.from_layer) in depending
            }
            if later <= starts:
                break
            starts |= later
        ends, reached = set(targets), set[OutputRef]()
        while True:
            reached = _reached(inside, ends, depending)
            earlier = {
                edge.from_layer
                for edge in body.back_edges
                if OutputRef(edge.to_layer, 0) in reached
            }
            if earlier <= ends:
                break
            ends |= earlier
        parameters = frozenset(layer for layer in starts if OutputRef(layer, 0) in reached)
        return Flow(
            parameters, frozenset(layer for layer in ends if inside.source(layer) in depending)
        )


def is_real(inside: BodyTensors, source: OutputRef) -> bool:
    """Return True if a tensor of the body can have a derivative."""
    element_type = inside.known(source.layer, source.output).element_type
    return element_type is None or element_type in REAL_FLOATS


def _depending(inside: BodyTensors, parameters: Collection[LayerId]) -> set[OutputRef]:
    graph = inside.body.graph
    dependent = {source for layer in parameters if is_real(inside, source := OutputRef(layer, 0))}
    for layer in order(graph).layers:
        node = graph.by_id[layer]
        if has_way_back(node) and any(source in dependent for source in graph.sources[layer]):
            outputs = (OutputRef(layer, number) for number in range(len(node.outputs)))
            dependent |= {source for source in outputs if is_real(inside, source)}
    return dependent


def _reached(
    inside: BodyTensors, results: Collection[LayerId], depending: Collection[OutputRef]
) -> set[OutputRef]:
    graph = inside.body.graph
    reached = {
        source
        for layer in results
        if (source := inside.source(layer)) is not None and source in depending
    }
    for layer in reversed(order(graph).layers):
        if any(
            OutputRef(layer, number) in reached for number in range(len(graph.by_id[layer].outputs))
        ):
            reached |= {
                source
                for source in graph.sources[layer]
                if source is not None and source in depending
            }
    return reached
