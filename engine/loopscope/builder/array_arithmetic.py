"""Tensor expressions that arrays of tensors are built from: indices, sizes, zeros, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.builder.tensor import Tensor, TensorGraph
from loopscope.errors import BuildError
from loopscope.ir.element_type import INDEX_TYPES, ElementType


def check_size(size: Any) -> int:
    """Return a number of elements as int, or raise ``BuildError`` if it is invalid."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise BuildError(
            f"TensorArray: size is {size!r}, expected a whole number of at least 0, or a scalar "
            "tensor"
        )
    return int(size)


def check_index(index: Any, bound: int | None, caller: str) -> Any:
    """Return a tensor unchanged, or an integer index as an array.

    ``BuildError`` if the index is not an integer, is negative, or is not below the bound.
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
        raise BuildError(f"{caller}: index is {index!r}, expected a whole number from 0 on{below}")
    return np.array(index)


def index_list(index: Any, graph: TensorGraph) -> Any:
    """Return an index as a list of one element."""
    if not isinstance(index, Tensor):
        return index.reshape(1)
    return graph.apply("Reshape", (index, np.array([1])), {"special_zero": False})[0]


def places(graph: TensorGraph, indices: Any, caller: str) -> Tensor:
    """Return a list of indices as a tensor, or raise ``BuildError`` if they are invalid."""
    tensor = graph.lift(indices, what=f"TensorArray.{caller}(): indices")
    if tensor.element_type not in INDEX_TYPES or tensor.rank not in (None, 1):
        raise BuildError(
            f"TensorArray.{caller}(): indices is {tensor!r}, expected whole numbers in one axis"
        )
    return tensor


def length_of(tensor: Tensor) -> Tensor:
    """Return the length of the first axis as an i64 scalar."""
    lengths = tensor.graph.apply("ShapeOf", (tensor,), {})[0]
    return tensor.graph.apply("Gather", (lengths, np.array(0), np.array(0)), {})[0]


def as_i64(tensor: Tensor) -> Tensor:
    """Return integers of any type as i64."""
    return (
        tensor
        if tensor.element_type is ElementType.I64
        else tensor.graph.apply("Convert", (tensor,), {"destination_type": "i64"})[0]
    )


def zeros(size: Tensor, element_lengths: np.ndarray, zero: Tensor) -> Tensor:
    """Return ``size`` elements of zeros."""
    graph = size.graph
    with graph.within("TensorArray"):
        length = graph.apply("Reshape", (as_i64(size), np.array([1])), {"special_zero": False})[0]
        lengths = (
            graph.apply("Concat", (length, element_lengths), {"axis": 0})[0]
            if element_lengths.size
            else length
        )
        return graph.apply("Broadcast", (zero, lengths), {})[0]


def grow_to_indices(stacked: Tensor, where: Any) -> Tensor:
    """Return an array that is long enough for the given indices, padded with zeros."""
    graph, dimensions = stacked.graph, stacked.shape.dimensions or ()
    last = as_i64(
        graph.apply("ReduceMax", (graph.lift(where), np.array([0])), {"keep_dims": False})[0]
    )
    missing = graph.apply("Maximum", (last + 1 - length_of(stacked), np.int64(0)), {})[0]
    zero = graph.constant(
        np.zeros((), stacked.element_type.dtype if stacked.element_type else np.float32)
    )
    more = zeros(missing, np.array([length.length for length in dimensions[1:]], np.int64), zero)
    return graph.apply("Concat", (stacked, more), {"axis": 0})[0]


def merge_first_axes(stacked: Tensor) -> Tensor:
    """Reshape [a, b, ...] to [a * b, ...]."""
    graph = stacked.graph
    lengths = graph.apply("ShapeOf", (stacked,), {})[0]
    first = graph.apply("ReduceProd", (lengths[:2], np.array([0])), {"keep_dims": True})[0]
    whole = graph.apply("Concat", (first, lengths[2:]), {"axis": 0})[0]
    return graph.apply("Reshape", (stacked, whole), {"special_zero": False})[0]
