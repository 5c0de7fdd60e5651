"""A Loop, TensorIterator or If that the reverse walk has come to."""

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
    """A node with bodies, what feeds it, how the target changes with its outputs, and which of
    its inputs depend on a source.
    """

    graph: Graph
    node: Node
    fed: tuple[Tensor | None, ...]
    adjoints: tuple[Tensor | None, ...]
    active: frozenset[int]

    @property
    def known(self) -> list[Known]:
        """What is known of the inputs."""
        return [NOTHING_KNOWN if one is None else one.known for one in self.fed]


def must_be_repeatable(graph: Graph, nodes: Sequence[Node]) -> None:
    """``ValueError`` for what would be something else when it is computed again: random numbers,
    and variables, which may have changed.
    """
    for _, node in nodes_inside(Model(FinishedGraph(tuple(nodes), ()))):
        operation = graph.catalogue.find(node.type, node.opset)
        if operation is not None and (operation.stateful or operation.role is Role.READ_VALUE):
            found = "draws random numbers" if operation.stateful else "reads a variable"
            raise ValueError(
                f"{operation.title} {node.name!r} in it {found}, and that cannot be repeated on the way back"
            )


@dataclass(frozen=True, slots=True, eq=False)
class BodyTensors:
    """What is known of the tensors of a body in any of its iterations."""

    body: Body
    address: str
    propagated: Propagated

    @staticmethod
    def of(step: GradientStep, body: Body) -> BodyTensors:
        alone, inputs = _alone(step)
        return BodyTensors(
            body, f"{ROOT}/region/{body.name}", propagate(alone, step.graph.catalogue, inputs)
        )

    def known(self, layer: LayerId, output: int = 0) -> Known:
        """Of an output; of a Result, of what it is given."""
        return self.propagated.output(self.address, layer, output)

    def source(self, result: LayerId) -> OutputRef | None:
        """What a Result is given."""
        sources = self.body.graph.sources.get(result, ())
        return sources[0] if sources else None


def _alone(step: GradientStep) -> tuple[Model, dict[LayerId, Known]]:
    """A model of the node alone, each of its inputs a Parameter, and what is known of those."""
    node = step.node
    own = LayerId(len(node.inputs))
    feeders, edges = [], []
    inputs: dict[LayerId, Known] = {}
    for number, (port, fed) in enumerate(zip(node.inputs, step.fed, strict=True)):
        if fed is not None:
            layer = LayerId(number)
            feeders.append(
                Node(layer, f"input {number}", "Parameter", "opset1", outputs=(Port(0),))
            )
            edges.append(Edge(layer, 0, own, port.id))
            inputs[layer] = fed.known
    alone = Node(
        own,
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
