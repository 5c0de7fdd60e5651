"""A node to translate, with the accessors that translation rules use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.errors import WriteError
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Node
from loopscope.write.tensorflow.nodes import GraphDefNodes, GraphDefTensor


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A node to translate, its target graph, its inputs, and their values where constant."""

    nodes: GraphDefNodes
    node: Node
    inputs: Sequence[GraphDefTensor]
    constants: Sequence[np.ndarray | None]

    def text(self, name: str, default: str = "") -> str:
        return str(self.node.attributes.get(name, default))

    def is_true(self, name: str, default: bool = False) -> bool:
        return self.text(name, str(default)).lower() in ("true", "1")

    def numbers(self, name: str) -> list[int]:
        return [int(text) for text in self.text(name).split(",") if text.strip()]

    def constant(self, index: int) -> np.ndarray:
        """Return the value of an input; ``WriteError`` if it is not constant."""
        value = self.constants[index] if index < len(self.constants) else None
        if value is None:
            raise WriteError(
                f"input {index} of {self.node.type} is computed, "
                "but it is an attribute in TensorFlow"
            )
        return value

    def axis(self, index: int) -> int:
        """Return the value of an input that is a single integer."""
        return int(self.constant(index).reshape(-1)[0])

    @property
    def kind(self) -> ElementType:
        return self.inputs[0].element_type


Rule = Callable[[NodeRequest], Sequence[GraphDefTensor]]
