"""Variables of a TensorFlow Lite file: their handles, and their current values in a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from loopscope.errors import shorten
from loopscope.ir.shape import PartialShape
from loopscope.read.tflite.drafts import Draft, DraftValue
from loopscope.read.tflite.operator_nodes import declared
from loopscope.read.tflite.schema import OperatorInfo, TensorInfo


class Handle(NamedTuple):
    """The handle of a variable, which is not a tensor in the Model."""

    variable: str


Content = DraftValue | Handle
Variables = Mapping[str, TensorInfo]


@dataclass(eq=False)
class VariableFrame:
    """A graph under construction, with the current values of variables."""

    draft: Draft
    is_outermost: bool = False
    values: dict[str, DraftValue] = field(default_factory=dict)
    assigned: dict[str, None] = field(default_factory=dict)
    initial: dict[str, DraftValue] = field(default_factory=dict)

    def read(self, variable: str, tensor: TensorInfo) -> DraftValue:
        """Return the value of a variable. The outermost graph adds a ReadValue at the first use."""
        value = self.values.get(variable)
        if value is None:
            if not self.is_outermost:
                raise ValueError(
                    f"variable {shorten(variable, 60)!r} is read in a subgraph that does not"
                    " receive it"
                )
            first = self.initial.get(variable)
            attributes = _variable_attributes(variable, tensor, first)
            inputs = () if first is None else (first,)
            value = self.draft.add(
                "ReadValue", "opset6", variable, inputs, (declared(tensor),), attributes
            )[0]
            self.values[variable] = value
        return value

    def assign(self, variable: str, value: DraftValue) -> None:
        """Set the value of a variable."""
        self.values[variable] = value
        self.assigned[variable] = None


def tensor_outputs(
    inputs: Sequence[Content], outputs: Sequence[TensorInfo], info: OperatorInfo
) -> list[TensorInfo]:
    if len(inputs) != len(outputs):
        raise ValueError(
            f"{info.name} has {len(inputs)} inputs and {len(outputs)} outputs, expected as many"
        )
    return [
        tensor
        for content, tensor in zip(inputs, outputs, strict=True)
        if not isinstance(content, Handle)
    ]


def variable_name(info: OperatorInfo) -> str:
    if info.options is None:
        return "variable"
    container, name = (info.options.text(field, 10_000) for field in (0, 1))
    return "/".join(filter(None, (container, name))) or "variable"


def _variable_attributes(
    variable: str, tensor: TensorInfo, first: DraftValue | None
) -> dict[str, str]:
    shape: PartialShape = tensor.shape if first is None else first.shape
    lengths = "..." if shape.rank is None else str(shape)[1:-1]
    return {
        "variable_id": variable,
        "variable_type": str(tensor.element_type or "dynamic"),
        "variable_shape": lengths,
    }


def tensors_of(contents: Iterable[Content]) -> list[DraftValue]:
    return [content for content in contents if isinstance(content, DraftValue)]


def require_tensor(content: Content | None, where: str) -> DraftValue:
    if isinstance(content, DraftValue):
        return content
    actual = (
        "no tensor" if content is None else f"the variable {shorten(content.variable, 60)!r} itself"
    )
    raise ValueError(f"{shorten(where, 60)} takes {actual}, expected a tensor")


def require_handle(info: OperatorInfo, inputs: Sequence[Content | None]) -> str:
    content = inputs[0] if inputs else None
    if not isinstance(content, Handle):
        raise ValueError(f"{info.name} takes a tensor, expected the handle of a variable")
    return content.variable
