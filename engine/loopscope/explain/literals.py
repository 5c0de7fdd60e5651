"""Values as Python text: small values are written out exactly, large ones are read from a weights
file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.values import NOT_KEPT

_MAX_INLINE_ELEMENTS = 64
_LITERAL_DTYPES = frozenset(
    np.dtype(name)
    for name in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
)
_STORABLE_DTYPES = _LITERAL_DTYPES | {np.dtype("c8"), np.dtype("c16")}
"""Types that a weights file stores unchanged."""
_INLINE_DTYPES = frozenset(np.dtype(name) for name in ("b1", "i4", "i8", "f4", "f8"))


def fits_in_code(value: Any) -> bool:
    """Return True if a value is small enough, and of a plain type, to be written out."""
    return (
        value is not NOT_KEPT
        and np.size(value) <= _MAX_INLINE_ELEMENTS
        and np.asarray(value).dtype in _LITERAL_DTYPES
    )


def array_text(name: str, value: Any) -> str:
    """Return an expression for a value; large values are read as ``WEIGHTS[name]``.

    >>> array_text("", np.float32([0.1, 2])), array_text("", np.zeros((0, 2), np.int64))
    ('np.array([0.1, 2.0], np.float32)', 'np.zeros((0, 2), np.int64)')
    >>> array_text("", np.bool_(True))
    'np.bool_(True)'
    >>> array_text("w", NOT_KEPT)
    "WEIGHTS['w']  # not kept: the run was saved without weights"
    """
    if value is NOT_KEPT:
        return f"WEIGHTS[{name!r}]  # not kept: the run was saved without weights"
    array = np.asarray(value)
    kind = _type_text(array.dtype)
    if (
        array.dtype.kind in "biuf"
        and not np.count_nonzero(array)
        and array.ndim
        and not np.signbit(array.astype(np.float64)).any()
    ):
        return f"np.zeros({array.shape!r}, {kind})"
    if not fits_in_code(value):
        return f"WEIGHTS[{name!r}]{_conversion_after_load(array.dtype)}"
    items = [_number(item) for item in array.reshape(-1)]
    if not array.ndim:
        return f"{kind}({items[0]})"
    text = f"np.array([{', '.join(items)}], {kind})"
    return text if array.ndim == 1 else f"{text}.reshape{array.shape!r}"


def zeros_text(element_type: ElementType, lengths: Sequence[int]) -> str:
    """Return an expression for zeros (or empty texts) of a type and shape.

    A tensor without dimensions becomes a scalar, as in runs.

    >>> zeros_text(ElementType.F32, (2, 3)), zeros_text(ElementType.I64, ())
    ('np.zeros((2, 3), np.float32)', 'np.int64(0)')
    >>> zeros_text(ElementType.STRING, (2,))
    "np.full((2,), '', object)"
    >>> zeros_text(ElementType.BF16, ())
    "np.zeros((), ElementType('bf16').dtype)[()]"
    """
    shape, dtype = tuple(lengths), element_type.dtype
    if element_type is ElementType.STRING:
        return f"np.full({shape!r}, '', object)"
    if dtype not in _LITERAL_DTYPES:
        scalar = "" if shape else "[()]"
        return f"np.zeros({shape!r}, ElementType({element_type.value!r}).dtype){scalar}"
    return f"np.zeros({shape!r}, {_type_text(dtype)})" if shape else array_text("", dtype.type())


def stored(value: Any) -> np.ndarray:
    """Return a value as an array of a type that a weights file can store.

    >>> value = np.zeros((2, 0), np.complex128)
    >>> stored(value).dtype, array_text("w", value)
    (dtype('complex128'), "WEIGHTS['w']")
    """
    array = np.asarray(value)
    if array.dtype == object:
        return array.astype(str)
    return array if array.dtype in _STORABLE_DTYPES else array.view(f"u{array.dtype.itemsize}")


def _conversion_after_load(dtype: np.dtype) -> str:
    if dtype.kind == "O":
        return ".astype(object)"
    if dtype in _STORABLE_DTYPES:
        return ""
    try:
        return f".view(ElementType({ElementType.of_dtype(dtype).value!r}).dtype)"
    except KeyError:  # a type that only ONNX has
        return f".view(np.dtype({dtype.name!r}))"


def inline_text(value: Any) -> str:
    """Return a scalar as a literal whose type follows from the other operand; empty if not
    possible.
    """
    if value is NOT_KEPT:
        return ""
    array = np.asarray(value)
    if (
        array.ndim
        or array.dtype not in _INLINE_DTYPES
        or (array.dtype.kind == "f" and not np.isfinite(array))
    ):
        return ""
    return _number(array[()])


def attribute_text(value: Any) -> str:
    """Return an operation's attribute as Python text; every text from the model is quoted."""
    match value:
        case ElementType():
            return f"ElementType({value.value!r})"
        case PartialShape():
            return repr(tuple(value.lengths_or_zeros()))
        case float():
            return repr(value)
        case bool() | int() | str() | None:
            return repr(value)
        case tuple() | list():
            return "(" + "".join(f"{attribute_text(item)}, " for item in value).rstrip() + ")"
        case _:
            return array_text("", value)


def _number(item: Any) -> str:
    """Return the shortest text that restores the number in its type."""
    if item.dtype.kind == "f":
        return repr(float(str(item)))
    return repr(item.item())


def _type_text(dtype: np.dtype) -> str:
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"
