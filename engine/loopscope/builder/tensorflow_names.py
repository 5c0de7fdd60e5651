"""TensorFlow's names for functions of ``builder.ops`` and ``Graph``, so that its examples run with
``builder`` for ``tf``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from loopscope.builder.graph_builder import check_shape, current_graph, graph_of
from loopscope.builder.python_values import ElementTypeLike, constant_array, element_type_of
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape


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
