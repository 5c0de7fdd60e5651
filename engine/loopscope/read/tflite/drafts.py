"""A graph under construction: nodes, edges, and the values of node outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Body, Edge, LayerId, ModelGraph, Node, Port
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.read.file_limits import ReadLimits


class DraftValue(NamedTuple):
    """An output of a node (layer and port) with its declared type and shape."""

    layer: LayerId
    port: int
    element_type: ElementType | None
    shape: PartialShape


class Declared(NamedTuple):
    """Declared element type, shape, and tensor names of an output."""

    element_type: ElementType | None = None
    shape: PartialShape = DYNAMIC
    names: tuple[str, ...] = ()


class Budget:
    """Count of the nodes and name characters of all graphs of a model, against the limits."""

    def __init__(self, limits: ReadLimits) -> None:
        self.limits = limits
        self._nodes = 0
        self._characters = 0

    def take(self, count: int, name: str) -> None:
        """Count a node and its name; a node with many ports has a larger ``count``.

        ``ValueError`` if a limit is exceeded.
        """
        self._nodes += count
        self._characters += len(name)
        if self._characters > self.limits.addresses:
            raise ValueError(
                f"the names of nodes have more than {self.limits.addresses:,} characters,"
                " the limit 'addresses'"
            )
        if self._nodes > self.limits.nodes:
            raise ValueError(
                f"the model has more nodes than {self.limits.nodes:,}, the limit 'nodes'"
                " (subgraphs count where they are called)"
            )


class Draft:
    """Nodes and edges of one graph under construction, with unique node names."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self._names: dict[str, int] = {}

    def graph(self, name: str = "") -> ModelGraph:
        """Return the finished graph."""
        return ModelGraph(tuple(self._nodes), tuple(self._edges), name)

    def add(
        self,
        operation: str,
        opset: str,
        name: str,
        inputs: Sequence[DraftValue | None] = (),
        outputs: Sequence[Declared] = (Declared(),),
        attributes: Mapping[str, str] | None = None,
        bodies: tuple[Body, ...] = (),
        constant: Constant | None = None,
    ) -> tuple[DraftValue, ...]:
        """Add a node and return its outputs. An input that is None becomes a port without an
        edge.
        """
        self._budget.take(1 + (len(inputs) + len(outputs)) // 16, name)
        layer = LayerId(len(self._nodes))
        input_ports = [
            Port(index) if value is None else Port(index, value.element_type, value.shape)
            for index, value in enumerate(inputs)
        ]
        output_ports = [
            Port(len(inputs) + index, *declared) for index, declared in enumerate(outputs)
        ]
        for index, value in enumerate(inputs):
            if value is not None:
                self._edges.append(Edge(value.layer, value.port, layer, index))
        self._nodes.append(
            Node(
                layer,
                self._unique(name),
                operation,
                opset,
                attributes or {},
                tuple(input_ports),
                tuple(output_ports),
                bodies,
                constant,
            )
        )
        return tuple(
            DraftValue(layer, port.id, port.element_type, port.shape) for port in output_ports
        )

    def constant(
        self, name: str, content: Constant | np.ndarray | np.generic, names: tuple[str, ...] = ()
    ) -> DraftValue:
        """Add a Const and return its value."""
        constant = content if isinstance(content, Constant) else Constant.of(content)
        declared = Declared(constant.element_type, PartialShape.of(constant.shape), names)
        return self.add(
            "Const",
            "opset1",
            name,
            (),
            (declared,),
            constant_attributes(constant),
            constant=constant,
        )[0]

    def parameter(self, name: str, declared: Declared) -> DraftValue:
        """Add a Parameter and return its value."""
        shape = "..." if declared.shape.rank is None else str(declared.shape)[1:-1]
        attributes = {"shape": shape, "element_type": str(declared.element_type or "dynamic")}
        return self.add("Parameter", "opset1", name, (), (declared,), attributes)[0]

    def result(self, name: str, value: DraftValue) -> LayerId:
        """Add a Result and return its layer."""
        self.add("Result", "opset1", name, (value,), ())
        return LayerId(len(self._nodes) - 1)

    def constant_of(self, value: DraftValue | None) -> np.ndarray | None:
        """Return the array of a Const's value; None for any other value."""
        constant = self._nodes[value.layer].constant if value is not None else None
        return constant.array() if constant is not None else None

    def _unique(self, name: str) -> str:
        count = self._names.get(name)
        while count is not None:
            candidate, count = f"{name}_{count + 1}", count + 1
            if candidate not in self._names:
                self._names[name], name, count = count, candidate, None
        self._names[name] = 0
        return name


def constant_attributes(constant: Constant) -> dict[str, str]:
    """Return the attributes of a Const without the location of its data."""
    return {"element_type": str(constant.element_type), "shape": ",".join(map(str, constant.shape))}
