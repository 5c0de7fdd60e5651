"""Matrix operations of the domain com.microsoft: distances between rows, and inverses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import common_type, same
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.precision import computable

_BLOCK = 1 << 22
"""Maximum number of differences in memory at once."""


def distances(first: Array, second: Array, /, *, metric: str) -> Array:
    """Compute the distances between the rows of two matrices: ``[M, N], [K, N] -> [M, K]``."""
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ValueError(
            f"the shapes are {list(first.shape)} and {list(second.shape)}, "
            "expected [M, N] and [K, N]"
        )
    if metric not in ("sqeuclidean", "euclidean"):
        raise ValueError(
            f"metric is {metric[:40]!r}, which ONNX Runtime does not compute either: "
            "expected sqeuclidean or euclidean"
        )
    check_elements(len(first) * len(second), "the distances")
    squares = (
        _by_products(first, second) if first.dtype == np.float32 else _by_differences(first, second)
    )
    return np.sqrt(squares) if metric == "euclidean" else squares


def _by_products(first: Array, second: Array) -> Array:
    """Compute squared f32 distances through f64 products.

    Their cancellation error is below f32 precision.
    """
    left, right = first.astype(np.float64), second.astype(np.float64)
    lengths = np.square(left).sum(1)[:, None] + np.square(right).sum(1)
    return np.asarray(np.maximum(lengths - 2 * (left @ right.T), 0)).astype(np.float32)


def _by_differences(first: Array, second: Array) -> Array:
    squares = np.empty((len(first), len(second)), first.dtype)
    rows = max(1, _BLOCK // max(second.size, 1))
    for begin in range(0, len(first), rows):
        differences = first[begin : begin + rows, None] - second
        np.einsum("mkn,mkn->mk", differences, differences, out=squares[begin : begin + rows])
    return squares


def inverse(data: Array, /) -> Array:
    """Return the inverse of each matrix ``[..., N, N]``; ``ValueError`` if a matrix is singular."""
    if data.ndim < 2 or data.shape[-1] != data.shape[-2]:
        raise ValueError(f"the data has shape {list(data.shape)}, expected square matrices")
    try:
        return np.asarray(np.linalg.inv(computable(data))).astype(data.dtype, copy=False)
    except np.linalg.LinAlgError:
        raise ValueError(f"a matrix of {data.shape[-1]} rows has no inverse") from None


def infer_distances(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer [M, K] from the numbers of rows."""
    lengths = [matrix.shape.at(0) if matrix.shape.rank == 2 else None for matrix in inputs[:2]]
    return (Known(common_type(inputs), PartialShape.of(lengths)),)


OPERATIONS: tuple[Operation, ...] = (
    row(
        "CDist",
        distances,
        infer=infer_distances,
        inputs=(2, 2),
        attributes=(Attribute("metric", "str", "sqeuclidean"),),
        types=(frozenset({ElementType.F32, ElementType.F64}),),
    ),
    row("Inverse", inverse, infer=same, types=(FLOATING,)),
)
