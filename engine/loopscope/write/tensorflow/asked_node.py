"""A node that is to be translated, and what its rule asks of it."""

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
    """A node to be translated: where to, what it takes, and which of that is constant."""

    nodes: GraphDefNodes
    node: Node
    inputs: Sequence[GraphDefTensor]
    constants: Sequence[np.ndarray | None]

    def text(self, name: str, default: str = "") -> str:
        return str(self.node.attributes.get(name, default))

    def is_true(self, name: str, default: bool = False) -> bool:
        return self.text(name, str(default)).lower() in ("true", "1")

    def numbers(self, name: str) -> list[int]:
        return [int(one) for one in self.text(name).split(",") if one.strip()]

    def constant(self, at: int) -> np.ndarray:
        """The value of an input; ``WriteError`` where it is not constant."""
        value = self.constants[at] if at < len(self.constants) else None
        if value is None:
            raise WriteError(
                f"input {at} of {self.node.type} is computed, and TensorFlow has it as an attribute"
            )
        return value

    def axis(self, at: int) -> int:
        """An input that is one whole number."""
        return int(self.constant(at).reshape(-1)[0])

    @property
    def kind(self) -> ElementType:
        return self.inputs[0].element_type


Rule = Callable[[NodeRequest], Sequence[GraphDefTensor]]
