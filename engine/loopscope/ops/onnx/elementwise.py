"""Elementwise ONNX operations: arithmetic, comparisons, activations."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops import activation
from loopscope.ops import special_functions as special
from loopscope.ops.arithmetic import refuse_zeros
from loopscope.ops.declare import Array, Kernel
from loopscope.ops.kernel_arithmetic import WIDE_DTYPES, computable, through_float


def where(condition: Array, then: Array, otherwise: Array, /) -> Array:
    """Return elements of the second tensor where the first is true, of the third elsewhere,
    broadcast together.
    """
    if condition.ndim == 0 and then.shape == otherwise.shape and then.dtype == otherwise.dtype:
        return then if condition else otherwise
    return np.where(condition, then, otherwise)


def divide(dividend: Array, divisor: Array, /) -> Array:
    """Return the quotient, rounded towards zero for integers. Raise ``ValueError`` for an integer
    divided by zero, as ONNX Runtime does.
    """
    if dividend.dtype.kind not in "iu":
        return np.divide(dividend, divisor)
    refuse_zeros(divisor)
    quotient = np.floor_divide(dividend, divisor)
    towards_zero = (quotient * divisor != dividend) & ((dividend < 0) != (divisor < 0))
    return (quotient + towards_zero).astype(dividend.dtype)


def same_type(left: Array, right: Array) -> None:
    """Raise ``ValueError`` if two tensors have different element types."""
    if left.dtype != right.dtype:
        raise ValueError(
            f"the element types are {ElementType.of(left)} and {ElementType.of(right)}, "
            "expected one and the same"
        )


def _folded(function: Callable[[Array, Array], Array], text: str) -> Kernel:
    """Return a kernel that combines one or more tensors from left to right."""

    def both(left: Array, right: Array) -> Array:
        if left.dtype is not right.dtype:
            same_type(left, right)
        return function(left, right)

    def kernel(*tensors: Array) -> Array:
        return both(*tensors) if len(tensors) == 2 else reduce(both, tensors)

    kernel.__doc__ = text
    return kernel


maximum = _folded(np.maximum, "The greatest of tensors.")
minimum = _folded(np.minimum, "The least of tensors.")
total = _folded(np.add, "The sum of tensors.")


def power(base: Array, exponent: Array, /) -> Array:
    """Return the first tensor to the power of the second, in the type of the first."""
    if exponent.ndim == 0 and base.dtype in WIDE_DTYPES:
        # Multiply as ONNX Runtime does; np.power takes ten times longer.
        constant = exponent.item()
        if constant == 2:
            return base * base
        if constant == 3:
            return base * base * base
    if base.dtype.kind in "iu" and exponent.dtype.kind == "i" and (exponent < 0).any():
        # The result is cut to an integer, as in ONNX Runtime.
        exponent = exponent.astype(np.float64)
    result: Array = np.power(base, exponent)
    return result if result.dtype is base.dtype else result.astype(base.dtype)


def remainder(dividend: Array, divisor: Array, /, *, fmod: int = 0) -> Array:
    """Return the remainder of a division with the sign of the divisor, or with ``fmod`` of the
    dividend.
    """
    same_type(dividend, divisor)
    result: Array = np.fmod(dividend, divisor) if fmod == 1 else np.mod(dividend, divisor)
    return result


def clip(
    data: Array, lower: Array | None = None, upper: Array | None = None, /, **bounds: float | None
) -> Array:
    """Return each element moved between two bounds, which are inputs or (before opset 11)
    attributes. The default bounds are the limits of finite numbers.
    """
    low = bounds.get("min") if lower is None else lower
    high = bounds.get("max") if upper is None else upper
    if data.dtype.kind != "f" and low is None and high is None:
        return data
    if data.dtype.kind == "f":
        limits = np.finfo(data.dtype)
        low, high = limits.min if low is None else low, limits.max if high is None else high
    result: Array = np.clip(data, low, high)
    if result.ndim != data.ndim and result.size == data.size:
        result = result.reshape(data.shape)
    return result if result.dtype is data.dtype else result.astype(data.dtype)


@through_float
def leaky_relu(data: Array, /, *, alpha: float) -> Array:
    """Return x where x > 0, ``alpha`` x elsewhere."""
    lower = data * data.dtype.type(alpha)
    # np.maximum gives the same result in a tenth of the time. It is not used for an alpha of 0,
    # where infinity would give NaN.
    return (
        np.maximum(data, lower, out=lower if lower.ndim else None)
        if 0 < alpha <= 1
        else np.where(data > 0, data, lower)
    )


@through_float
def elu(data: Array, /, *, alpha: float) -> Array:
    """Return x where x > 0, ``alpha`` (e^x - 1) elsewhere."""
    return np.where(data > 0, data, data.dtype.type(alpha) * np.expm1(data))


@through_float
def hard_sigmoid(data: Array, /, *, alpha: float, beta: float) -> Array:
    """Return ``alpha`` x + ``beta``, cut to 0 .. 1."""
    real = data.dtype.type
    result: Array = data * real(alpha)
    result += real(beta)
    return np.clip(result, real(0), real(1), out=result if result.ndim else None)


_A_SIXTH = float(np.float32(1 / 6))


@through_float
def hard_swish(data: Array, /) -> Array:
    """Return x times its hard sigmoid with 1/6 and 1/2, in f32 as the function that defines the
    operation.
    """
    result = hard_sigmoid(data, alpha=_A_SIXTH, beta=0.5)
    result *= data
    return result


def erf(data: Array, /) -> Array:
    """Return the Gauss error function of each element. For integers the result is the whole part of
    the result in f32.
    """
    numbers = data if data.dtype in WIDE_DTYPES else data.astype(np.float32)
    return special.erf(numbers).astype(data.dtype, copy=False)


def is_infinite(data: Array, /, *, detect_negative: int, detect_positive: int) -> Array:
    """Return True for each infinity of a sign that the attributes select."""
    result: Array = np.isinf(data)
    if not detect_negative:
        result = result & (data > 0)
    return result if detect_positive else result & (data < 0)


def softsign(data: Array, /) -> Array:
    """Return ``x / (1 + |x|)``."""
    return (data / (1 + np.abs(data))).astype(data.dtype)


def gelu(data: Array, /, *, approximate: object = "none") -> Array:
    """Return the Gaussian error linear unit, by the error function or approximated by tanh."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is {str(approximate)[:40]!r}, expected none or tanh")
    mode = "erf" if approximate == "none" else "tanh"
    return activation.gelu(data, approximation_mode=mode)


def mean(*tensors: Array) -> Array:
    """Return the mean of tensors of the same shape, or broadcast together."""
    result = computable(tensors[0])
    for tensor in tensors[1:]:
        result = result + computable(tensor)
    return (result / len(tensors)).astype(tensors[0].dtype)


def _broadcast_from_axis(function: Callable[..., Array]) -> Kernel:
    """Return a kernel of before opset 7. With ``broadcast``, the axes of the second tensor are
    those of the first from ``axis``; without it, both shapes are the same.
    """

    def kernel(
        left: Array,
        right: Array,
        /,
        *,
        broadcast: int = 0,
        axis: int | None = None,
        **_: object,
    ) -> Array:
        if broadcast and right.ndim < left.ndim:
            first = left.ndim - right.ndim if axis is None else axis
            first += left.ndim if first < 0 else 0
            right = right.reshape(right.shape + (1,) * (left.ndim - first - right.ndim))
        return function(left, right)

    return kernel


def _power_of_base_type(base: Array, exponent: Array) -> Array:
    return np.power(base, exponent).astype(base.dtype)


old_add = _broadcast_from_axis(np.add)
old_subtract = _broadcast_from_axis(np.subtract)
old_multiply = _broadcast_from_axis(np.multiply)
old_divide = _broadcast_from_axis(divide)
old_power = _broadcast_from_axis(_power_of_base_type)
old_equal = _broadcast_from_axis(np.equal)
old_greater = _broadcast_from_axis(np.greater)
old_less = _broadcast_from_axis(np.less)
old_logical_and = _broadcast_from_axis(np.logical_and)
old_logical_or = _broadcast_from_axis(np.logical_or)
old_logical_xor = _broadcast_from_axis(np.logical_xor)


@through_float
def thresholded_relu(data: Array, /, *, alpha: float = 1.0) -> Array:
    """Return elements above alpha, 0 for the others."""
    return np.where(data > alpha, data, np.zeros_like(data))


@through_float
def affine(data: Array, /, *, alpha: float = 1.0, beta: float = 0.0) -> Array:
    """Return ``alpha * x + beta``."""
    return data * data.dtype.type(alpha) + data.dtype.type(beta)


@through_float
def scaled(data: Array, /, *, scale: float = 1.0) -> Array:
    """Return ``scale * x``."""
    return data * data.dtype.type(scale)


@through_float
def scaled_tanh(data: Array, /, *, alpha: float, beta: float) -> Array:
    """Return ``alpha * tanh(beta * x)``."""
    return data.dtype.type(alpha) * np.tanh(data.dtype.type(beta) * data)


@through_float
def parametric_softplus(data: Array, /, *, alpha: float, beta: float) -> Array:
    """Return ``alpha * log(exp(beta * x) + 1)``."""
    return data.dtype.type(alpha) * np.logaddexp(data.dtype.type(beta) * data, data.dtype.type(0))
