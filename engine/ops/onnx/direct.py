"""ONNX operations that need no reference kernel: plain numpy, optionals, and what the onnx package declares but does not compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import re2

from engine.errors import shorten
from engine.ops.arithmetic.binary import refuse_zeros
from engine.ops.values import NO_VALUE

Kernel = Callable[..., Any]


def identity(value: Any, /) -> Any:
    """The very same value, a tensor, sequence or optional."""
    return value


def where(condition: Any, then: Any, otherwise: Any, /) -> Any:
    """Elements of the second where the first is true, of the third elsewhere, broadcast together."""
    if condition.ndim == 0 and then.shape == otherwise.shape and then.dtype == otherwise.dtype:
        return then if condition else otherwise
    return np.where(condition, then, otherwise)


def divide(one: Any, other: Any, /) -> Any:
    """The quotient; of integers towards zero. ``ValueError`` for an integer divided by zero, as ONNX Runtime refuses it."""
    if one.dtype.kind not in "iu":
        return np.divide(one, other)
    refuse_zeros(other)
    quotient = np.floor_divide(one, other)
    towards_zero = (quotient * other != one) & ((one < 0) != (other < 0))
    return (quotient + towards_zero).astype(one.dtype)


def cast_to(to: object, slow: Kernel) -> Kernel:
    """Cast between numpy's own numbers; ``slow`` does what is left: text, narrow floats, saturation. Gives a tuple."""
    dtype = _NUMBERS.get(to) if isinstance(to, int) else None
    if dtype is None:
        return partial(_cast_from_f64, slow) if to in _NARROW else slow

    def cast(value: Any, /) -> Any:
        return (value.astype(dtype),) if value.dtype.kind in "biuf" else slow(value)

    return cast


def cast_like(slow: Kernel) -> Kernel:
    """Cast to the type of a second tensor; ``slow`` does it."""

    def cast(value: Any, like: Any, /) -> Any:
        narrow = like.dtype.itemsize == 1 and like.dtype.name.startswith("float")
        return _cast_from_f64(slow, value, like) if narrow else slow(value, like)

    return cast


def _cast_from_f64(slow: Kernel, value: Any, /, *like: Any) -> Any:
    """Narrow floats are made of f32: what f64 holds beyond that is kept as an odd last bit, so that it is rounded once and not twice."""
    if value.dtype != np.float64:
        return slow(value, *like)
    near = np.asarray(value).astype(np.float32)
    bits = near.view(np.uint32) - (np.abs(near) > np.abs(value))
    return slow((bits | (np.isfinite(value) & (near != value))).astype(np.uint32).view(np.float32), *like)


_NARROW = frozenset({17, 18, 19, 20, 23, 24})
"""FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, FLOAT4E2M1, FLOAT8E8M0 of TensorProto."""
_NUMBERS: Mapping[int, np.dtype] = {
    # TensorProto's data types
    number: np.dtype(name)
    for number, name in {
        1: "float32",
        2: "uint8",
        3: "int8",
        4: "uint16",
        5: "int16",
        6: "int32",
        7: "int64",
        9: "bool",
        10: "float16",
        11: "float64",
        12: "uint32",
        13: "uint64",
    }.items()
}


def optional(value: Any = None, /, **types: object) -> Any:
    """An optional that holds the value, or nothing."""
    return NO_VALUE if value is None else value


def optional_has_element(value: Any = None, /) -> Any:
    """Whether there is a value."""
    return np.bool_(value is not None and value is not NO_VALUE)


def optional_get_element(value: Any = None, /) -> Any:
    """The value; ``ValueError`` when there is none."""
    if value is None or value is NO_VALUE:
        raise ValueError("the optional holds no value")
    return value


def global_lp_pool(tensor: np.ndarray, /, *, p: float = 2) -> np.ndarray:
    """The p-norm over all spatial axes, which stay with length 1."""
    axes = tuple(range(2, tensor.ndim))
    powers = np.abs(tensor.astype(np.float64)) ** p
    return np.asarray(powers.sum(axis=axes, keepdims=True) ** (1 / p)).astype(tensor.dtype)


def scatter(tensor: np.ndarray, indices: np.ndarray, updates: np.ndarray, /, *, axis: int = 0) -> np.ndarray:
    """Updates written at the indices along an axis (ScatterElements before it had its name)."""
    made = np.array(tensor)
    length = tensor.shape[axis]
    np.put_along_axis(made, np.where(indices < 0, indices + length, indices), updates, axis)
    return made


def regex_full_match(texts: np.ndarray, /, *, pattern: str | None = None) -> np.ndarray:
    """Whether each text as a whole matches the pattern, in RE2's syntax and in time linear in the text."""
    try:
        compiled = re2.compile(pattern or "", _QUIET)
    except re2.error as error:
        raise ValueError(f"the pattern {shorten(repr(pattern))} is none of RE2: {_decoded(error)}") from None
    found = [compiled.fullmatch(str(text)) is not None for text in texts.reshape(-1).tolist()]
    return np.array(found, np.bool_).reshape(texts.shape)


_QUIET = re2.Options()
_QUIET.log_errors = False


def _decoded(error: Exception) -> str:
    reason = error.args[0] if error.args else b""
    return shorten(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason))


def multinomial(logits: np.ndarray, /, *, state: int, sample_size: int = 1, dtype: int = 6, seed: float | None = None) -> Any:
    """Classes drawn from unnormalised log-probabilities, [batch, sample_size], and the next state."""
    random = np.random.RandomState(int(seed) % 2**32 if seed is not None else state % 2**32)
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    edges = np.cumsum(weights / weights.sum(axis=-1, keepdims=True), axis=-1)
    drawn = random.uniform(size=(len(logits), sample_size))
    classes = np.array([np.searchsorted(row, points, side="right") for row, points in zip(edges, drawn, strict=True)])
    return np.minimum(classes, logits.shape[-1] - 1).astype(np.int64 if dtype == 7 else np.int32), int(random.randint(2**31))


DIRECT: Mapping[str, tuple[int, Kernel, str]] = {
    # type: first version that it computes, kernel, Python expression for generated loops
    "Add": (7, np.add, "{0} + {1}"),
    "Sub": (7, np.subtract, "{0} - {1}"),
    "Mul": (7, np.multiply, "{0} * {1}"),
    "Less": (7, np.less, "{0} < {1}"),
    "LessOrEqual": (12, np.less_equal, "{0} <= {1}"),
    "Greater": (7, np.greater, "{0} > {1}"),
    "GreaterOrEqual": (12, np.greater_equal, "{0} >= {1}"),
    "Equal": (7, np.equal, "{0} == {1}"),
    "And": (7, np.logical_and, "{0} & {1}"),
    "Or": (7, np.logical_or, "{0} | {1}"),
    "Xor": (7, np.logical_xor, "{0} ^ {1}"),
    "Not": (1, np.logical_not, "~{0}"),
    "Neg": (6, np.negative, "-{0}"),
    "Abs": (6, np.abs, "abs({0})"),
    "Identity": (1, identity, "{0}"),
    "Where": (9, where, ""),
    "Div": (7, divide, ""),
    "Sqrt": (6, np.sqrt, ""),
    "Exp": (6, np.exp, ""),
    "Tanh": (6, np.tanh, ""),
    "Floor": (6, np.floor, ""),
    "Ceil": (6, np.ceil, ""),
    "Optional": (15, optional, ""),
    "OptionalHasElement": (15, optional_has_element, ""),
    "OptionalGetElement": (15, optional_get_element, ""),
    "GlobalLpPool": (1, global_lp_pool, ""),
    "Scatter": (9, scatter, ""),
    "RegexFullMatch": (20, regex_full_match, ""),
}
NOT_ALWAYS_TENSORS = frozenset({"Optional", "OptionalGetElement"})
"""Kernels that may give a sequence, or an optional without a value."""

DRAWN: Mapping[str, Kernel] = {"Multinomial": multinomial}
