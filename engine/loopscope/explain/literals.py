"""Values as Python text: what is small is written out, exactly; what is large is read from a
file of weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.values import NOT_KEPT

_MOST_WRITTEN = 64
_PLAIN = frozenset(
    np.dtype(name)
    for name in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
)
_STORED = _PLAIN | {np.dtype("c8"), np.dtype("c16")}
"""What a file of weights holds as it is."""
_INLINE = frozenset(np.dtype(name) for name in ("b1", "i4", "i8", "f4", "f8"))


def fits_in_code(value: Any) -> bool:
    """Whether a value is small and plain enough to be written out."""
    return (
        value is not NOT_KEPT
        and np.size(value) <= _MOST_WRITTEN
        and np.asarray(value).dtype in _PLAIN
    )


def array_text(name: str, value: Any) -> str:
    """An expression that gives the value; by ``name`` from ``WEIGHTS`` when it is not written out.

    >>> array_text("", np.float32([0.1, 2])), array_text("", np.zeros((0, 2), np.int64)), array_text("", np.bool_(True))
    ('np.array([0.1, 2.0], np.float32)', 'np.zeros((0, 2), np.int64)', 'np.bool_(True)')
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
        return f"WEIGHTS[{name!r}]{_restored(array.dtype)}"
    items = [_number(item) for item in array.reshape(-1)]
    if not array.ndim:
        return f"{kind}({items[0]})"
    text = f"np.array([{', '.join(items)}], {kind})"
    return text if array.ndim == 1 else f"{text}.reshape{array.shape!r}"


def zeros_text(element_type: ElementType, lengths: Sequence[int]) -> str:
    """An expression that gives zeros, or empty texts, of a type and a shape; a number for no
    dimensions, as runs have it.

    >>> zeros_text(ElementType.F32, (2, 3)), zeros_text(ElementType.I64, ()), zeros_text(ElementType.STRING, (2,))
    ('np.zeros((2, 3), np.float32)', 'np.int64(0)', "np.full((2,), '', object)")
    >>> zeros_text(ElementType.BF16, ())
    "np.zeros((), ElementType('bf16').dtype)[()]"
    """
    shape, dtype = tuple(lengths), element_type.dtype
    if element_type is ElementType.STRING:
        return f"np.full({shape!r}, '', object)"
    if dtype not in _PLAIN:
        return f"np.zeros({shape!r}, ElementType({element_type.value!r}).dtype){'' if shape else '[()]'}"
    return f"np.zeros({shape!r}, {_type_text(dtype)})" if shape else array_text("", dtype.type())


def stored(value: Any) -> np.ndarray:
    """A value as an array that a file of weights can hold: of types that numpy knows.

    >>> value = np.zeros((2, 0), np.complex128)
    >>> stored(value).dtype, array_text("w", value)
    (dtype('complex128'), "WEIGHTS['w']")
    """
    array = np.asarray(value)
    if array.dtype == object:
        return array.astype(str)
    return array if array.dtype in _STORED else array.view(f"u{array.dtype.itemsize}")


def _restored(dtype: np.dtype) -> str:
    if dtype.kind == "O":
        return ".astype(object)"
    if dtype in _STORED:
        return ""
    try:
        return f".view(ElementType({ElementType.of_dtype(dtype).value!r}).dtype)"
    except KeyError:  # a type that only ONNX has
        return f".view(np.dtype({dtype.name!r}))"


def inline_text(value: Any) -> str:
    """A number that takes its type from what it is computed with; empty for what is none."""
    if value is NOT_KEPT:
        return ""
    array = np.asarray(value)
    if (
        array.ndim
        or array.dtype not in _INLINE
        or (array.dtype.kind == "f" and not np.isfinite(array))
    ):
        return ""
    return _number(array[()])


def attribute_text(value: Any) -> str:
    """An attribute of an operation as Python text; every piece of the model's own text is
    quoted.
    """
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
            return "(" + "".join(f"{attribute_text(one)}, " for one in value).rstrip() + ")"
        case _:
            return array_text("", value)


def _number(item: Any) -> str:
    """The shortest text that gives the number back in its type."""
    if item.dtype.kind == "f":
        return repr(float(str(item)))
    return repr(item.item())


def _type_text(dtype: np.dtype) -> str:
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"
