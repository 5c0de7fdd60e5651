"""An operator that is opened: its inputs, attributes and lengths, and the parts of all loops.

A model may compute sequence lengths from the number of steps itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.builder import ops
from loopscope.builder.graph_builder import Graph
from loopscope.builder.loop import Entered, LoopPlan, LoopVariable, Parts
from loopscope.builder.tensor import Tensor, TensorGraph
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import ModelGraph, OutputRef
from loopscope.ir.shape import Dimension, PartialShape, static
from loopscope.ops.declare import Known

WIDENED = frozenset({ElementType.F16, ElementType.BF16})
"""Element types that kernels compute in f32."""
_MOST_CONSTANT_ZEROS = 1 << 16
"""Number of elements up to which zeros become a Const."""


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


def variable(
    name: str, initial: Tensor, lengths: Sequence[int | Dimension] | None = None
) -> LoopVariable:
    """Return a carried value with these lengths in all iterations.

    Without ``lengths``, it has the shape of its initial value.
    """
    if lengths is None:
        return LoopVariable(name, name, initial, initial.shape)
    shape = PartialShape(tuple(static(item) if isinstance(item, int) else item for item in lengths))
    initial.set_shape(shape)
    return LoopVariable(name, name, initial, shape)


def ranked(tensor: Tensor, rank: int) -> Tensor:
    """Return a tensor of this rank; raise ``BuildError`` if it is known to have another one."""
    if tensor.rank not in (None, rank):
        raise BuildError(f"{tensor.name} has shape {tensor.shape}, expected {rank} lengths")
    tensor.set_shape([None] * rank)
    return tensor


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


Length = int | tuple[Tensor, int]
"""A known length, or a tensor and the axis whose length is meant."""


def shape_of(graph: TensorGraph, lengths: Sequence[Length]) -> Tensor:
    """Return a shape as a tensor."""
    rows = [
        graph.constant(np.array([item], np.int64))
        if isinstance(item, int)
        else ops.unsqueeze(length(*item), [0])
        for item in lengths
    ]
    result: Tensor = rows[0] if len(rows) == 1 else ops.concat(rows, axis=0)
    return result


def sized(outputs: Tensor, lengths: Sequence[Length]) -> Tensor:
    """Return the outputs of all iterations, reshaped to lengths that are known at run time.

    Without iterations, a Loop returns 0 for each length that is not known before a run.
    """
    if outputs.shape.is_static:
        return outputs
    shape = shape_of(outputs.graph, lengths)
    result: Tensor = ops.reshape(outputs, shape, special_zero=False, name="all_outputs")
    return result


def zeros(
    graph: TensorGraph, lengths: Sequence[Length], element_type: ElementType | None
) -> Tensor:
    """Return zeros: a Const if all lengths are known before a run and the zeros are few."""
    shape = PartialShape(
        tuple(
            static(item) if isinstance(item, int) else item[0].shape.at(item[1]) for item in lengths
        )
    )
    if shape.is_static and math.prod(shape.lengths) <= _MOST_CONSTANT_ZEROS:
        array = np.zeros(shape.lengths, (element_type or ElementType.F32).dtype)
        return graph.constant(array, name="zeros")
    zero = graph.constant(0, element_type or ElementType.F32)
    result: Tensor = ops.broadcast(zero, shape_of(graph, lengths))
    result.set_shape(shape)
    return result


def sequence_of_token(entered: Entered, bounds: Tensor) -> Tensor:
    """Return the number of the sequence that the token of an iteration belongs to, ``[1]``.

    ``bounds``: the first token of each sequence, then the number of tokens.
    """
    ends = ops.convert(bounds, destination_type="i64")[1:]
    has_ended = ops.less_equal(ends, entered.body.iteration_number("token"))
    counted = ops.convert(has_ended, destination_type="i64")
    sequence: Tensor = ops.reduce_sum(counted, [0], keep_dims=True, name="sequence")
    return sequence


def static_length(tensor: Tensor, axis: int, role: str) -> int:
    """Return the length of an axis; raise ``BuildError`` if it is only known at run time."""
    known = tensor.shape.at(axis)
    if not known.is_static:
        raise BuildError(
            f"the length of axis {axis} of {role} is only known at run time: "
            "the loop is built for a known length"
        )
    return known.length


Knowledge = Callable[[OutputRef], Known]
"""Function that returns what is known of a tensor of the graph."""
_REPEATING = frozenset(
    {
        "Broadcast",
        "Cast",
        "Convert",
        "Expand",
        "Identity",
        "Reshape",
        "Squeeze",
        "Tile",
        "Unsqueeze",
    }
)
"""Operations whose output has the elements of their first input, some of them several times."""
_LONGEST_CHAIN = 20


def span_all_steps(
    graph: ModelGraph, lengths: OutputRef, data: OutputRef, axis: int, known: Knowledge
) -> bool:
    """Return True if every sequence spans the whole length of ``axis`` of ``data``.

    The lengths are then constants of at least that length, or copies of it: a Gather from the
    shape of the data. Return False for lengths that are computed in another way.
    """
    value, steps = known(lengths).value, known(data).shape.at(axis)
    if value is not None and steps.is_static:
        return bool(np.all(value >= steps.length))
    source: OutputRef | None = lengths
    for _ in range(_LONGEST_CHAIN):
        if source is None:
            return False
        node = graph.by_id[source.layer]
        inputs = graph.sources[node.id]
        if node.type == "Gather" and len(inputs) > 1 and inputs[0] and inputs[1]:
            places = known(inputs[1]).value
            is_axis = places is not None and places.size > 0 and bool(np.all(places == axis))
            return is_axis and _is_shape_of(graph, inputs[0], data)
        if node.type not in _REPEATING or not inputs:
            return False
        source = inputs[0]
    return False


def _is_shape_of(graph: ModelGraph, source: OutputRef, data: OutputRef) -> bool:
    """Return True if a tensor is the shape of ``data``, perhaps in another integer type."""
    node = graph.by_id[source.layer]
    while node.type in ("Cast", "Convert") and (inner := graph.sources[node.id][0]) is not None:
        node = graph.by_id[inner.layer]
    return node.type in ("Shape", "ShapeOf") and graph.sources[node.id][0] == data
