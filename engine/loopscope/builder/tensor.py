"""Handles of tensors and of operations of a graph under construction.

A tensor has the operators of Python and numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from loopscope.builder.mistakes import Valueless, Written
from loopscope.builder.naming import NameScope
from loopscope.builder.python_values import ElementTypeLike, shape_of
from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, OutputRef
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import Known, Operation


class TensorGraph(Protocol):
    """The members of ``Graph`` that are used through a tensor or a frame. A protocol, because
    ``Graph`` imports both.
    """

    name: str
    catalogue: Catalogue
    calls: dict[ModelGraph, tuple[NameScope, ...]]

    @property
    def frame(self) -> TensorFrame: ...

    def __getitem__(self, name: str) -> GraphOperation: ...

    def parameter(
        self, name: str, element_type: ElementTypeLike, shape: object = None
    ) -> Tensor: ...

    def constant(
        self, value: object, element_type: ElementTypeLike | None = None, name: str = ""
    ) -> Tensor: ...

    def lift(
        self, value: object, like: Sequence[ElementType] = (), what: str = ..., name: str = ""
    ) -> Tensor: ...

    def apply(
        self,
        type: str | Operation,
        inputs: Sequence[Any],
        attributes: Mapping[str, object],
        name: str = "",
    ) -> tuple[Tensor, ...]: ...

    def index(self, tensor: Tensor, index: Any) -> Tensor: ...

    def scope(self, name: str) -> AbstractContextManager[str]: ...

    def within(self, name: str) -> AbstractContextManager[str]: ...

    def model(self, outputs: object) -> Model: ...


class TensorFrame(Protocol):
    """The members of ``GraphFrame`` that a tensor and its users need."""

    title: str
    nodes: list[Node]
    edges: list[Edge]
    tensors: list[tuple[Tensor, ...]]
    writes: list[Written]
    replaced: set[LayerId]
    ahead: str

    @property
    def graph(self) -> TensorGraph: ...

    @property
    def parent(self) -> TensorFrame | None: ...

    def from_port(self, layer: LayerId, port: int) -> Tensor: ...


class Tensor(Valueless):
    """One output of a node of a graph under construction, with its element type and shape.

    A tensor does not have a value yet, so it cannot be the condition of an ``if``. Comparisons,
    including ``==``, return boolean tensors.
    """

    __slots__ = ("_frame", "_known", "_name", "_source")

    def __init__(self, frame: TensorFrame, source: OutputRef, name: str, known: Known) -> None:
        self._frame = frame
        self._source = source
        self._name = name
        self._known = known

    @property
    def name(self) -> str:
        """Name of the node; output k of a node with several outputs is ``name:k``."""
        return self._name

    @property
    def element_type(self) -> ElementType | None:
        """Element type; None if it is only known at run time."""
        return self._known.element_type

    @property
    def shape(self) -> PartialShape:
        """Shape as far as it is known before a run."""
        return self._known.shape

    def get_shape(self) -> PartialShape:
        """Return ``shape`` (TensorFlow's name)."""
        return self.shape

    def set_shape(self, shape: object) -> None:
        """Set lengths that are not known; known lengths do not change.

        ``shape``: lengths, with None for an unknown length. The lengths are not checked at run
        time. ``BuildError`` if the shape contradicts the known shape.
        """
        new_shape = DYNAMIC if shape is None else shape_of(shape)
        combined = None if new_shape is None else self.shape.intersect(new_shape)
        if combined is None:
            raise BuildError(
                f"set_shape() of {self!r}: shape is {shorten(repr(shape), 60)}, expected lengths "
                "that its shape allows"
            )
        self._known = replace(self._known, shape=combined)

    @property
    def rank(self) -> int | None:
        """Number of dimensions; None if it is only known at run time."""
        return self._known.shape.rank

    @property
    def graph(self) -> TensorGraph:
        """Graph that the tensor belongs to."""
        return self._frame.graph

    @property
    def frame(self) -> TensorFrame:
        """Graph or body that contains the node."""
        return self._frame

    @property
    def source(self) -> OutputRef:
        """Node id and output index in the graph or body."""
        return self._source

    @property
    def known(self) -> Known:
        """Element type and shape, and the value if it is constant and small."""
        return self._known

    def __repr__(self) -> str:
        return f"<Tensor {self._name!r} {self.element_type or '?'}{self.shape}>"

    def __len__(self) -> int:
        if self.rank == 0 or not (length := self.shape.at(0)).is_static:
            raise BuildError(
                f"{self!r} does not have a known length: ops.shape_of computes it at run time"
            )
        return length.length

    def __iter__(self) -> Iterator[Tensor]:
        dimensions = self.shape.dimensions
        if not dimensions or not dimensions[0].is_static:
            raise BuildError(
                f"{self!r} does not have a known length to iterate over: use builder.map_fn, "
                "builder.scan or builder.foldl"
            )
        return (self[number] for number in range(dimensions[0].length))

    def __getitem__(self, index: Any) -> Tensor:
        return self.graph.index(self, index)

    def _apply(self, type: str, *inputs: Any, **attributes: Any) -> Tensor:
        if any(value is None for value in inputs):
            raise BuildError(
                f"operator {type} of {self!r}: expected a tensor, a number or an array, got None; "
                "is a return missing?"
            )
        return self.graph.apply(type, inputs, attributes)[0]

    def _is_whole(self) -> bool:
        return self.element_type is not None and self.element_type.is_integer

    def _bits(self, logical: str, bitwise: str, *inputs: Any) -> Tensor:
        return self._apply(bitwise if self._is_whole() else logical, *inputs)

    def __add__(self, other: Any) -> Tensor:
        return self._apply("Add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return self._apply("Add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return self._apply("Subtract", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._apply("Subtract", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return self._apply("Multiply", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._apply("Multiply", other, self)

    def _divide(self, dividend: Any, divisor: Any) -> Tensor:
        if self._is_whole():
            raise BuildError(
                f"`/` of {self.element_type} would return integers in a graph, not floats: use "
                "`//`, or convert first"
            )
        return self._apply("Divide", dividend, divisor)

    def __truediv__(self, other: Any) -> Tensor:
        return self._divide(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._divide(other, self)

    def _floor_divide(self, dividend: Any, divisor: Any) -> Tensor:
        quotient = self._apply("Divide", dividend, divisor)
        return quotient if self._is_whole() else self._apply("Floor", quotient)

    def __floordiv__(self, other: Any) -> Tensor:
        return self._floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return self._floor_divide(other, self)

    def __mod__(self, other: Any) -> Tensor:
        return self._apply("FloorMod", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return self._apply("FloorMod", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return self._apply("Power", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return self._apply("Power", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return self._apply("MatMul", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return self._apply("MatMul", other, self)

    def __neg__(self) -> Tensor:
        return self._apply("Negative", self)

    def __abs__(self) -> Tensor:
        return self._apply("Abs", self)

    def __lt__(self, other: Any) -> Tensor:
        return self._apply("Less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return self._apply("LessEqual", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return self._apply("Greater", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return self._apply("GreaterEqual", self, other)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]  # elementwise, as an array's
        return self._apply("Equal", self, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]  # elementwise, as an array's
        return self._apply("NotEqual", self, other)

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Tensor:
        return self._bits("LogicalAnd", "BitwiseAnd", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return self._bits("LogicalAnd", "BitwiseAnd", other, self)

    def __or__(self, other: Any) -> Tensor:
        return self._bits("LogicalOr", "BitwiseOr", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return self._bits("LogicalOr", "BitwiseOr", other, self)

    def __xor__(self, other: Any) -> Tensor:
        return self._bits("LogicalXor", "BitwiseXor", self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return self._bits("LogicalXor", "BitwiseXor", other, self)

    def __invert__(self) -> Tensor:
        return self._bits("LogicalNot", "BitwiseNot", self)


class GraphOperation:
    """A node of a graph: ``graph["Add"]``, or an item of ``for operation in graph``."""

    # This is not a dataclass, because dataclasses are structures of values and an operation is one
    # fetch.
    __slots__ = ("_frame", "_layer")

    def __init__(self, frame: TensorFrame, layer: LayerId) -> None:
        self._frame = frame
        self._layer = layer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphOperation) and (self._frame, self._layer) == (
            other._frame,
            other._layer,
        )

    def __hash__(self) -> int:
        return hash((self._frame, self._layer))

    def __repr__(self) -> str:
        return f"<{self.type} {self.name!r}>"

    @property
    def node(self) -> Node:
        """Node as the finished model would contain it now."""
        return self._frame.nodes[self._layer]

    @property
    def name(self) -> str:
        """Name that is unique in the graph."""
        return self.node.name

    @property
    def type(self) -> str:
        """Type of the operation in the spelling of the IR."""
        return self.node.type

    @property
    def attributes(self) -> Mapping[str, object]:
        """Attributes as text by name, as in the IR."""
        return self.node.attributes

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Tensors that feed the operation, in input order."""
        fed = {edge.to_port: edge for edge in self._frame.edges if edge.to_layer == self._layer}
        return tuple(
            self._frame.from_port(edge.from_layer, edge.from_port)
            for _, edge in sorted(fed.items())
        )

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Tensors that the operation computes."""
        return self._frame.tensors[self._layer]
