"""An operator that is opened: its inputs and attributes, and the parts that all loops share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopscope.builder import ops
from loopscope.builder.graph_builder import Graph
from loopscope.builder.loop import LoopPlan, LoopVariable, Parts
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Known

WIDENED = frozenset({ElementType.F16, ElementType.BF16})
"""Element types that kernels compute in f32."""


@dataclass(frozen=True, slots=True)
class Opening:
    """An operator that is opened, in a graph under construction."""

    graph: Graph
    name: str
    """Name of the operator, and of its Loop."""
    inputs: Mapping[str, Tensor]
    """Inputs by role; inputs that the operator does not have are absent."""
    attributes: Mapping[str, Any]
    """Typed attributes by keyword."""
    rt_info: Mapping[str, object]

    def required(self, role: str) -> Tensor:
        """Return an input; raise ``BuildError`` if it is absent."""
        if role not in self.inputs:
            raise BuildError(f"the input {role!r} is missing")
        return self.inputs[role]

    def wide(self, role: str) -> Tensor | None:
        """Return an input in the type of the computation; None if it is absent."""
        tensor = self.inputs.get(role)
        return None if tensor is None else widened(tensor)

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute; ``default`` if the node does not have it."""
        value = self.attributes.get(name)
        return default if value is None else value

    def plan(
        self,
        count: Tensor,
        variables: Sequence[LoopVariable],
        parts: Sequence[Parts],
        joined_axis: int = 0,
    ) -> LoopPlan:
        """Return the plan of the Loop that takes the place of the operator."""
        return LoopPlan(
            caller="open_as_loop",
            name=self.name,
            trip_count=count,
            starts=self.graph.constant(True, name="always"),
            variables=variables,
            parts=parts,
            joined_axis=joined_axis,
            joined_first=True,
            rt_info=self.rt_info,
        )


def variable(name: str, initial: Tensor) -> LoopVariable:
    """Return a carried value that preserves its shape."""
    return LoopVariable(name, name, initial, initial.shape)


def widened(tensor: Tensor) -> Tensor:
    """Return a tensor in the type that kernels compute in."""
    if tensor.element_type not in WIDENED:
        return tensor
    wide: Tensor = ops.convert(tensor, destination_type="f32")
    return wide


def converted(tensor: Tensor, element_type: ElementType | None) -> Tensor:
    """Return a tensor in another element type; itself if it has that type."""
    if element_type is None or tensor.element_type is element_type:
        return tensor
    result: Tensor = ops.convert(tensor, destination_type=element_type)
    return result


def length(tensor: Tensor, axis: int, name: str = "count") -> Tensor:
    """Return the length of an axis as an i64 scalar."""
    known = tensor.shape.at(axis)
    if known.is_static:
        return tensor.graph.constant(known.length, name=name)
    result: Tensor = ops.gather(ops.shape_of(tensor), axis, 0, name=name)
    return result


def lengths_of(*tensors_and_axes: tuple[Tensor, int]) -> Tensor:
    """Return the lengths of some axes as a vector, to make shapes with."""
    parts = [ops.unsqueeze(length(tensor, axis), [0]) for tensor, axis in tensors_and_axes]
    result: Tensor = parts[0] if len(parts) == 1 else ops.concat(parts, axis=0)
    return result


def zeros(shape: Tensor, element_type: ElementType | None, known: Known) -> Tensor:
    """Return zeros of a shape that is computed at run time; ``known`` has its known lengths."""
    result: Tensor = ops.broadcast(shape.graph.constant(0, element_type or ElementType.F32), shape)
    result.set_shape(known.shape)
    return result


def static_length(tensor: Tensor, axis: int, role: str) -> int:
    """Return the length of an axis; raise ``BuildError`` if it is only known at run time."""
    known = tensor.shape.at(axis)
    if not known.is_static:
        raise BuildError(
            f"the length of axis {axis} of {role} is only known at run time: "
            "the loop is built for a known length"
        )
    return known.length
