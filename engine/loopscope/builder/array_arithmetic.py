"""What arrays of tensors are computed with: places, sizes, zeros, and growing."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.builder.graph_builder import Graph
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import INDEX_TYPES, ElementType


def checked_size(size: Any) -> int:
    """A number of elements; ``BuildError`` when it is none."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise BuildError(
            f"TensorArray: size is {size!r}, expected a whole number of at least 0, or a scalar tensor"
        )
    return int(size)


def checked_place(index: Any, bound: int | None, called: str) -> Any:
    """A tensor as it is, a whole number as an array; ``BuildError`` when it is none, or not
    below the bound.
    """
    if isinstance(index, Tensor):
        return index
    if (
        isinstance(index, bool)
        or not isinstance(index, (int, np.integer))
        or index < 0
        or (bound is not None and index >= bound)
    ):
        below = "" if bound is None else f", below the size, {bound}"
        raise BuildError(f"{called}: index is {index!r}, expected a whole number from 0 on{below}")
    return np.array(index)


def one_place(index: Any, graph: Graph) -> Any:
    """A place as a list of one."""
    if not isinstance(index, Tensor):
        return index.reshape(1)
    return graph.apply("Reshape", (index, np.array([1])), {"special_zero": False})[0]


def places(graph: Graph, indices: Any, called: str) -> Tensor:
    """Several places as a tensor; ``BuildError`` when they are none."""
    found = graph.lift(indices, what=f"TensorArray.{called}(): indices")
    if found.element_type not in INDEX_TYPES or found.rank not in (None, 1):
        raise BuildError(
            f"TensorArray.{called}(): indices is {found!r}, expected whole numbers in one axis"
        )
    return found


def length_of(tensor: Tensor) -> Tensor:
    """The length of the first axis, an i64 scalar."""
    lengths = tensor.graph.apply("ShapeOf", (tensor,), {})[0]
    return tensor.graph.apply("Gather", (lengths, np.array(0), np.array(0)), {})[0]


def as_i64(tensor: Tensor) -> Tensor:
    """Whole numbers of any type as i64."""
    return (
        tensor
        if tensor.element_type is ElementType.I64
        else tensor.graph.apply("Convert", (tensor,), {"destination_type": "i64"})[0]
    )


def zeros(size: Tensor, element_lengths: np.ndarray, zero: Tensor) -> Tensor:
    """So many elements of zeros."""
    graph = size.graph
    with graph.within("TensorArray"):
        length = graph.apply("Reshape", (as_i64(size), np.array([1])), {"special_zero": False})[0]
        lengths = (
            graph.apply("Concat", (length, element_lengths), {"axis": 0})[0]
            if element_lengths.size
            else length
        )
        return graph.apply("Broadcast", (zero, lengths), {})[0]


def with_places(stacked: Tensor, where: Any) -> Tensor:
    """At least as many elements as the places need: zeros are put after the last one."""
    graph, dimensions = stacked.graph, stacked.shape.dimensions or ()
    last = as_i64(
        graph.apply("ReduceMax", (graph.lift(where), np.array([0])), {"keep_dims": False})[0]
    )
    missing = graph.apply("Maximum", (last + 1 - length_of(stacked), np.int64(0)), {})[0]
    zero = graph.constant(
        np.zeros((), stacked.element_type.dtype if stacked.element_type else np.float32)
    )
    more = zeros(missing, np.array([one.length for one in dimensions[1:]], np.int64), zero)
    return graph.apply("Concat", (stacked, more), {"axis": 0})[0]


def first_axes_joined(stacked: Tensor) -> Tensor:
    """[a, b, ...] as [a * b, ...]."""
    graph = stacked.graph
    lengths = graph.apply("ShapeOf", (stacked,), {})[0]
    first = graph.apply("ReduceProd", (lengths[:2], np.array([0])), {"keep_dims": True})[0]
    whole = graph.apply("Concat", (first, lengths[2:]), {"axis": 0})[0]
    return graph.apply("Reshape", (stacked, whole), {"special_zero": False})[0]
