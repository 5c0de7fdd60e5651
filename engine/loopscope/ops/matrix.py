"""Category matrix of the OpenVINO operation specs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, REAL_FLOATS
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.einsum import einsum, infer_einsum
from loopscope.ops.family import family
from loopscope.ops.gradients import matrix as gradients
from loopscope.ops.infer import broadcast_shapes, common_type
from loopscope.ops.kernel_arithmetic import COMPUTED, computable, multiplicable, rounded
from loopscope.ops.kernel_checks import check_elements

_SMALL_PRODUCT = 1_000_000
"""Number of multiplications up to which BLAS does not copy its operands first.

For few rows that copy is most of the work.
"""
_FEW_ROWS = 32
"""Maximum number of rows for which a product is cut into blocks of at most ``_SMALL_PRODUCT``."""
_FEWER_ROWS = 16
"""Maximum number of rows for cutting a matrix that is not transposed into blocks of rows."""
_MIN_BLOCK = 16
_COLUMN_STEP, _MAX_COLUMNS = 64, 256
"""Blocks of columns are multiples of the first number and at most the second number wide."""
_MAX_CACHED_ELEMENTS = 1 << 23
"""Number of elements of a matrix that fits in the processor's caches."""
_SMALL_RESULT = 1 << 24
"""Number of elements of a product below which its exact size is not checked."""


def matmul(first: Array, second: Array, /, *, transpose_a: bool, transpose_b: bool) -> Array:
    """Multiply the matrices in the last two axes, with batches broadcast.

    ``[..., M, K] x [..., K, N] -> [..., M, N]``; a vector is a row on the left, a column on the
    right, and its axis is dropped from the result. Spec: matrix/matmul-1.
    """
    if not first.ndim or not second.ndim:
        raise ValueError(
            f"shapes {list(first.shape)} and {list(second.shape)}: a scalar has no matrix product"
        )
    inner = first.shape[-2 if transpose_a and first.ndim > 1 else -1]
    if not inner or first.size * second.size > _SMALL_RESULT * inner * inner:
        _check_size(first.shape, second.shape, transpose_a, transpose_b)
    dtype = first.dtype
    if dtype.char not in "fd":
        left, right = multiplicable(computable(first), computable(second), inner)
        return rounded(_product(left, right, transpose_a, transpose_b), dtype)
    return _product(first, second, transpose_a, transpose_b)


def _check_size(
    first: Sequence[int], second: Sequence[int], transpose_a: bool, transpose_b: bool
) -> None:
    """Raise ``ValueError`` before a product of more elements than a run allows; numpy checks
    whether shapes fit.
    """
    rows = first[-1 if transpose_a else -2] if len(first) > 1 else 1
    columns = second[-2 if transpose_b else -1] if len(second) > 1 else 1
    batch = math.prod(
        max(pair) for pair in zip_longest(reversed(first[:-2]), reversed(second[:-2]), fillvalue=1)
    )
    check_elements(batch * rows * columns, "the product")


def _product(first: Array, second: Array, transpose_a: bool, transpose_b: bool) -> Array:
    if transpose_a and first.ndim > 1:
        first = first.swapaxes(-1, -2)
    if second.ndim == 2:
        if first.ndim > 2:
            # One product of many rows is faster than one for each batch.
            flat = first.reshape(math.prod(first.shape[:-1]), first.shape[-1])
            return _product(flat, second, False, transpose_b).reshape(
                *first.shape[:-1], second.shape[0 if transpose_b else 1]
            )
        if (
            first.ndim == 2
            and 1 < len(first) <= _FEW_ROWS
            and len(first) * second.size > _SMALL_PRODUCT
        ):
            return _few_rows(first, second, transpose_b)
        return np.matmul(first, second.T if transpose_b else second)
    if transpose_b and second.ndim > 1:
        second = second.swapaxes(-1, -2)
    return np.matmul(first, second)


def _few_rows(rows: Array, matrix: Array, transpose_b: bool) -> Array:
    """Multiply ``[M, K] x [K, N] (or its transpose) -> [M, N]`` for small M, in blocks of columns.

    The branch for each layout is the fastest one that was measured.
    """
    limit = _SMALL_PRODUCT // rows.size if rows.size else 0
    block = limit // _MIN_BLOCK * _MIN_BLOCK
    if rows.shape[1] != matrix.shape[1 if transpose_b else 0] or block < _MIN_BLOCK:
        return np.matmul(rows, matrix.T if transpose_b else matrix)
    dtype = np.result_type(rows, matrix)
    columns_at_once = min(_MAX_COLUMNS, limit // _COLUMN_STEP * _COLUMN_STEP)
    if not transpose_b and columns_at_once and matrix.size <= _MAX_CACHED_ELEMENTS:
        result = np.empty((len(rows), matrix.shape[1]), dtype)
        for start in range(0, matrix.shape[1], columns_at_once):
            part = slice(start, start + columns_at_once)
            np.matmul(rows, matrix[:, part], out=result[:, part])
        return result
    if not transpose_b and len(rows) > _FEWER_ROWS:
        return np.matmul(rows, matrix)
    if transpose_b:
        transposed = np.ascontiguousarray(rows.T)
        columns = np.empty((len(matrix), len(rows)), dtype)
        for start in range(0, len(matrix), block):
            np.matmul(matrix[start : start + block], transposed, out=columns[start : start + block])
        return np.ascontiguousarray(columns.T)
    return _by_rows_of_matrix(rows, matrix, dtype)


def _by_rows_of_matrix(rows: Array, matrix: Array, dtype: np.dtype) -> Array:
    """Multiply in blocks of rows of the matrix, so that a matrix larger than the caches is read
    once and in order.
    """
    block = max(
        _MIN_BLOCK,
        _SMALL_PRODUCT // 2 // (len(rows) * matrix.shape[1]) // _MIN_BLOCK * _MIN_BLOCK,
    )
    result = np.matmul(rows[:, :block], matrix[:block])
    term = np.empty_like(result, dtype)
    for start in range(block, len(matrix), block):
        np.matmul(rows[:, start : start + block], matrix[start : start + block], out=term)
        result += term
    return result


def infer_matmul(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer broadcast batches, rows of the first and columns of the second matrix."""
    element_type = common_type(inputs[:2])
    first, second = inputs[0].shape.dimensions, inputs[1].shape.dimensions
    if first is None or second is None:
        return (Known(element_type),)
    if not first or not second:
        raise ValueError("a scalar has no matrix product")
    batch_a, row, inner_a = (
        _batch_rows_columns(first, attributes["transpose_a"])
        if len(first) > 1
        else ((), None, first[-1])
    )
    batch_b, inner_b, column = (
        _batch_rows_columns(second, attributes["transpose_b"])
        if len(second) > 1
        else ((), second[-1], None)
    )
    if inner_a.intersect(inner_b) is None:
        raise ValueError(
            f"shapes {inputs[0].shape} and {inputs[1].shape}: inner lengths {inner_a} "
            f"and {inner_b} differ"
        )
    batch = broadcast_shapes(PartialShape(batch_a), PartialShape(batch_b)).dimensions or ()
    return (
        Known(
            element_type,
            PartialShape((*batch, *(length for length in (row, column) if length is not None))),
        ),
    )


def _batch_rows_columns(
    shape: tuple[Dimension, ...], transposed: bool
) -> tuple[tuple[Dimension, ...], Dimension, Dimension]:
    """Return batch, rows and columns of a shape, exchanged if it is transposed."""
    return (shape[:-2], shape[-1], shape[-2]) if transposed else (shape[:-2], shape[-2], shape[-1])


def inverse(matrices: Array, /, *, adjoint: bool) -> Array:
    """Invert the square matrices in the last two axes, transposed if ``adjoint``.

    A singular matrix gives infinities. ``[..., N, N] -> [..., N, N]``, computed in f32 (f64 in
    f64). Spec: matrix/inverse-14.
    """
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2]:
        raise ValueError(f"shape {list(matrices.shape)} holds no square matrices")
    wide = computable(matrices)
    try:
        result = np.linalg.inv(wide)
    except np.linalg.LinAlgError:
        result = _invert_each(wide)
    return rounded(
        np.ascontiguousarray(result.swapaxes(-1, -2)) if adjoint else result, matrices.dtype
    )


def _invert_each(matrices: Array) -> Array:
    """Invert one matrix at a time.

    A singular matrix, whose inverse the spec leaves undefined, then does not affect the others.
    """
    result = np.full(matrices.shape, np.inf, matrices.dtype)
    for index in np.ndindex(matrices.shape[:-2]):
        try:
            result[index] = np.linalg.inv(matrices[index])
        except np.linalg.LinAlgError:
            continue
    return result


def infer_inverse(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the type and shape of the input, whose last two lengths are equal."""
    dimensions = inputs[0].shape.dimensions
    if dimensions is not None and (
        len(dimensions) < 2 or dimensions[-1].intersect(dimensions[-2]) is None
    ):
        raise ValueError(f"shape {inputs[0].shape} holds no square matrices")
    return (Known(inputs[0].element_type, inputs[0].shape),)


def grouped_matmul(first: Array, second: Array, offsets: Array | None = None, /) -> Array:
    """Compute one matrix product for each group of tokens; ``offsets`` are the ends of the groups.

    ``[T, K] x [G, K, N] -> [T, N]``; ``[G, M, K] x [G, K, N] -> [G, M, N]`` without offsets; ``[K,
    T] x [T, N] -> [G, K, N]``. Rows beyond the last offset are 0. Spec: matrix/grouped-matmul-17.
    """
    left, right, dtype = computable(first), computable(second), first.dtype
    if (first.ndim, second.ndim) == (3, 3):
        if offsets is not None:
            raise ValueError(
                "offsets are for packed tokens: with two tensors of rank 3 there must be none"
            )
        if first.shape[0] != second.shape[0]:
            raise ValueError(f"{first.shape[0]} groups on the left, {second.shape[0]} on the right")
        return rounded(np.matmul(left, right), dtype)
    if offsets is None or first.ndim != 2 or second.ndim not in (2, 3):
        raise ValueError(
            f"ranks {first.ndim} and {second.ndim} "
            f"{'with' if offsets is not None else 'without'} offsets are not a "
            "grouped product"
        )
    tokens = first.shape[0] if second.ndim == 3 else first.shape[1]
    groups = _groups(offsets, tokens)
    if second.ndim == 3:
        if len(groups) != second.shape[0]:
            raise ValueError(f"{len(groups)} offsets for {second.shape[0]} matrices")
        rows = np.zeros((tokens, second.shape[2]), left.dtype)
        for group, matrix in zip(groups, right, strict=True):
            rows[group] = left[group] @ matrix
        return rounded(rows, dtype)
    matrices = [left[:, group] @ right[group] for group in groups]
    return rounded(
        np.stack(matrices)
        if matrices
        else np.zeros((0, first.shape[0], second.shape[1]), left.dtype),
        dtype,
    )


def _groups(offsets: Array, tokens: int) -> list[slice]:
    ends = [int(end) for end in np.asarray(offsets).reshape(-1)]
    starts = [0, *ends[:-1]]
    if any(not 0 <= start <= end <= tokens for start, end in zip(starts, ends, strict=True)):
        raise ValueError(f"offsets {ends[:8]} do not rise from 0 to at most {tokens}")
    return [slice(start, end) for start, end in zip(starts, ends, strict=True)]


def infer_grouped_matmul(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the shape from the ranks of the two operands."""
    element_type = common_type(inputs[:2])
    first, second = inputs[0].shape.dimensions, inputs[1].shape.dimensions
    if first is None or second is None:
        return (Known(element_type, DYNAMIC),)
    match len(first), len(second):
        case 2, 3:
            return (Known(element_type, PartialShape((first[0], second[2]))),)
        case 3, 3:
            return (
                Known(
                    element_type,
                    PartialShape((first[0].intersect(second[0]) or first[0], first[1], second[2])),
                ),
            )
        case 2, 2:
            groups = inputs[2].shape.at(0) if len(inputs) > 2 else UNKNOWN
            return (Known(element_type, PartialShape((groups, first[0], second[1]))),)
    raise ValueError(
        f"shapes {inputs[0].shape} and {inputs[1].shape} are not a grouped product: "
        "expected ranks 2 and 3, 3 and 3, or 2 and 2"
    )


row = family("matrix")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "MatMul",
        matmul,
        page="matrix/matmul-1",
        infer=infer_matmul,
        inputs=(2, 2),
        attributes=(
            Attribute("transpose_a", "bool", False),
            Attribute("transpose_b", "bool", False),
        ),
        types=(COMPUTED,),
        gradient=gradients.matmul,
    ),
    row(
        "Einsum",
        einsum,
        version=7,
        infer=infer_einsum,
        inputs=(1, None),
        attributes=(Attribute("equation", "str"),),
        types=(COMPUTED,),
        gradient=gradients.einsum,
    ),
    row(
        "Inverse",
        inverse,
        version=14,
        infer=infer_inverse,
        attributes=(Attribute("adjoint", "bool", False),),
        types=(REAL_FLOATS,),
        gradient=gradients.inverse,
    ),
    row(
        "GroupedMatMul",
        grouped_matmul,
        version=17,
        opsets=(17, 17),
        page="matrix/grouped-matmul-17",
        infer=infer_grouped_matmul,
        inputs=(2, 3),
        types=(COMPUTED, COMPUTED, INDEX_TYPES),
    ),
)
