"""Conversion of Python numbers, lists and numpy arrays to typed arrays for Consts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import ElementType

_NATURAL = {
    "b": ElementType.BOOLEAN,
    "i": ElementType.I64,
    "u": ElementType.I64,
    "f": ElementType.F32,
}
_PYTHON_TYPES = {
    float: ElementType.F32,
    int: ElementType.I64,
    bool: ElementType.BOOLEAN,
    str: ElementType.STRING,
}
_PREFERRED_TYPES = (
    *(
        ElementType.I64,
        ElementType.F32,
        ElementType.BOOLEAN,
        ElementType.I32,
        ElementType.F64,
        ElementType.F16,
        ElementType.BF16,
    ),
    *(
        ElementType.I16,
        ElementType.I8,
        ElementType.U64,
        ElementType.U32,
        ElementType.U16,
        ElementType.U8,
    ),
)
"""Types for Python numbers in order of preference, if an input supports them. For numpy arrays only
the first three are tried.
"""
_NAMES = tuple(element_type.value for element_type in ElementType)
ElementTypeLike = ElementType | str | np.dtype | type


def element_type_of(value: Any, what: str = "element_type") -> ElementType:
    """Return an element type from its IR name, its numpy dtype, or itself.

    ``BuildError`` for anything else.

    >>> element_type_of("f32"), element_type_of(np.int64), element_type_of(bool)
    (<ElementType.F32: 'f32'>, <ElementType.I64: 'i64'>, <ElementType.BOOLEAN: 'boolean'>)
    """
    if isinstance(value, ElementType):
        return value
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    try:
        if not isinstance(value, str):
            # numpy refuses what is not a type.
            return ElementType.of_dtype(np.dtype(value))
        name = value.strip().lower()
        # `float` is a name for numpy's float64, and for nothing in an IR.
        by_numpy = name not in _NAMES and np.dtype(name).name == name
        return ElementType.of_dtype(np.dtype(name)) if by_numpy else ElementType(name)
    except (ValueError, KeyError, TypeError):
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, expected one of {', '.join(_NAMES)}, or a "
            "numpy dtype"
        ) from None


def as_array(
    value: object, wanted: Sequence[ElementType], allowed: Collection[ElementType], what: str
) -> np.ndarray:
    """Return a value as an array, in the first type of ``wanted`` that can represent it, else in
    its natural type, which must be in ``allowed``.

    The natural type is i64 for a Python int, f32 for a float, and the dtype for an array. If it is
    not allowed, Python numbers get an allowed type. ``BuildError`` messages name ``what``.
    """
    array = _array(value, what)
    natural = _natural_type(value, array, what)
    for element_type in wanted:
        if element_type in allowed and _can_represent(element_type, array):
            return cast(array, element_type)
    if natural in allowed:
        return cast(array, natural)
    fallbacks = (
        _PREFERRED_TYPES
        if not isinstance(value, (np.ndarray, np.generic))
        else _PREFERRED_TYPES[:3]
    )
    for element_type in fallbacks:
        if element_type in allowed and _can_represent(element_type, array):
            return cast(array, element_type)
    names = ", ".join(sorted(str(element_type) for element_type in allowed))
    raise BuildError(f"{what} is {shorten(repr(value), 60)}, which is {natural}; expected {names}")


def constant_array(value: object, element_type: ElementType | None, what: str) -> np.ndarray:
    """Return a value as an array of the given type (None: the natural type).

    ``BuildError`` if the type cannot represent the value.
    """
    array = _array(value, what)
    if element_type is None:
        return cast(array, _natural_type(value, array, what))
    if not _can_represent(element_type, array):
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, which {element_type} cannot represent"
        )
    return cast(array, element_type)


def cast(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Convert an array to another element type that can represent it."""
    if array.dtype == element_type.dtype:
        return array
    if element_type is ElementType.STRING:
        return array.astype(object)
    if element_type.dtype.names:
        return (
            np.ascontiguousarray(array.astype(np.uint8))
            .view(element_type.dtype)
            .reshape(array.shape)
        )
    widened = (
        array.astype(np.float32)
        if element_type.dtype.kind == "V" and array.dtype.kind == "f"
        else array
    )
    with np.errstate(all="ignore"):
        return widened.astype(element_type.dtype)


def _array(value: object, what: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, which is not an array: {error}"
        ) from None
    except OverflowError:
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, which does not fit into any element type"
        ) from None
    if array.size == 0 and not isinstance(value, (np.ndarray, np.generic)):
        return array.astype(np.int64)
    return array


def _natural_type(value: object, array: np.ndarray, what: str) -> ElementType:
    from_python = not isinstance(value, (np.ndarray, np.generic))
    if array.dtype.kind in "US" or (
        array.dtype == object and all(isinstance(item, str) for item in array.reshape(-1).tolist())
    ):
        return ElementType.STRING
    if from_python and array.dtype.kind in _NATURAL:
        return _NATURAL[array.dtype.kind]
    try:
        if array.dtype != object:
            return ElementType.of(array)
    except KeyError:
        pass
    if (
        array.dtype == object
        and array.size
        and all(type(item) is int for item in array.reshape(-1).tolist())
    ):
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}: an integer needs more than 64 bits"
        )
    raise BuildError(
        f"{what} is {shorten(repr(value), 60)} ({type(value).__name__}), expected a Tensor of "
        "this graph, a number, or a numpy array"
    )


def _can_represent(element_type: ElementType, array: np.ndarray) -> bool:
    """Return True if a type represents the same numbers: integers in range, floats only in floats,
    bool only in boolean.
    """
    kind = array.dtype.kind
    if array.dtype == element_type.dtype:
        return True
    if kind == "b" or element_type is ElementType.BOOLEAN:
        return kind == "b" and element_type is ElementType.BOOLEAN
    if kind in "US" or element_type is ElementType.STRING:
        return kind in "USO" and element_type is ElementType.STRING
    if kind in "iu":
        return element_type.is_float or _in_range(element_type, array)
    return kind == "f" and element_type.is_float


def _in_range(element_type: ElementType, array: np.ndarray) -> bool:
    if not array.size:
        return True
    bits = element_type.bits
    lower, upper = (
        (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if element_type.is_signed else (0, 2**bits - 1)
    )
    return lower <= int(array.min()) and int(array.max()) <= upper
