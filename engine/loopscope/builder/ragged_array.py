"""``RaggedArray``: a ``TensorArray`` whose elements may differ in their lengths, kept as all
their values and a table of their shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from loopscope.builder import array_arithmetic as arithmetic
from loopscope.builder.call_sites import Written
from loopscope.builder.graph_builder import Graph, graph_of
from loopscope.builder.lift import ElementTypeLike, element_type_of
from loopscope.builder.loop import allows
from loopscope.builder.shape_invariants import Composite
from loopscope.builder.structure import FIXED
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.shape import Dimension, PartialShape


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class RaggedArray(Composite):
    """The methods of ``TensorArray``; an element that was not written has no values, and lengths of
    0.

    Elements that ``stack``, ``gather`` and ``concat`` put together must agree in the other lengths:
    where they do not, the run fails.
    """

    values: Tensor
    """Of all elements, one after the other, in one axis."""
    shapes: Tensor
    """[size, rank]: the lengths of each element, i64."""
    element_shape: PartialShape = field(metadata=FIXED)
    dynamic: bool = field(metadata=FIXED)
    alike: bool = field(metadata=FIXED)
    """Whether all elements have the shape of the first one that is written."""

    @staticmethod
    def empty(
        element_type: ElementTypeLike,
        size: Any,
        element_shape: PartialShape,
        *,
        dynamic: bool,
        alike: bool,
    ) -> RaggedArray:
        """So many elements, none of them written; ``BuildError`` where their number of axes is
        not known.
        """
        rank = element_shape.rank
        if rank is None:
            raise BuildError(
                "TensorArray: element_shape is not known at all, expected a length for each axis, with None for unknown ones"
            )
        graph, wanted = graph_of([size], "TensorArray"), element_type_of(element_type)
        values = graph.constant(np.zeros(0, wanted.dtype), name="TensorArray")
        if isinstance(size, Tensor):
            shapes = arithmetic.zeros(size, np.array([rank]), graph.constant(np.int64(0)))
        else:
            shapes = graph.constant(
                np.zeros((arithmetic.checked_size(size), rank), np.int64), name="TensorArray_shapes"
            )
        return RaggedArray(values, shapes, element_shape, bool(dynamic), bool(alike))

    def invariants(self, given: PartialShape | None, what: str) -> Sequence[PartialShape | None]:
        if given is not None and not allows(given, self.element_shape):
            raise BuildError(
                f"{what} is {given}, and the elements of the TensorArray have shape {self.element_shape}: it is less specific"
            )
        size = Dimension() if self.dynamic else self.shapes.shape.at(0)
        return PartialShape((Dimension(),)), PartialShape((size, self.shapes.shape.at(1)))

    def write(self, index: Any, value: Any) -> RaggedArray:
        """The array with another element at a place."""
        graph = self._graph
        element = self._lifted(value, "write")
        shape = self.element_shape.intersect(element.shape)
        if shape is None:
            raise BuildError(
                f"TensorArray.write(): value is {element!r}, and the elements have shape {self.element_shape}"
            )
        bound = None if self.dynamic else self.shapes.shape.at(0).most
        where = arithmetic.one_place(
            arithmetic.checked_place(index, bound, "TensorArray.write()"), graph
        )
        table = arithmetic.with_places(self.shapes, where) if self.dynamic else self.shapes
        begin, end = self._span(table, where)
        flat = graph.apply("Reshape", (element, np.array([-1])), {"special_zero": False})[0]
        before, after = (
            self._part(np.array([0]), begin),
            self._part(end, np.array([np.iinfo(np.int64).max])),
        )
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
        """The array with the parts of ``value`` along its first axis at the places of
        ``indices``, whose number must be known.
        """
        where, parts = (
            arithmetic.places(self._graph, indices, "scatter"),
            self._lifted(value, "scatter"),
        )
        if where.rank is None or not where.shape.at(0).is_static:
            raise BuildError(
                f"TensorArray.scatter(): indices is {where!r}, expected a known number of places for elements that may differ"
            )
        array = self
        for number in range(len(where)):
            array = array.write(where[number], parts[number])
        return array

    def read(self, index: Any) -> Tensor:
        """The element at a place."""
        where = arithmetic.one_place(
            arithmetic.checked_place(index, self.shapes.shape.at(0).most, "TensorArray.read()"),
            self._graph,
        )
        row = self._graph.apply("Gather", (self.shapes, where, np.array(0)), {})[0]
        lengths = self._graph.apply("Squeeze", (row, np.array([0])), {})[0]
        return self._shaped(
            self._part(*self._span(self.shapes, where)), lengths, self.element_shape
        )

    def gather(self, indices: Any) -> Tensor:
        """The elements at several places along a new first axis; all elements must have one
        shape.
        """
        return self._graph.apply(
            "Gather",
            (self.stack(), arithmetic.places(self._graph, indices, "gather"), np.array(0)),
            {},
        )[0]

    def stack(self) -> Tensor:
        """All elements along a new first axis; all must have one shape."""
        size = self._graph.apply("Unsqueeze", (self.size(), np.array([0])), {})[0]
        whole = PartialShape((self.shapes.shape.at(0), *(self.element_shape.dimensions or ())))
        # The greatest lengths: with them the number of values is right only where no element is
        # smaller.
        lengths = self._graph.apply("Concat", (size, self._greatest(self.shapes)), {"axis": 0})[0]
        return self._shaped(self.values, lengths, whole)

    def concat(self) -> Tensor:
        """All elements joined along their first axis, in which they may differ."""
        dimensions = self.element_shape.dimensions or ()
        if not dimensions:
            raise BuildError(
                "TensorArray.concat(): the elements are scalars, which have no axis: use stack()"
            )
        first = self._graph.apply(
            "ReduceSum", (self.shapes[:, :1], np.array([0])), {"keep_dims": False}
        )[0]
        lengths = self._graph.apply(
            "Concat", (first, self._greatest(self.shapes[:, 1:])), {"axis": 0}
        )[0]
        return self._shaped(self.values, lengths, PartialShape((Dimension(), *dimensions[1:])))

    def split(self, value: Any, lengths: Any) -> RaggedArray:
        """The array whose elements are consecutive parts of ``value`` along its first axis, of
        these lengths.
        """
        graph, whole = self._graph, self._lifted(value, "split")
        parts = arithmetic.as_i64(arithmetic.places(graph, lengths, "split"))
        if whole.rank != self.element_shape.rank or whole.rank == 0:
            raise BuildError(
                f"TensorArray.split(): value is {whole!r}, and the elements have shape {self.element_shape}"
            )
        if not self.dynamic and parts.shape.at(0).intersect(self.shapes.shape.at(0)) is None:
            raise BuildError(
                f"TensorArray.split(): {parts.shape.at(0)} lengths are given for {self.shapes.shape.at(0)} elements"
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
        # As many values as the lengths say: a value of another length cannot be taken apart into
        # them.
        values = graph.apply("ReduceSum", (_counts(shapes), np.array([0])), {"keep_dims": True})[0]
        flat = graph.apply("Reshape", (whole, values), {"special_zero": False})[0]
        array = replace(self, values=flat, shapes=shapes)
        graph.frame.writes.append(Written.here(flat.source.layer, array))
        return array

    def size(self) -> Tensor:
        """The number of elements, an i64 scalar."""
        return arithmetic.length_of(self.shapes)

    @property
    def _graph(self) -> Graph:
        return self.values.graph

    def _lifted(self, value: Any, called: str) -> Tensor:
        wanted = [self.values.element_type] if self.values.element_type else []
        return self._graph.lift(value, wanted, f"TensorArray.{called}(): value")

    def _span(self, table: Tensor, where: Any) -> tuple[Tensor, Tensor]:
        """Where the values of an element begin and end, each in a list of one."""
        counts = _counts(table)
        ends = self._graph.apply("CumSum", (counts, np.array(0)), {})[0]
        end = self._graph.apply("Gather", (ends, where, np.array(0)), {})[0]
        return end - self._graph.apply("Gather", (counts, where, np.array(0)), {})[0], end

    def _part(self, begin: Any, end: Any) -> Tensor:
        return self._graph.apply("Slice", (self.values, begin, end, np.array([1])), {})[0]

    def _greatest(self, lengths: Tensor) -> Tensor:
        most = self._graph.apply("ReduceMax", (lengths, np.array([0])), {"keep_dims": False})[0]
        return self._graph.apply("Maximum", (most, np.int64(0)), {})[
            0
        ]  # of no elements it would be the least number that there is

    def _shaped(self, values: Tensor, lengths: Tensor, shape: PartialShape) -> Tensor:
        made: Tensor = self._graph.apply("Reshape", (values, lengths), {"special_zero": False})[0]
        made.set_shape(shape)
        return made


def _counts(shapes: Tensor) -> Tensor:
    """How many values each element has."""
    return shapes.graph.apply("ReduceProd", (shapes, np.array([1])), {"keep_dims": False})[0]
