"""A Loop, TensorIterator or If as a step of the reverse pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopscope.builder.graph_builder import Graph
from loopscope.builder.tensor import Tensor
from loopscope.checks.propagate import Propagated, propagate
from loopscope.ir.address import ROOT
from loopscope.ir.model import Body, Edge, LayerId, Model, Node, OutputRef, Port
from loopscope.ir.model import ModelGraph as FinishedGraph
from loopscope.ir.walk import nodes as nodes_inside
from loopscope.ops.declare import NOTHING_KNOWN, Known, Role


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
