"""TensorFlow's names, so that its examples run with ``builder`` for ``tf``: functions of
``builder.ops`` and ``Graph``, and the composites ``SparseTensor`` and ``IndexedSlices``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.builder.graph_builder import check_shape, current_graph, graph_of
from loopscope.builder.loop import Composite
from loopscope.builder.python_values import ElementTypeLike, constant_array, element_type_of
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape, static


def TensorShape(dims: Any) -> PartialShape:  # TensorFlow's name
    """Return a shape from lengths, with None for an unknown length. In ``TensorShape(None)`` the
    rank is unknown too.
    """
    return DYNAMIC if dims is None else check_shape(dims, "TensorShape")


def constant(
    value: Any, dtype: ElementTypeLike | None = None, shape: Any = None, name: str = "Const"
) -> Tensor:
    """Add a constant to the current graph; a new graph is created if there is none.

    As in TensorFlow, Python integers are i32 if they fit, else i64, and floats are f32. Arrays keep
    their type. A Python number as an operand takes the type of the tensor operand. As a loop
    variable or in ``graph.constant`` an integer is i64. ``shape``: the lengths of the constant; a
    single number fills them all. Inside ``control_dependencies`` the constant waits like an
    operation.
    """
    graph = current_graph()
    dtype = _type_of_python(value) if dtype is None else dtype
    tensor = graph.constant(value, dtype, name)
    if shape is not None:
        array = tensor.known.value if tensor.known.value is not None else np.asarray(value)
        lengths = check_shape(shape, "constant(): shape").lengths
        filled = np.broadcast_to(array, lengths) if array.size == 1 else array.reshape(lengths)
        tensor = graph.constant(filled.copy(), dtype, name)
    return graph.frame.after_awaited(tensor)


def _type_of_python(value: Any) -> ElementType | None:
    """Return i32 for Python integers that fit, f32 for an empty list, and None for other values."""
    if isinstance(value, (np.ndarray, np.generic)):
        return None
    array = constant_array(value, None, "the constant")
    if not array.size:
        return ElementType.F32
    return (
        ElementType.I32
        if array.dtype == np.int64 and (array == array.astype(np.int32)).all()
        else None
    )


def zeros(shape: Any, dtype: ElementTypeLike = "f32", name: str = "zeros") -> Tensor:
    """Return a constant of zeros."""
    return _filled(0, shape, dtype, name)


def ones(shape: Any, dtype: ElementTypeLike = "f32", name: str = "ones") -> Tensor:
    """Return a constant of ones."""
    return _filled(1, shape, dtype, name)


def cast(x: Any, dtype: ElementTypeLike, name: str = "Cast") -> Tensor:
    """Return a tensor converted to another element type, as ``builder.ops.convert`` does."""
    to = {"destination_type": str(element_type_of(dtype))}
    return graph_of([x], "cast").apply("Convert", (x,), to, name)[0]


def concat(values: Any, axis: int, name: str = "concat") -> Tensor:
    """Return tensors concatenated along an axis."""
    parts = [leaf.value for leaf in leaves(values)]
    return graph_of(parts, "concat").apply("Concat", parts, {"axis": axis}, name)[0]


def _filled(number: int, shape: Any, dtype: ElementTypeLike, name: str) -> Tensor:
    known = check_shape(shape, f"{name}(): shape")
    if not known.is_static:
        raise BuildError(
            f"{name}(): shape is {known}, expected known lengths; use ops.broadcast for a "
            "computed shape"
        )
    return current_graph().constant(
        np.full(known.lengths, number, element_type_of(dtype).dtype), None, name
    )


def _elementwise(caller: str, type: str, inputs: int) -> Callable[..., Tensor]:
    """Return a function of one or two tensors or numbers and a name."""

    def function(*values: Any, name: str | None = None) -> Tensor:
        if len(values) != inputs:
            raise TypeError(f"{caller}() expects {inputs} tensors, got {len(values)}")
        return graph_of(values, caller).apply(type, values, {}, name or "")[0]

    function.__name__ = function.__qualname__ = caller
    function.__doc__ = (
        f"Apply {type} elementwise. ``name=`` names the node; ``builder.ops`` has "
        "a function with all attributes."
    )
    return function


add = _elementwise("add", "Add", 2)
subtract = _elementwise("subtract", "Subtract", 2)
multiply = _elementwise("multiply", "Multiply", 2)
equal = _elementwise("equal", "Equal", 2)
not_equal = _elementwise("not_equal", "NotEqual", 2)
less = _elementwise("less", "Less", 2)
less_equal = _elementwise("less_equal", "LessEqual", 2)
greater = _elementwise("greater", "Greater", 2)
greater_equal = _elementwise("greater_equal", "GreaterEqual", 2)
logical_and = _elementwise("logical_and", "LogicalAnd", 2)
logical_or = _elementwise("logical_or", "LogicalOr", 2)
logical_not = _elementwise("logical_not", "LogicalNot", 1)


_ANY = Dimension()


@dataclass(frozen=True, slots=True, eq=False)
class SparseTensor(Composite):
    """A tensor with only some elements stored; all others are zero.

    ``indices``: [n, rank], ``values``: [n], ``dense_shape``: [rank]. As a loop variable its
    invariant is the shape of ``dense_shape``, [rank]; the number of elements may always change.
    ``BuildError`` for components of other ranks.
    """

    indices: Any
    values: Any
    dense_shape: Any

    def __post_init__(self) -> None:
        _lift_parts(self, indices=2, values=1, dense_shape=1)

    def get_shape(self) -> PartialShape:
        """Return the shape of the represented tensor: unknown lengths, as many as its rank if that
        is known.
        """
        rank = self.dense_shape.shape.at(0)
        return PartialShape((_ANY,) * rank.length) if rank.is_static else DYNAMIC

    def invariants(
        self, invariant: PartialShape | None, what: str
    ) -> Sequence[PartialShape | None]:
        shape = self.dense_shape.shape if invariant is None else invariant
        if shape.rank not in (None, 1):
            raise BuildError(
                f"{what} is {shape}, expected the shape of a SparseTensor's dense_shape, which "
                "has one length: the rank"
            )
        rank = shape.at(0) if shape.rank == 1 else _ANY
        return PartialShape((_ANY, rank)), PartialShape((_ANY,)), PartialShape((rank,))


@dataclass(frozen=True, slots=True, eq=False)
class IndexedSlices(Composite):
    """Some slices of a tensor along its first axis.

    ``values``: [n, ...], ``indices``: [n], the position of each slice, ``dense_shape``: [rank]. As
    a loop variable its invariant is the shape of ``values``. ``BuildError`` for components of other
    ranks.
    """

    values: Any
    indices: Any
    dense_shape: Any

    def __post_init__(self) -> None:
        _lift_parts(self, values=None, indices=1, dense_shape=1)

    def invariants(
        self, invariant: PartialShape | None, what: str
    ) -> Sequence[PartialShape | None]:
        if invariant is None:
            return None, None, None
        if invariant.dimensions is None:
            return DYNAMIC, PartialShape((_ANY,)), PartialShape((_ANY,))
        if not invariant.dimensions:
            raise BuildError(
                f"{what} is {invariant}, expected the shape of the values of IndexedSlices, which "
                "have at least one axis"
            )
        return (
            invariant,
            PartialShape((invariant.at(0),)),
            PartialShape((static(len(invariant.dimensions)),)),
        )


def _lift_parts(composite: SparseTensor | IndexedSlices, **ranks: int | None) -> None:
    """Convert the components to tensors of the current graph. A rank of None accepts any rank
    except 0.
    """
    caller = type(composite).__name__
    components = {name: getattr(composite, name) for name in ranks}
    graph = graph_of(components.values(), caller)
    for name, rank in ranks.items():
        tensor: Tensor = graph.lift(components[name], what=f"{caller}: {name}")
        if tensor.rank is not None and (
            tensor.rank != rank if rank is not None else tensor.rank == 0
        ):
            expected = f"rank {rank}" if rank is not None else "at least one axis"
            raise BuildError(f"{caller}: {name} is {tensor!r}, expected {expected}")
        if name != "values" and tensor.element_type not in (None, *INDEX_TYPES):
            raise BuildError(f"{caller}: {name} is {tensor!r}, expected i32 or i64")
        object.__setattr__(composite, name, tensor)
