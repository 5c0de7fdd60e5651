"""``TensorArray``: numbered tensors of one shape that a loop writes and reads, stored as one
tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.builder import array_arithmetic as arithmetic
from loopscope.builder.graph_builder import check_shape, graph_of
from loopscope.builder.loop import Composite, allows
from loopscope.builder.mistakes import Written
from loopscope.builder.python_values import ElementTypeLike, element_type_of
from loopscope.builder.structure import FIXED
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import Dimension, PartialShape


@dataclass(frozen=True, slots=True, eq=False)
class OpenShape:
    """An array without an element_shape; its first write determines the shape."""

    element_type: ElementType
    size: Any
    initial: Tensor
    """Array of scalars that represents the array until the first write."""

    def shaped(self, lengths: Sequence[int], *, dynamic: bool) -> TensorArray:
        """Return the array with elements of a known shape, all of them unwritten."""
        if not isinstance(self.size, Tensor):
            self.initial.frame.replaced.add(self.initial.source.layer)
        return TensorArray(self.element_type, self.size, tuple(lengths), dynamic_size=dynamic)


class FirstWrite(BuildError):
    """Signal of the first write to a loop variable; the loop is built again with an array of that
    shape.
    """

    def __init__(self, message: str, array: OpenShape, lengths: Sequence[int]) -> None:
        super().__init__(message)
        self.array, self.lengths = array, tuple(lengths)


@dataclass(frozen=True, slots=True, eq=False, init=False, weakref_slot=True)
class TensorArray(Composite):
    """``TensorArray("f32", size, element_shape)``: numbered tensors of one type and shape,
    initially zero.

    Writing returns a new array, so that an array is an ordinary loop variable. ``BuildError`` if
    the result of a write is unused. The array is stored as one tensor of shape [size,
    *element_shape]. ``size``: an integer or a scalar tensor. ``dynamic_size``: a write beyond the
    end extends the array, with zeros in between.

    ``element_shape``: lengths. Without it the array takes the shape of its first write, which may
    be in the body of a while loop. If some lengths are None, the result is a ``RaggedArray`` with
    the same methods. Its elements have the lengths of the first written element, or any lengths
    with ``infer_shape=False``. The number of axes must be known.
    """

    stacked: Tensor
    dynamic: bool = field(metadata=FIXED)
    unshaped: OpenShape | None = field(metadata=FIXED)

    def __new__(
        cls,
        element_type: ElementTypeLike | None = None,
        size: Any = 0,
        element_shape: Any = None,
        *,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> Any:
        from loopscope.builder.ragged_array import (
            RaggedArray,
        )  # imported here because it imports this module

        if element_type is not None and (element_shape is not None or not infer_shape):
            shape = check_shape(element_shape, "TensorArray: element_shape")
            if not shape.is_static:
                return RaggedArray.empty(
                    element_type, size, shape, dynamic=dynamic_size, alike=infer_shape
                )
        return object.__new__(cls)

    def __init__(
        self,
        element_type: ElementTypeLike,
        size: Any = 0,
        element_shape: Any = None,
        *,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        target_type = element_type_of(element_type)
        element_lengths = () if element_shape is None else element_shape
        lengths = check_shape(element_lengths, "TensorArray: element_shape").lengths
        graph = graph_of([size], "TensorArray")
        if isinstance(size, Tensor):
            stacked = arithmetic.zeros(
                size, np.array(lengths, np.int64), graph.constant(np.zeros((), target_type.dtype))
            )
        else:
            stacked = graph.constant(
                np.zeros((arithmetic.check_size(size), *lengths), target_type.dtype),
                name="TensorArray",
            )
        object.__setattr__(self, "stacked", stacked)
        object.__setattr__(self, "dynamic", bool(dynamic_size))
        object.__setattr__(
            self,
            "unshaped",
            OpenShape(target_type, size, stacked) if element_shape is None else None,
        )

    @staticmethod
    def unstack(tensor: Any) -> TensorArray:
        """Return the array of the slices of a tensor along its first axis."""
        stacked = graph_of([tensor], "TensorArray.unstack").lift(
            tensor, what="TensorArray.unstack(): tensor"
        )
        if stacked.rank == 0:
            raise BuildError(f"TensorArray.unstack(): expected at least one axis, got {stacked!r}")
        return _array(stacked, dynamic=False)

    def invariants(
        self, invariant: PartialShape | None, what: str
    ) -> Sequence[PartialShape | None]:
        shape = self.stacked.shape
        if shape.dimensions is None:
            return (None,)
        elements = PartialShape(shape.dimensions[1:])
        if invariant is not None and not allows(invariant, elements):
            raise BuildError(
                f"{what} is {invariant}, which excludes the shape {elements} of the elements of "
                "the TensorArray"
            )
        return (
            PartialShape(
                (Dimension() if self.dynamic else shape.at(0), *(elements.dimensions or ()))
            ),
        )

    def write(self, index: Any, value: Any) -> TensorArray:
        """Return the array with one element replaced. An index out of range is an error at run
        time, unless the size is dynamic.
        """
        element = self._lift_value(value, "write")
        shaped = self._shape_from_write(element.shape)
        if shaped is not None:
            return shaped.write(index, element)
        self._check_element(element, element.shape.dimensions, "write")
        part = self.stacked.graph.apply("Unsqueeze", (element, np.array([0])), {})[0]
        return self._scatter(
            arithmetic.index_list(self._check_index(index, "write"), self.stacked.graph), part
        )

    def scatter(self, indices: Any, value: Any) -> TensorArray:
        """Return the array with the slices of ``value`` along its first axis at ``indices``."""
        parts = self._lift_value(value, "scatter")
        if parts.rank == 0:
            raise BuildError(f"TensorArray.scatter(): expected at least one axis, got {parts!r}")
        shaped = self._shape_from_write(
            PartialShape(None if parts.shape.dimensions is None else parts.shape.dimensions[1:])
        )
        if shaped is not None:
            return shaped.scatter(indices, parts)
        self._check_element(
            parts, None if parts.shape.dimensions is None else parts.shape.dimensions[1:], "scatter"
        )
        return self._scatter(arithmetic.places(self.stacked.graph, indices, "scatter"), parts)

    def read(self, index: Any) -> Tensor:
        """Return the element at an index."""
        return self.stacked.graph.apply(
            "Gather", (self.stacked, self._check_index(index, "read"), np.array(0)), {}
        )[0]

    def gather(self, indices: Any) -> Tensor:
        """Return the elements at several indices along a new first axis."""
        graph = self.stacked.graph
        return graph.apply(
            "Gather", (self.stacked, arithmetic.places(graph, indices, "gather"), np.array(0)), {}
        )[0]

    def stack(self) -> Tensor:
        """Return all elements along a new first axis."""
        return self.stacked

    def concat(self) -> Tensor:
        """Return all elements concatenated along their first axis."""
        if self.stacked.rank == 1:
            raise BuildError(
                f"TensorArray.concat(): the elements of {self.stacked!r} are scalars without an "
                "axis: use stack()"
            )
        return arithmetic.merge_first_axes(self.stacked)

    def split(self, value: Any, lengths: Any) -> TensorArray:
        """Return the array of consecutive slices of ``value`` along its first axis, of these
        lengths.
        """
        whole = self._lift_value(value, "split")
        expected = self.stacked.shape.at(1) if self.stacked.rank not in (None, 1) else None
        if (
            isinstance(lengths, Tensor)
            or expected is None
            or any(not expected.contains(length) for length in lengths)
        ):
            raise BuildError(
                f"TensorArray.split(): lengths is {lengths!r}, but every element has shape "
                f"{self.stacked.shape}[1:]: "
                "create it with element_shape=[None, ...] and infer_shape=False for slices of "
                "other lengths"
            )
        if not self.dynamic and not self.stacked.shape.at(0).contains(len(lengths)):
            raise BuildError(
                f"TensorArray.split(): expected {self.stacked.shape.at(0)} lengths, got "
                f"{len(lengths)}"
            )
        rest = self.stacked.shape.dimensions or ()
        pattern = np.array([len(lengths), *(length.length for length in rest[1:])])
        return _array(
            whole.graph.apply("Reshape", (whole, pattern), {"special_zero": False})[0],
            dynamic=self.dynamic,
        )

    def size(self) -> Tensor:
        """Return the number of elements as an i64 scalar."""
        return arithmetic.length_of(self.stacked)

    def _lift_value(self, value: Any, caller: str) -> Tensor:
        candidates = [self.stacked.element_type] if self.stacked.element_type else []
        return self.stacked.graph.lift(value, candidates, f"TensorArray.{caller}(): value")

    def _scatter(self, where: Any, parts: Tensor) -> TensorArray:
        graph = self.stacked.graph
        longer = arithmetic.grow_to_indices(self.stacked, where) if self.dynamic else self.stacked
        array = _array(
            graph.apply("ScatterUpdate", (longer, where, parts, np.array(0)), {})[0],
            dynamic=self.dynamic,
        )
        graph.frame.writes.append(Written.here(array.stacked.source.layer, array))
        return array

    def _shape_from_write(self, element: PartialShape) -> TensorArray | None:
        """Return this array with elements of the shape of its first write; None if the shape is
        already known or the element is a scalar.

        ``FirstWrite`` if the array is a loop variable, because its initial value must change.
        """
        if self.unshaped is None or not element.is_static or not element.lengths:
            return None
        if self.stacked is not self.unshaped.initial:
            message = (
                f"TensorArray: the first write has shape {element}, but the array was created "
                "without element_shape and is not a variable "
                f"of a while_loop around it: give element_shape={list(element.lengths)}"
            )
            raise FirstWrite(message, self.unshaped, element.lengths)
        return self.unshaped.shaped(element.lengths, dynamic=self.dynamic)

    def _check_element(
        self, tensor: Tensor, dimensions: Sequence[Dimension] | None, caller: str
    ) -> None:
        """Raise ``BuildError`` if a tensor does not have the shape of the elements."""
        if self.stacked.shape.dimensions is None or dimensions is None:
            return
        expected = self.stacked.shape.dimensions[1:]
        if len(dimensions) != len(expected) or any(
            left.intersect(right) is None for left, right in zip(dimensions, expected, strict=True)
        ):
            advice = (
                ""
                if self.unshaped is None
                else ": set element_shape, because the shape of this value is not known before "
                "the run"
            )
            raise BuildError(
                f"TensorArray.{caller}(): value is {tensor!r}, but the elements of "
                f"{self.stacked!r} have another shape{advice}"
            )

    def _check_index(self, index: Any, caller: str) -> Any:
        bound = None if self.dynamic and caller == "write" else self.stacked.shape.at(0).most
        return arithmetic.check_index(index, bound, f"TensorArray.{caller}()")


def _array(stacked: Tensor, *, dynamic: bool) -> TensorArray:
    array: TensorArray = object.__new__(TensorArray)
    object.__setattr__(array, "stacked", stacked)
    object.__setattr__(array, "dynamic", dynamic)
    object.__setattr__(array, "unshaped", None)
    return array
