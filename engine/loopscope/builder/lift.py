"""Python numbers, lists and numpy arrays as typed arrays, so that they can become Consts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import ElementType

_NATURAL = {
    "b": ElementType.BOOLEAN,
    "i": ElementType.I64,
    "u": ElementType.I64,
    "f": ElementType.F32,
}
_OF_PYTHON = {
    float: ElementType.F32,
    int: ElementType.I64,
    bool: ElementType.BOOLEAN,
    str: ElementType.STRING,
}
_FROM_PYTHON = (
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
"""The types that Python's numbers become, in this order, where an input takes them; arrays of
numpy, which have a type, only the first.
"""
_NAMES = tuple(one.value for one in ElementType)
ElementTypeLike = ElementType | str | np.dtype | type


def element_type_of(given: object, what: str = "element_type") -> ElementType:
    """An element type by its name in the IR, its numpy dtype, or itself; ``BuildError`` for
    anything else.

    >>> element_type_of("f32"), element_type_of(np.int64), element_type_of(bool)
    (<ElementType.F32: 'f32'>, <ElementType.I64: 'i64'>, <ElementType.BOOLEAN: 'boolean'>)
    """
    if isinstance(given, ElementType):
        return given
    if isinstance(given, type) and given in _OF_PYTHON:
        return _OF_PYTHON[given]
    try:
        if not isinstance(given, str):
            return ElementType.of_dtype(np.dtype(given))  # type: ignore[call-overload]  # numpy refuses what is not a dtype
        name = given.strip().lower()
        # `float` is a name for numpy's float64, and for nothing in an IR.
        by_numpy = name not in _NAMES and np.dtype(name).name == name
        return ElementType.of_dtype(np.dtype(name)) if by_numpy else ElementType(name)
    except (ValueError, KeyError, TypeError):
        raise BuildError(
            f"{what} is {shorten(repr(given), 60)}, expected one of {', '.join(_NAMES)}, or a numpy dtype"
        ) from None


def as_array(
    value: object, wanted: Sequence[ElementType], allowed: Collection[ElementType], what: str
) -> np.ndarray:
    """The array of a value, in the first type of ``wanted`` that holds it, else its own one; that
    must be among ``allowed``.

    The own type of a Python int is i64, that of a float f32, that of an array its dtype; where
    those are not allowed, Python's numbers become what is. ``BuildError`` names ``what``.
    """
    array = _array(value, what)
    own = _own_type(value, array, what)
    for element_type in wanted:
        if element_type in allowed and _holds(element_type, array):
            return cast(array, element_type)
    if own in allowed:
        return cast(array, own)
    usual = _FROM_PYTHON if not isinstance(value, (np.ndarray, np.generic)) else _FROM_PYTHON[:3]
    for element_type in usual:
        if element_type in allowed and _holds(element_type, array):
            return cast(array, element_type)
    names = ", ".join(sorted(str(one) for one in allowed))
    raise BuildError(f"{what} is {shorten(repr(value), 60)}, which is {own}; expected {names}")


def constant_array(value: object, element_type: ElementType | None, what: str) -> np.ndarray:
    """The array of a value in a given type (None: its own one); ``BuildError`` when the type
    cannot hold it.
    """
    array = _array(value, what)
    if element_type is None:
        return cast(array, _own_type(value, array, what))
    if not _holds(element_type, array):
        raise BuildError(f"{what} is {shorten(repr(value), 60)}, which {element_type} cannot hold")
    return cast(array, element_type)


def cast(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """An array in another element type, which is known to hold it."""
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
    through = (
        array.astype(np.float32)
        if element_type.dtype.kind == "V" and array.dtype.kind == "f"
        else array
    )
    with np.errstate(all="ignore"):
        return through.astype(element_type.dtype)


def _array(value: object, what: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, which is not an array: {error}"
        ) from None
    except OverflowError:
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, which no element type holds"
        ) from None
    if array.size == 0 and not isinstance(value, (np.ndarray, np.generic)):
        return array.astype(np.int64)
    return array


def _own_type(value: object, array: np.ndarray, what: str) -> ElementType:
    from_python = not isinstance(value, (np.ndarray, np.generic))
    if array.dtype.kind in "US" or (
        array.dtype == object and all(isinstance(one, str) for one in array.reshape(-1).tolist())
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
        and all(type(one) is int for one in array.reshape(-1).tolist())
    ):
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}: a whole number needs more than 64 bits"
        )
    raise BuildError(
        f"{what} is {shorten(repr(value), 60)} ({type(value).__name__}), expected a Tensor of this graph, a number, or a numpy array"
    )


def _holds(element_type: ElementType, array: np.ndarray) -> bool:
    """Whether a type means the same numbers: integers in range, floats only in floats, bool only
    in boolean.
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
    least, most = (
        (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if element_type.is_signed else (0, 2**bits - 1)
    )
    return least <= int(array.min()) and int(array.max()) <= most
