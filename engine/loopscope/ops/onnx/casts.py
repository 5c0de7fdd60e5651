"""ONNX's Cast and CastLike: numbers and strings of one element type as those of another."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from loopscope.errors import shorten
from loopscope.ir.element_type import is_whole
from loopscope.ops.declare import Array
from loopscope.ops.values import given

Kernel = Callable[..., Any]

_TARGETS: Mapping[int, np.dtype] = {
    number: helper.tensor_dtype_to_np_dtype(number)
    for name, number in TensorProto.DataType.items()
    if not name.startswith(("UNDEFINED", "COMPLEX"))
}
_TEXT = np.dtype(object)
_F8E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)
_F4E2M1 = np.dtype(ml_dtypes.float4_e2m1fn)
_F8 = frozenset(
    np.dtype(kind)
    for kind in (
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    )
)
_PLAIN = "biuf"
_ROUND_MODES = ("up", "down", "nearest")
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf|nan", re.ASCII | re.IGNORECASE
)
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)


def cast(attributes: Mapping[str, Any], outputs: int, /) -> Kernel:
    """Return the kernel of a Cast, whose type is known before it runs. The kernel returns a tuple,
    and raises ``ValueError`` for an unknown type when it is called.
    """
    dtype = _TARGETS.get(attributes["to"])
    if dtype is None:
        return partial(_raise_unknown, attributes["to"])
    saturate, round_mode = _limits(attributes)
    return (
        _to_plain_numbers(dtype)
        if _is_plain(dtype)
        else partial(_cast_to, dtype, saturate, round_mode)
    )


def _raise_unknown(number: int, value: Any, /) -> Any:
    raise ValueError(f"to is {number}, expected the number of an element type in TensorProto")


def _is_plain(dtype: np.dtype) -> bool:
    return dtype.isbuiltin == 1 and dtype.kind in _PLAIN


def cast_like(attributes: Mapping[str, Any], outputs: int, /) -> Kernel:
    """Return the kernel of a CastLike, which converts to the type of the second tensor. It returns
    a tuple.
    """
    saturate, round_mode = _limits(attributes)

    def to_that_of(value: Any, like: Any, /) -> Any:
        dtype = like.dtype
        return (
            (value.astype(dtype),)
            if _is_plain(dtype) and value.dtype.kind in _PLAIN
            else _cast_to(dtype, saturate, round_mode, value)
        )

    return to_that_of


def _limits(attributes: Mapping[str, Any]) -> tuple[bool, str]:
    saturate = attributes.get("saturate")
    return saturate is None or bool(saturate), attributes.get("round_mode") or "up"


def _to_plain_numbers(dtype: np.dtype) -> Kernel:
    def to_plain_numbers(value: Any, /) -> Any:
        return (
            (value.astype(dtype),)
            if value.dtype.kind in _PLAIN
            else _cast_to(dtype, True, "up", value)
        )

    return to_plain_numbers


def _cast_to(dtype: np.dtype, saturate: bool, round_mode: str, value: Any, /) -> tuple[Any]:
    return (given(converted(np.asarray(value), dtype, saturate=saturate, round_mode=round_mode)),)


def converted(
    data: Array, dtype: np.dtype, /, *, saturate: bool = True, round_mode: str = "up"
) -> Array:
    """Return the elements in another type.

    ONNX's page Cast and, for integers of 2 and 4 bits, "2 bit" and "4 bit integer types" of its
    technical details define the conversion. Floats are cut off towards zero when they become
    integers of 8 bits and more. To 4 and 2 bits they are rounded to the nearest, halves to even.
    Integers that do not fit lose their higher bits. ``saturate`` and ``round_mode`` are those of
    8-bit floats.

    ONNX leaves two cases open, and ONNX Runtime decides them: numbers are written with 8 digits,
    and numbers below 0 have no f8e8m0. Raise ``ValueError`` for a text that is not a number.
    """
    if dtype == _TEXT:
        return data if data.dtype == _TEXT else _to_texts(_as_computable(data))
    if data.dtype == _TEXT:
        return converted(
            _read(data, whole=dtype.isbuiltin == 1 and dtype.kind in "iu"),
            dtype,
            saturate=saturate,
            round_mode=round_mode,
        )
    if dtype == _F8E8M0:
        if round_mode not in _ROUND_MODES:
            raise ValueError(
                f"round_mode is {shorten(repr(round_mode))}, "
                f"expected one of {', '.join(_ROUND_MODES)}"
            )
        return _to_f8e8m0(_as_computable(data).astype(np.float64), saturate, round_mode)
    numbers = _as_computable(data)
    if dtype.isbuiltin == 1:
        return numbers != 0 if dtype.kind == "b" else numbers.astype(dtype)
    if is_whole(dtype):
        return _to_few_bits(numbers, dtype)
    near = _round_once(numbers) if dtype in _F8 or dtype == _F4E2M1 else numbers.astype(np.float32)
    if dtype in _F8 and saturate:
        limit = np.float32(ml_dtypes.finfo(dtype).max)
        near = np.clip(near, -limit, limit)
    return near.astype(dtype)


def _as_computable(data: Array) -> Array:
    """Return the elements in a type that numpy computes with."""
    return (
        data
        if data.dtype.isbuiltin == 1
        else data.astype(np.int8 if is_whole(data.dtype) else np.float32)
    )


def _to_few_bits(numbers: Array, dtype: np.dtype) -> Array:
    """Return integers of 2 or 4 bits: the low bits of the nearest integer."""
    whole = (
        np.rint(numbers).astype(np.int64)
        if numbers.dtype.kind == "f"
        else numbers.astype(np.int64, copy=False)
    )
    bits = int(ml_dtypes.iinfo(dtype).bits)
    codes = whole & (2**bits - 1)
    if int(ml_dtypes.iinfo(dtype).min) < 0:
        codes = (codes ^ 2 ** (bits - 1)) - 2 ** (bits - 1)
    return np.asarray(codes).astype(np.int8).astype(dtype)


def _round_once(numbers: Array) -> Array:
    """Return f32, from which narrow floats are converted. Digits that only f64 holds are
    represented as an odd last bit, so that no number is rounded twice.
    """
    near = numbers.astype(np.float32)
    if numbers.dtype != np.float64:
        return near
    bits = np.asarray(near).view(np.uint32) - (np.abs(near) > np.abs(numbers))
    return (bits | (np.isfinite(numbers) & (near != numbers))).astype(np.uint32).view(np.float32)


_E8M0_BIAS, _E8M0_MOST, _E8M0_NAN = 127, 254, 255


def _to_f8e8m0(numbers: Array, saturate: bool, round_mode: str) -> Array:
    """Return codes of f8e8m0 (OCP Microscaling formats 1.0), halfway up. Numbers beyond its range
    become the end of the range, or NaN.
    """
    mantissa, exponent = np.frexp(numbers)
    threshold = {"up": mantissa > 0.5, "down": False, "nearest": mantissa >= 0.75}[round_mode]
    codes = np.where(np.isfinite(numbers), exponent, 0) - 1 + _E8M0_BIAS + threshold
    below, above = numbers < 2.0**-_E8M0_BIAS, numbers > 2.0**_E8M0_BIAS
    codes = np.where(
        below,
        0 if saturate else _E8M0_NAN,
        np.where(above, _E8M0_MOST if saturate else _E8M0_NAN, codes),
    )
    return np.asarray(np.where(np.isnan(numbers), _E8M0_NAN, codes).astype(np.uint8)).view(_F8E8M0)


def _to_texts(numbers: Array) -> Array:
    result = np.empty(numbers.shape, _TEXT)
    write: Callable[[Any], str] = (
        _write_number if numbers.dtype.kind == "f" else lambda number: str(int(number))
    )
    result.reshape(-1)[:] = [write(number) for number in numbers.reshape(-1).tolist()]
    return result


def _write_number(number: float) -> str:
    if math.isfinite(number):
        return f"{number:.8g}"
    return "NaN" if math.isnan(number) else "INF" if number > 0 else "-INF"


def _read(texts: Array, *, whole: bool) -> Array:
    read = [str(text).strip() for text in texts.reshape(-1).tolist()]
    if not whole:
        return np.array([_real(text) for text in read], np.float64).reshape(texts.shape)
    return (
        np.array([_whole(text) & 2**64 - 1 for text in read], np.uint64)
        .view(np.int64)
        .reshape(texts.shape)
    )


def _real(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"the text {shorten(repr(text))} is not a number")
    return float(text)


def _whole(text: str) -> int:
    """Exactly; of a decimal number what stands before its point."""
    number = int(text) if _WHOLE.fullmatch(text) else _real(text)
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"the text {shorten(repr(text))} is not an integer of 64 bits")
    return int(number)


def cast_by_name(data: Array, /, *, to: object) -> Array:
    """Return the data in the type that ``to`` names, for Cast before opset 6."""
    name = str(to).upper()
    dtype = _NAMED_DTYPES.get(name)
    if dtype is None:
        raise ValueError(f"to is {name[:40]!r}, expected one of {', '.join(_NAMED_DTYPES)}")
    return data.astype(dtype)


_NAMED_DTYPES: Mapping[str, str] = {
    **{
        name: name.lower()
        for name in (
            "UINT8",
            "INT8",
            "UINT16",
            "INT16",
            "INT32",
            "INT64",
            "UINT32",
            "UINT64",
            "FLOAT16",
            "BOOL",
        )
    },
    "FLOAT": "float32",
    "DOUBLE": "float64",
}
