"""``RaggedArray``: a ``TensorArray`` with elements of different lengths, stored as a list of values
and a table of shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from loopscope.builder import array_arithmetic as arithmetic
from loopscope.builder.graph_builder import graph_of
from loopscope.builder.loop import Composite, allows
from loopscope.builder.mistakes import Written
from loopscope.builder.python_values import ElementTypeLike, element_type_of
from loopscope.builder.structure import FIXED
from loopscope.builder.tensor import Tensor, TensorGraph
from loopscope.errors import BuildError
from loopscope.ir.shape import Dimension, PartialShape


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class RaggedArray(Composite):
    """An array with the methods of ``TensorArray``; an unwritten element has no values and lengths
    of 0.

    ``stack``, ``gather`` and ``concat`` require elements with equal other lengths; otherwise the
    run fails.
    """

    values: Tensor
    """Values of all elements in order, in one axis."""
    shapes: Tensor
    """Lengths of each element, i64 [size, rank]."""
    element_shape: PartialShape = field(metadata=FIXED)
    dynamic: bool = field(metadata=FIXED)
    alike: bool = field(metadata=FIXED)
    """True if all elements have the shape of the first written element."""

    @staticmethod
    def empty(
        element_type: ElementTypeLike,
        size: Any,
        element_shape: PartialShape,
        *,
        dynamic: bool,
        alike: bool,
    ) -> RaggedArray:
        """Return an array of ``size`` unwritten elements.

        ``BuildError`` if their number of axes is not known.
        """
        rank = element_shape.rank
        if rank is None:
            raise BuildError(
                "TensorArray: the rank of element_shape is not known, expected a length for each "
                "axis, with None for unknown lengths"
            )
        graph, target_type = graph_of([size], "TensorArray"), element_type_of(element_type)
        values = graph.constant(np.zeros(0, target_type.dtype), name="TensorArray")
        if isinstance(size, Tensor):
            shapes = arithmetic.zeros(size, np.array([rank]), graph.constant(np.int64(0)))
        else:
            shapes = graph.constant(
                np.zeros((arithmetic.check_size(size), rank), np.int64), name="TensorArray_shapes"
            )
        return RaggedArray(values, shapes, element_shape, bool(dynamic), bool(alike))

    def invariants(
        self, invariant: PartialShape | None, what: str
    ) -> Sequence[PartialShape | None]:
        if invariant is not None and not allows(invariant, self.element_shape):
            raise BuildError(
                f"{what} is {invariant}, but the elements of the TensorArray have the less "
                f"specific shape {self.element_shape}"
            )
        size = Dimension() if self.dynamic else self.shapes.shape.at(0)
        return PartialShape((Dimension(),)), PartialShape((size, self.shapes.shape.at(1)))

    def write(self, index: Any, value: Any) -> RaggedArray:
        """Return the array with one element replaced."""
        graph = self._graph
        element = self._lift_value(value, "write")
        shape = self.element_shape.intersect(element.shape)
        if shape is None:
            raise BuildError(
                f"TensorArray.write(): value is {element!r}, but the elements have shape "
                f"{self.element_shape}"
            )
        bound = None if self.dynamic else self.shapes.shape.at(0).most
        where = arithmetic.index_list(
            arithmetic.check_index(index, bound, "TensorArray.write()"), graph
        )
        table = arithmetic.grow_to_indices(self.shapes, where) if self.dynamic else self.shapes
        begin, end = self._span(table, where)
        flat = graph.apply("Reshape", (element, np.array([-1])), {"special_zero": False})[0]
        before = self._part(np.array([0]), begin)
        after = self._part(end, np.array([np.iinfo(np.int64).max]))
        values = graph.apply("Concat", (before, flat, after), {"axis": 0})[0]
        lengths = graph.apply("ShapeOf", (element,), {})[0]
        row = graph.apply("Unsqueeze", (lengths, np.array([0])), {})[0]
        shapes = graph.apply("ScatterUpdate", (table, where, row, np.array(0)), {})[0]
        array = replace(
            self,
            values=values,
            shapes=shapes,
            element_shape=shape if self.alike else self.element_shape,
        )
        graph.frame.writes.append(Written.here(values.source.layer, array))
        return array

    def scatter(self, indices: Any, value: Any) -> RaggedArray:
        """Return the array with the slices of ``value`` along its first axis at ``indices``. The
        number of indices must be known.
        """
        where = arithmetic.places(self._graph, indices, "scatter")
        parts = self._lift_value(value, "scatter")
        if where.rank is None or not where.shape.at(0).is_static:
            raise BuildError(
                f"TensorArray.scatter(): indices is {where!r}, expected a known number of indices "
                "for elements of different shapes"
            )
        array = self
        for number in range(len(where)):
            array = array.write(where[number], parts[number])
        return array

    def read(self, index: Any) -> Tensor:
        """Return the element at an index."""
        where = arithmetic.index_list(
            arithmetic.check_index(index, self.shapes.shape.at(0).most, "TensorArray.read()"),
            self._graph,
        )
        row = self._graph.apply("Gather", (self.shapes, where, np.array(0)), {})[0]
        lengths = self._graph.apply("Squeeze", (row, np.array([0])), {})[0]
        return self._reshape(
            self._part(*self._span(self.shapes, where)), lengths, self.element_shape
        )

    def gather(self, indices: Any) -> Tensor:
        """Return the elements at several indices along a new first axis; all elements must have one
        shape.
        """
        return self._graph.apply(
            "Gather",
            (self.stack(), arithmetic.places(self._graph, indices, "gather"), np.array(0)),
            {},
        )[0]

    def stack(self) -> Tensor:
        """Return all elements along a new first axis; all must have one shape."""
        size = self._graph.apply("Unsqueeze", (self.size(), np.array([0])), {})[0]
        whole = PartialShape((self.shapes.shape.at(0), *(self.element_shape.dimensions or ())))
        # The maximum lengths: the number of values only matches them if no element is smaller.
        lengths = self._graph.apply("Concat", (size, self._greatest(self.shapes)), {"axis": 0})[0]
        return self._reshape(self.values, lengths, whole)

    def concat(self) -> Tensor:
        """Return all elements concatenated along their first axis, in which their lengths may
        differ.
        """
        dimensions = self.element_shape.dimensions or ()
        if not dimensions:
            raise BuildError(
                "TensorArray.concat(): the elements are scalars without an axis: use stack()"
            )
        first = self._graph.apply(
            "ReduceSum", (self.shapes[:, :1], np.array([0])), {"keep_dims": False}
        )[0]
        lengths = self._graph.apply(
            "Concat", (first, self._greatest(self.shapes[:, 1:])), {"axis": 0}
        )[0]
        return self._reshape(self.values, lengths, PartialShape((Dimension(), *dimensions[1:])))

    def split(self, value: Any, lengths: Any) -> RaggedArray:
        """Return the array of consecutive slices of ``value`` along its first axis, of these
        lengths.
        """
        graph, whole = self._graph, self._lift_value(value, "split")
        parts = arithmetic.as_i64(arithmetic.places(graph, lengths, "split"))
        if whole.rank != self.element_shape.rank or whole.rank == 0:
            raise BuildError(
                f"TensorArray.split(): value is {whole!r}, but the elements have shape "
                f"{self.element_shape}"
            )
        if not self.dynamic and parts.shape.at(0).intersect(self.shapes.shape.at(0)) is None:
            raise BuildError(
                f"TensorArray.split(): expected {self.shapes.shape.at(0)} lengths, got "
                f"{parts.shape.at(0)}"
            )
        column = graph.apply("Unsqueeze", (parts, np.array([1])), {})[0]
        rest = graph.apply(
            "Unsqueeze", (graph.apply("ShapeOf", (whole,), {})[0][1:], np.array([0])), {}
        )[0]
        number = graph.apply("ShapeOf", (parts,), {})[0]
        rows = graph.apply(
            "Tile", (rest, graph.apply("Concat", (number, np.array([1])), {"axis": 0})[0]), {}
        )[0]
        shapes = graph.apply("Concat", (column, rows), {"axis": 1})[0]
        # The number of values that the lengths require: a value of another length fails in the
        # Reshape.
        values = graph.apply("ReduceSum", (_counts(shapes), np.array([0])), {"keep_dims": True})[0]
        flat = graph.apply("Reshape", (whole, values), {"special_zero": False})[0]
        array = replace(self, values=flat, shapes=shapes)
        graph.frame.writes.append(Written.here(flat.source.layer, array))
        return array

    def size(self) -> Tensor:
        """Return the number of elements as an i64 scalar."""
        return arithmetic.length_of(self.shapes)

    @property
    def _graph(self) -> TensorGraph:
        return self.values.graph

    def _lift_value(self, value: Any, caller: str) -> Tensor:
        candidates = [self.values.element_type] if self.values.element_type else []
        return self._graph.lift(value, candidates, f"TensorArray.{caller}(): value")

    def _span(self, table: Tensor, where: Any) -> tuple[Tensor, Tensor]:
        """Return where the values of an element start and end, each as a list of one element."""
        counts = _counts(table)
        ends = self._graph.apply("CumSum", (counts, np.array(0)), {})[0]
        end = self._graph.apply("Gather", (ends, where, np.array(0)), {})[0]
        return end - self._graph.apply("Gather", (counts, where, np.array(0)), {})[0], end

    def _part(self, begin: Any, end: Any) -> Tensor:
        return self._graph.apply("Slice", (self.values, begin, end, np.array([1])), {})[0]

    def _greatest(self, lengths: Tensor) -> Tensor:
        maximum = self._graph.apply("ReduceMax", (lengths, np.array([0])), {"keep_dims": False})[0]
        return self._graph.apply("Maximum", (maximum, np.int64(0)), {})[
            0
        ]  # the maximum of no elements is the smallest i64

    def _reshape(self, values: Tensor, lengths: Tensor, shape: PartialShape) -> Tensor:
        reshaped: Tensor = self._graph.apply("Reshape", (values, lengths), {"special_zero": False})[
            0
        ]
        reshaped.set_shape(shape)
        return reshaped


def _counts(shapes: Tensor) -> Tensor:
    """Return the number of values of each element."""
    return shapes.graph.apply("ReduceProd", (shapes, np.array([1])), {"keep_dims": False})[0]
