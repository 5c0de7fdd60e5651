"""``TensorArray``: numbered tensors of one shape that a loop writes and reads, kept as one tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.build.graph_builder import checked_shape, graph_of
from engine.build.lift import ElementTypeLike, element_type_of
from engine.build.tensor import Tensor
from engine.build.written import Written
from engine.errors import BuildError
from engine.ir.element_type import ElementType


@dataclass(frozen=True, slots=True, eq=False, init=False, weakref_slot=True)
class TensorArray:
    """``TensorArray("f32", size, element_shape)``: numbered tensors of one type and shape, zero until they are written.

    Writing gives a new array, so that an array is a loop variable like any other; a model that loses what was written is refused.
    It is kept as one tensor of shape [size, *element_shape]. ``size``: a whole number or a scalar tensor; ``element_shape``: lengths,
    all known.
    """

    stacked: Tensor

    def __init__(self, element_type: ElementTypeLike, size: Any, element_shape: Any = ()) -> None:
        wanted = element_type_of(element_type)
        shape = checked_shape(element_shape, "TensorArray: element_shape")
        if not shape.is_static:
            raise BuildError(
                f"TensorArray: element_shape is {shape}, expected known lengths: unwritten places are filled with zeros of that shape"
            )
        graph = graph_of([size], "TensorArray")
        if isinstance(size, Tensor):
            stacked = _zeros(size, np.array(shape.lengths, np.int64), graph.constant(np.zeros((), wanted.dtype)))
        elif isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
            raise BuildError(f"TensorArray: size is {size!r}, expected a whole number of at least 0, or a scalar tensor")
        else:
            stacked = graph.constant(np.zeros((int(size), *shape.lengths), wanted.dtype), name="TensorArray")
        object.__setattr__(self, "stacked", stacked)

    @staticmethod
    def unstack(tensor: Any) -> TensorArray:
        """The array whose elements are the parts of a tensor along its first axis."""
        stacked = graph_of([tensor], "TensorArray.unstack").lift(tensor, what="TensorArray.unstack(): tensor")
        if stacked.rank == 0:
            raise BuildError(f"TensorArray.unstack() gets {stacked!r}, and a scalar has no parts")
        return _array(stacked)

    def write(self, index: Any, value: Any) -> TensorArray:
        """The array with another element at a place; a place outside of it is an error when it runs."""
        graph = self.stacked.graph
        wanted = [self.stacked.element_type] if self.stacked.element_type else []
        element = graph.lift(value, wanted, "TensorArray.write(): value")
        part = graph.apply("Unsqueeze", (element, np.array([0])), {})[0]
        if self.stacked.shape.dimensions is not None and part.shape.dimensions is not None:
            expected = self.stacked.shape.dimensions[1:]
            found = part.shape.dimensions[1:]
            if len(found) != len(expected) or any(one.intersect(other) is None for one, other in zip(found, expected, strict=True)):
                raise BuildError(f"TensorArray.write(): value is {element!r}, and the elements of {self.stacked!r} have another shape")
        array = _array(graph.apply("ScatterUpdate", (self.stacked, self._place(index), part, np.array(0)), {})[0])
        graph.frame.writes.append(Written.here(array.stacked.source.layer, array))
        return array

    def read(self, index: Any) -> Tensor:
        """The element at a place."""
        return self.stacked.graph.apply("Gather", (self.stacked, self._checked(index, "read"), np.array(0)), {})[0]

    def stack(self) -> Tensor:
        """All elements along a new first axis."""
        return self.stacked

    def size(self) -> Tensor:
        """The number of elements, an i64 scalar."""
        lengths = self.stacked.graph.apply("ShapeOf", (self.stacked,), {})[0]
        return self.stacked.graph.apply("Gather", (lengths, np.array(0), np.array(0)), {})[0]

    def _checked(self, index: Any, called: str) -> Any:
        if isinstance(index, Tensor):
            return index
        length = self.stacked.shape.at(0)
        if (
            isinstance(index, bool)
            or not isinstance(index, (int, np.integer))
            or index < 0
            or (length.most is not None and index >= length.most)
        ):
            raise BuildError(f"TensorArray.{called}(): index is {index!r}, expected a whole number from 0 on, below the size, {length}")
        return np.array(index)

    def _place(self, index: Any) -> Any:
        if not isinstance(index, Tensor):
            return self._checked(index, "write").reshape(1)
        return self.stacked.graph.apply("Reshape", (index, np.array([1])), {"special_zero": False})[0]


def _array(stacked: Tensor) -> TensorArray:
    array = object.__new__(TensorArray)
    object.__setattr__(array, "stacked", stacked)
    return array


def _zeros(size: Tensor, element_lengths: np.ndarray, zero: Tensor) -> Tensor:
    graph = size.graph
    with graph.scope("TensorArray"):
        whole = size if size.element_type is ElementType.I64 else graph.apply("Convert", (size,), {"destination_type": "i64"})[0]
        length = graph.apply("Reshape", (whole, np.array([1])), {"special_zero": False})[0]
        lengths = graph.apply("Concat", (length, element_lengths), {"axis": 0})[0] if element_lengths.size else length
        return graph.apply("Broadcast", (zero, lengths), {})[0]
