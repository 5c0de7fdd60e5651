"""ONNX operations that fold tensors along axes: products, reductions, normalizations, running
sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from loopscope.ops.activation import log_softmax, softmax
from loopscope.ops.along_axes import cumulative_sum
from loopscope.ops.declare import Array, Kernel
from loopscope.ops.kernel_arithmetic import WIDE_DTYPES, computable
from loopscope.ops.kernel_checks import axis_within
from loopscope.ops.matrix import matmul
from loopscope.ops.onnx.conditions import check_inputs, one_axis
from loopscope.ops.onnx.elementwise import same_type


def product(first: Array, second: Array, /) -> Array:
    """Return the products of the matrices in the last two axes; batches are broadcast."""
    same_type(first, second)
    return matmul(first, second, transpose_a=False, transpose_b=False)


def gemm(
    first: Array,
    second: Array,
    third: Array | None = None,
    /,
    *,
    alpha: float,
    beta: float,
    transA: int,
    transB: int,
) -> Array:
    """Return ``alpha`` times the product of two matrices, plus ``beta`` times a third matrix that
    is broadcast to the product. The result is rounded once.
    """
    turned = {"transpose_a": bool(transA), "transpose_b": bool(transB)}
    return _gemm(partial(matmul, **turned), alpha, beta, first, second, third)


def _gemm(
    multiply: Kernel,
    alpha: float,
    beta: float,
    first: Array,
    second: Array,
    third: Array | None = None,
    /,
) -> Array:
    if first.ndim != 2 or second.ndim != 2:
        raise ValueError(
            f"the shapes are {list(first.shape)} and {list(second.shape)}, expected two matrices"
        )
    same_type(first, second)
    dtype = first.dtype
    if dtype.char not in "fd":
        first = computable(first)
        second = computable(second)
        third = None if third is None else computable(third)
    result = multiply(first, second)
    if result.dtype.kind in "iu" and (alpha, beta) != (1, 1):
        result = result.astype(np.float64)
    _scaled_and_added(result, alpha, beta, third)
    return result.astype(dtype, copy=False)


def _scaled_and_added(result: Array, alpha: float, beta: float, third: Array | None) -> None:
    if alpha != 1:
        result *= alpha
    if third is None or beta == 0:
        return
    if third.ndim > 2 or any(
        length not in (1, whole)
        for length, whole in zip(third.shape[::-1], result.shape[::-1], strict=False)
    ):
        raise ValueError(
            f"the third shape is {list(third.shape)}, "
            f"expected one that is broadcast to {list(result.shape)}"
        )
    result += third if beta == 1 else third * beta


def softmax_along(data: Array, /, *, axis: int) -> Array:
    """Return e^x divided by the sum of e^x along an axis. Floats of 16 bits are rounded at each
    step, as in the tests of the onnx package.
    """
    if data.ndim and data.dtype in WIDE_DTYPES:
        return softmax(data, axis=axis)
    if not data.size:
        return data
    powers = np.exp(data - data.max(axis, keepdims=True))
    result: Array = powers / powers.sum(axis, keepdims=True)
    return result.astype(data.dtype, copy=False)


def log_softmax_along(data: Array, /, *, axis: int) -> Array:
    """Return x minus the logarithm of the sum of e^x along an axis; 0 for a tensor of rank 0."""
    return log_softmax(data, axis=axis) if data.ndim else data - data


def layer_normalization(
    data: Array,
    scale: Array,
    bias: Array | None = None,
    /,
    *,
    axis: int,
    epsilon: float,
    stash_type: int,
) -> tuple[Array, ...]:
    """Return the data with mean 0 and variance 1 over the axes from ``axis``, times ``scale`` plus
    ``bias``.

    Also return the mean, and 1 divided by the standard deviation, both in f32.
    """
    if stash_type != 1:
        raise ValueError(f"stash_type is {stash_type}, expected 1: the steps are computed in f32")
    first = axis_within(axis, data.ndim)
    before, count = data.shape[:first], math.prod(data.shape[first:])
    rows = computable(data).reshape(math.prod(before), count)
    mean = np.add.reduce(rows, 1, keepdims=True) / count
    result = rows - mean
    deviation = np.reciprocal(
        np.sqrt(np.add.reduce(result * result, 1, keepdims=True) / count + epsilon)
    )
    result *= deviation
    result = result.reshape(data.shape) * computable(scale)
    if bias is not None:
        result = result + computable(bias)
    lengths = (*before, *[1] * (data.ndim - first))
    statistics = (
        statistic.reshape(lengths).astype(np.float32, copy=False) for statistic in (mean, deviation)
    )
    return result.astype(data.dtype, copy=False), *statistics


Fold = Callable[[np.ndarray, tuple[int, ...], bool], np.ndarray]
"""Function of an array, the axes to fold, and True to leave these axes with length 1."""


def _reduction(
    fold: Fold, text: str, *, alone: Callable[[np.ndarray], np.ndarray] = lambda data: data
) -> Kernel:
    """Return a kernel that folds axes, which are an attribute or an input. ``alone`` is applied to
    the elements if no axis is to be folded.
    """

    def kernel(
        data: Array,
        axes_: Array | None = None,
        /,
        *,
        axes: Sequence[int] | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Array:
        chosen = axes if axes_ is None else axes_.reshape(-1).tolist()
        dtype = data.dtype
        numbers = computable(data) if dtype.kind not in "biu" else data
        if not chosen and noop_with_empty_axes:
            result = alone(numbers)
        else:
            folded = (
                tuple(axis_within(axis, data.ndim) for axis in chosen)
                if chosen
                else tuple(range(data.ndim))
            )
            result = fold(numbers, folded, bool(keepdims))
        return result if result.dtype is dtype else result.astype(dtype)

    kernel.__doc__ = text
    return kernel


def _fold(
    ufunc: np.ufunc, data: Array, axes: tuple[int, ...], keep: bool, dtype: Any = None
) -> np.ndarray:
    result: np.ndarray = ufunc.reduce(data, axes, dtype, keepdims=keep)
    return result


def _sum(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    return _fold(np.add, data, axes, keep, data.dtype)


def _product(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    return _fold(np.multiply, data, axes, keep, data.dtype)


def _magnitudes(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    return _sum(np.abs(data), axes, keep)


def _sum_of_squares(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    return _sum(data * data, axes, keep)


def _length(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    return np.sqrt(
        _sum_of_squares(data.astype(np.float64) if data.dtype.kind in "iu" else data, axes, keep)
    )


def _log_of_sum(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    return np.log(_sum(data, axes, keep))


def _greatest(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    return (
        _fold(np.maximum, data, axes, keep)
        if data.size
        else _limit_of_empty(data, axes, keep, is_least=True)
    )


def _least(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    return (
        _fold(np.minimum, data, axes, keep)
        if data.size
        else _limit_of_empty(data, axes, keep, is_least=False)
    )


def _limit_of_empty(
    data: np.ndarray, axes: tuple[int, ...], keep: bool, *, is_least: bool
) -> np.ndarray:
    """Return the least number, which is the greatest of no elements, or the greatest number."""
    lengths = _fold(np.add, data, axes, keep).shape
    if data.dtype.kind == "f":
        return np.full(lengths, -np.inf if is_least else np.inf, data.dtype)
    if data.dtype.kind == "b":
        return np.full(lengths, not is_least)
    limits = np.iinfo(data.dtype)
    return np.full(lengths, limits.min if is_least else limits.max, data.dtype)


def _log_of_sum_of_powers(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    """Subtract the greatest element first, so that no power overflows."""
    if not data.size:
        return _limit_of_empty(data, axes, keep, is_least=True)
    greatest = _fold(np.maximum, data, axes, True)
    greatest = np.where(np.isfinite(greatest), greatest, 0).astype(data.dtype)
    total = np.log(_fold(np.add, np.exp(data - greatest), axes, True)) + greatest
    return np.asarray(total if keep else total.squeeze(axes))


def _mean(data: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    """Return the mean; of no elements 0, as in ONNX Runtime."""
    count = math.prod(data.shape[axis] for axis in axes)
    total = _fold(np.add, data, axes, keep, np.int64 if data.dtype.kind == "i" else data.dtype)
    return (
        np.trunc(total / max(count, 1))
        if data.dtype.kind in "iu"
        else total / data.dtype.type(max(count, 1))
    )


reduce_l1 = _reduction(_magnitudes, "Sum of magnitudes along axes.", alone=np.abs)
reduce_l2 = _reduction(_length, "Square root of the sum of squares along axes.", alone=np.abs)
reduce_log_sum = _reduction(_log_of_sum, "Logarithm of the sum along axes.", alone=np.log)
reduce_log_sum_exp = _reduction(
    _log_of_sum_of_powers, "Logarithm of the sum of powers of e along axes."
)
reduce_max = _reduction(_greatest, "The greatest element along axes.")
reduce_mean = _reduction(_mean, "The mean along axes.")
reduce_min = _reduction(_least, "The least element along axes.")
reduce_prod = _reduction(_product, "The product along axes.")
reduce_sum = _reduction(_sum, "The sum along axes.")
reduce_sum_square = _reduction(
    _sum_of_squares, "The sum of squares along axes.", alone=lambda data: data * data
)


def old_gemm(
    a: Array,
    b: Array,
    c: Array,
    /,
    *,
    alpha: float,
    beta: float,
    transA: int = 0,
    transB: int = 0,
    **_: object,
) -> Array:
    """Return ``alpha A B + beta C``, for Gemm before opset 7."""
    product = (a.T if transA else a) @ (b.T if transB else b)
    return (alpha * product + beta * c).astype(a.dtype)


def _flattened_from_axis(function: Callable[[Array], Array]) -> Kernel:
    """Return a kernel of before opset 13, where the axes from ``axis`` count as one."""

    def kernel(data: Array, /, *, axis: int) -> Array:
        axis += data.ndim if axis < 0 else 0
        rows = math.prod(data.shape[:axis])
        return (
            function(computable(data).reshape(rows, -1)).reshape(data.shape).astype(data.dtype)
            if data.size
            else data
        )

    return kernel


def _softmax_of_rows(rows: Array) -> Array:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _log_softmax_of_rows(rows: Array) -> Array:
    below = rows - rows.max(axis=1, keepdims=True)
    return np.asarray(below - np.log(np.exp(below).sum(axis=1, keepdims=True)))


def _hardmax_of_rows(rows: Array) -> Array:
    result = np.zeros_like(rows)
    np.put_along_axis(result, rows.argmax(axis=1)[:, None], 1, axis=1)
    return result


old_softmax = _flattened_from_axis(_softmax_of_rows)
old_log_softmax = _flattened_from_axis(_log_softmax_of_rows)
old_hardmax = _flattened_from_axis(_hardmax_of_rows)


def cumulative(data: Array, axis: Array, /, *, exclusive: int = 0, reverse: int = 0) -> Array:
    """Return the sums along an axis, which is a scalar or of shape [1] as in ONNX Runtime. The onnx
    package computes with a scalar only.
    """
    data, axis = np.asarray(data), np.asarray(axis)
    one_axis(data, axis)
    return cumulative_sum(data, axis, exclusive=bool(exclusive), reverse=bool(reverse))


def cumulative_product(
    data: Array, axis: Array, /, *, exclusive: int = 0, reverse: int = 0
) -> Array:
    """Return the products along an axis."""
    one_axis(data, axis)
    along = axis_within(int(axis.reshape(-1)[0]), data.ndim)
    numbers = np.moveaxis(computable(data), along, 0)
    numbers = numbers[::-1] if reverse else numbers
    if exclusive:
        numbers = np.concatenate([np.ones_like(numbers[:1]), numbers[:-1]])
    products = np.cumprod(numbers, axis=0, dtype=numbers.dtype)
    return np.moveaxis(products[::-1] if reverse else products, 0, along).astype(data.dtype)


def determinants(data: Array, /) -> Array:
    """Return the determinant of each matrix in the last two axes."""
    check_inputs("Det", (data,), {})
    return np.asarray(np.linalg.det(computable(data))).astype(data.dtype)
