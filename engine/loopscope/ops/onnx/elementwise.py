"""Elementwise ONNX operations, directly in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops import special_functions as special
from loopscope.ops.activation.formulas import mish, sigmoid, softplus
from loopscope.ops.activation.rectifiers import relu
from loopscope.ops.arithmetic.binary import GREATER, LESSER, refuse_zeros
from loopscope.ops.declare import Array, Kernel
from loopscope.ops.elements import WIDE_DTYPES, through_float
from loopscope.ops.onnx.row import Direct


def where(condition: Array, then: Array, otherwise: Array, /) -> Array:
    """Elements of the second where the first is true, of the third elsewhere, broadcast
    together.
    """
    if condition.ndim == 0 and then.shape == otherwise.shape and then.dtype == otherwise.dtype:
        return then if condition else otherwise
    return np.where(condition, then, otherwise)


def divide(one: Array, other: Array, /) -> Array:
    """The quotient; of integers towards zero. ``ValueError`` for an integer divided by zero, as
    ONNX Runtime refuses it.
    """
    if one.dtype.kind not in "iu":
        return np.divide(one, other)
    refuse_zeros(other)
    quotient = np.floor_divide(one, other)
    towards_zero = (quotient * other != one) & ((one < 0) != (other < 0))
    return (quotient + towards_zero).astype(one.dtype)


def same_type(one: Array, other: Array) -> None:
    """``ValueError`` when two tensors have different element types."""
    if one.dtype != other.dtype:
        raise ValueError(
            f"the element types are {ElementType.of(one)} and {ElementType.of(other)}, expected one and the same"
        )


def _folded(function: Callable[[Array, Array], Array], text: str) -> Kernel:
    """A kernel of one or more tensors, taken together from left to right."""

    def both(one: Array, other: Array) -> Array:
        if one.dtype is not other.dtype:
            same_type(one, other)
        return function(one, other)

    def kernel(*tensors: Array) -> Array:
        return both(*tensors) if len(tensors) == 2 else reduce(both, tensors)

    kernel.__doc__ = text
    return kernel


def power(base: Array, exponent: Array, /) -> Array:
    """The first tensor to the power of the second, in the first one's type."""
    if exponent.ndim == 0 and base.dtype in WIDE_DTYPES:
        # As ONNX Runtime has it; np.power takes ten times longer.
        constant = exponent.item()
        if constant == 2:
            return base * base
        if constant == 3:
            return base * base * base
    if base.dtype.kind in "iu" and exponent.dtype.kind == "i" and (exponent < 0).any():
        # The whole part of what it is, as ONNX Runtime has it.
        exponent = exponent.astype(np.float64)
    made: Array = np.power(base, exponent)
    return made if made.dtype is base.dtype else made.astype(base.dtype)


def remainder(one: Array, other: Array, /, *, fmod: int = 0) -> Array:
    """What a division leaves: with the sign of the divisor, with ``fmod`` that of the dividend."""
    same_type(one, other)
    made: Array = np.fmod(one, other) if fmod == 1 else np.mod(one, other)
    return made


def clip(
    data: Array, least: Array | None = None, most: Array | None = None, /, **bounds: float | None
) -> Array:
    """Each element moved between two bounds, inputs or (before opset 11) attributes; those left
    out are the limits of finite numbers.
    """
    low, high = (
        bounds.get("min") if least is None else least,
        bounds.get("max") if most is None else most,
    )
    if data.dtype.kind != "f" and low is None and high is None:
        return data
    if data.dtype.kind == "f":
        limits = np.finfo(data.dtype)
        low, high = limits.min if low is None else low, limits.max if high is None else high
    made: Array = np.clip(data, low, high)
    if made.ndim != data.ndim and made.size == data.size:
        made = made.reshape(data.shape)
    return made if made.dtype is data.dtype else made.astype(data.dtype)


@through_float
def leaky_relu(data: Array, /, *, alpha: float) -> Array:
    """x where x > 0, ``alpha`` x elsewhere."""
    lower = data * data.dtype.type(alpha)
    # The greater of both is the same, in a tenth of the time; not with an alpha of 0, where
    # infinity gives NaN.
    return (
        np.maximum(data, lower, out=lower if lower.ndim else None)
        if 0 < alpha <= 1
        else np.where(data > 0, data, lower)
    )


@through_float
def elu(data: Array, /, *, alpha: float) -> Array:
    """x where x > 0, ``alpha`` (e^x - 1) elsewhere."""
    return np.where(data > 0, data, data.dtype.type(alpha) * np.expm1(data))


@through_float
def hard_sigmoid(data: Array, /, *, alpha: float, beta: float) -> Array:
    """``alpha`` x + ``beta``, cut to 0 .. 1."""
    real = data.dtype.type
    made: Array = data * real(alpha)
    made += real(beta)
    return np.clip(made, real(0), real(1), out=made if made.ndim else None)


_A_SIXTH = float(np.float32(1 / 6))


@through_float
def hard_swish(data: Array, /) -> Array:
    """x times its hard sigmoid of a half and a sixth, which the function that defines the
    operation has in f32.
    """
    made = hard_sigmoid(data, alpha=_A_SIXTH, beta=0.5)
    made *= data
    return made


def erf(data: Array, /) -> Array:
    """Gauss error function of each element; of integers the whole part of what it is in f32."""
    numbers = data if data.dtype in WIDE_DTYPES else data.astype(np.float32)
    return special.erf(numbers).astype(data.dtype, copy=False)


def is_infinite(data: Array, /, *, detect_negative: int, detect_positive: int) -> Array:
    """Whether each element is an infinity of a sign that is looked for."""
    made: Array = np.isinf(data)
    if not detect_negative:
        made = made & (data > 0)
    return made if detect_positive else made & (data < 0)


def _function(name: str, first: int) -> Direct:
    """A function of numpy, of floats alone."""
    return Direct(kernel=getattr(np, name), first=first, float_symbol=f"np.{name}({{0}})")


NUMBERS: Mapping[str, Direct] = {
    "Add": Direct(kernel=np.add, first=7, symbol="{0} + {1}"),
    "Sub": Direct(kernel=np.subtract, first=7, symbol="{0} - {1}"),
    "Mul": Direct(kernel=np.multiply, first=7, symbol="{0} * {1}"),
    "Div": Direct(kernel=divide, first=7, float_symbol="{0} / {1}"),
    "Mod": Direct(kernel=remainder, first=10, last=13, symbol="{0} % {1}", symbol_when={"fmod": 0}),
    "Pow": Direct(kernel=power, first=7),
    "Max": Direct(
        kernel=_folded(np.maximum, "The greatest of tensors."),
        first=8,
        float_symbol="np.maximum({0}, {1})",
        integer_symbol=GREATER,
    ),
    "Min": Direct(
        kernel=_folded(np.minimum, "The least of tensors."),
        first=8,
        float_symbol="np.minimum({0}, {1})",
        integer_symbol=LESSER,
    ),
    "Sum": Direct(kernel=_folded(np.add, "The sum of tensors."), first=8, float_symbol="{0} + {1}"),
    "Less": Direct(kernel=np.less, first=7, symbol="{0} < {1}"),
    "LessOrEqual": Direct(kernel=np.less_equal, first=12, symbol="{0} <= {1}"),
    "Greater": Direct(kernel=np.greater, first=7, symbol="{0} > {1}"),
    "GreaterOrEqual": Direct(kernel=np.greater_equal, first=12, symbol="{0} >= {1}"),
    "Equal": Direct(kernel=np.equal, first=7, symbol="{0} == {1}"),
    "And": Direct(kernel=np.logical_and, first=7, symbol="{0} & {1}"),
    "Or": Direct(kernel=np.logical_or, first=7, symbol="{0} | {1}"),
    "Xor": Direct(kernel=np.logical_xor, first=7, symbol="{0} ^ {1}"),
    "Not": Direct(kernel=np.logical_not, first=1, symbol="~{0}"),
    "Neg": Direct(kernel=np.negative, first=6, symbol="-{0}"),
    "Abs": Direct(kernel=np.abs, first=6, symbol="abs({0})"),
    "Where": Direct(kernel=where, first=9),
    "Sign": _function("sign", 9),
    "Sqrt": _function("sqrt", 6),
    "Reciprocal": _function("reciprocal", 6),
    "Exp": _function("exp", 6),
    "Log": _function("log", 6),
    "Floor": _function("floor", 6),
    "Ceil": _function("ceil", 6),
    "Round": _function("rint", 11),
    "Sin": _function("sin", 7),
    "Cos": _function("cos", 7),
    "Tan": _function("tan", 7),
    "Asin": _function("arcsin", 7),
    "Acos": _function("arccos", 7),
    "Atan": _function("arctan", 7),
    "Sinh": _function("sinh", 9),
    "Cosh": _function("cosh", 9),
    "Tanh": _function("tanh", 6),
    "Asinh": _function("arcsinh", 9),
    "Acosh": _function("arccosh", 9),
    "Atanh": _function("arctanh", 9),
    "Erf": Direct(kernel=erf, first=9),
    "Sigmoid": Direct(kernel=sigmoid, first=6, float_symbol="1 / (1 + np.exp(-{0}))"),
    "Softplus": Direct(kernel=softplus, first=1),
    "Relu": Direct(kernel=relu, first=6, float_symbol="np.maximum({0}, 0)"),
    "LeakyRelu": Direct(kernel=leaky_relu, first=6),
    "Elu": Direct(kernel=elu, first=6),
    "HardSigmoid": Direct(kernel=hard_sigmoid, first=6),
    "HardSwish": Direct(kernel=hard_swish, first=14),
    "Mish": Direct(kernel=mish, first=18),
    "Clip": Direct(kernel=clip, first=6),
    "IsNaN": _function("isnan", 9),
    "IsInf": Direct(kernel=is_infinite, first=10),
}
