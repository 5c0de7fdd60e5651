"""Operations of com.microsoft that equal operations of ONNX, NumPy or SciPy, in another form.

ONNX Runtime computes Rfft, Irfft and NhwcConv on GPUs only. The matrix operations are distances
between rows, and inverses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.image.sampling import grid_sample as sample_at
from loopscope.ops.infer import common_type, same
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.microsoft.products import CONV_WINDOW
from loopscope.ops.microsoft.row import FLOATING, INDICES, row
from loopscope.ops.movement.gathering import gather_nd as gather_slices
from loopscope.ops.onnx.windows import conv


def gather_nd(data: Array, indices: Array, /) -> Array:
    """Compute ONNX's GatherND without batch axes."""
    return gather_slices(data, indices, batch_dims=0)


def grid_sample(
    data: Array, grid: Array, /, *, mode: str, padding_mode: str, align_corners: int
) -> Array:
    """Compute ONNX's GridSample of images ``[N, C, H, W]``."""
    return sample_at(
        data, grid, mode=mode, padding_mode=padding_mode, align_corners=bool(align_corners)
    )


def nhwc_conv(data: Array, filters: Array, bias: Array | None = None, /, **window: Any) -> Array:
    """Compute ONNX's Conv of images ``[N, H, W, C]`` with filters ``[M, H, W, C / group]``."""
    if data.ndim < 3 or filters.ndim != data.ndim:
        raise ValueError(
            f"data of shape {list(data.shape)} and filters of shape {list(filters.shape)}, "
            "expected [N, H, W, C] and [M, H, W, C / group]"
        )
    result = conv(
        np.moveaxis(data, -1, 1),
        np.moveaxis(filters, -1, 1),
        bias,
        **{key: value for key, value in window.items() if value is not None},
    )
    return np.ascontiguousarray(np.moveaxis(result, 1, -1))


def echo(data: Array, /) -> Array:
    """Return the data."""
    return data


def rfft(data: Array, /, *, signal_ndim: int, normalized: int, onesided: int) -> Array:
    """Return the one-sided Fourier transform of real numbers: ``[..., n] -> [..., n / 2 + 1, 2]``.

    The last axis of the result holds real and imaginary parts.
    """
    axes = _signal_axes(data.ndim, signal_ndim, normalized, onesided)
    if not data.shape[-1]:
        raise ValueError("the signal is empty, expected at least one number")
    spectrum = np.fft.rfftn(computable(data), axes=axes)
    return np.stack([spectrum.real, spectrum.imag], -1).astype(data.dtype)


def irfft(data: Array, /, *, signal_ndim: int, normalized: int, onesided: int) -> Array:
    """Return the real numbers of a one-sided transform: ``[..., n / 2 + 1, 2] -> [..., n]``."""
    if data.ndim < 2 or data.shape[-1] != 2 or data.shape[-2] < 2:
        raise ValueError(f"the spectrum has shape {list(data.shape)}, expected [..., n / 2 + 1, 2]")
    axes = _signal_axes(data.ndim - 1, signal_ndim, normalized, onesided)
    parts = computable(data)
    signal = np.fft.irfftn(parts[..., 0] + 1j * parts[..., 1], axes=axes)
    return signal.astype(data.dtype)


def _signal_axes(rank: int, count: int, normalized: int, onesided: int) -> tuple[int, ...]:
    if not 1 <= count <= rank or normalized or not onesided:
        raise ValueError(
            f"signal_ndim {count}, normalized {normalized} and onesided {onesided} for {rank} "
            f"axes, expected 1 to {rank}, 0 and 1"
        )
    return tuple(range(rank - count, rank))


def ngram_repeat_block(tokens: Array, scores: Array, /, *, ngram_size: int) -> Array:
    """Set the score of each token to minus infinity that would repeat an n-gram of its sequence.

    ``[B, S], [B, V] -> [B, V]``.
    """
    if tokens.ndim != 2 or scores.ndim != 2 or len(tokens) != len(scores) or ngram_size < 1:
        raise ValueError(
            f"tokens of shape {list(tokens.shape)}, scores of shape {list(scores.shape)} and "
            f"n-grams of {ngram_size}, expected [batch, length], [batch, vocabulary] and 1 or more"
        )
    result = scores.copy()
    length = tokens.shape[1]
    if length < ngram_size:
        return result
    windows = np.lib.stride_tricks.sliding_window_view(tokens, ngram_size, axis=1)
    last = tokens[:, length - ngram_size + 1 :]
    repeated = (windows[..., :-1] == last[:, None]).all(-1)
    for sequence, place in zip(*np.nonzero(repeated), strict=True):
        token = int(windows[sequence, place, -1])
        if not 0 <= token < scores.shape[1]:
            raise ValueError(f"the token is {token}, expected 0 to {scores.shape[1] - 1}")
        result[sequence, token] = -np.inf
    return result


def infer_gather_nd(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape if the lengths of the indices are known."""
    data, indices = inputs[0].shape, inputs[1].shape
    if data.dimensions is None or not indices.dimensions or not indices.dimensions[-1].is_static:
        return (Known(inputs[0].element_type, DYNAMIC),)
    rest = data.dimensions[indices.dimensions[-1].length :]
    return (Known(inputs[0].element_type, PartialShape((*indices.dimensions[:-1], *rest))),)


def infer_grid_sample(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch and channels of the image, and the size of the grid."""
    image, grid = inputs[0].shape, inputs[1].shape
    if image.rank != 4 or grid.rank != 4:
        return (Known(inputs[0].element_type, PartialShape.unknown(4)),)
    lengths = (image.at(0), image.at(1), grid.at(1), grid.at(2))
    return (Known(inputs[0].element_type, PartialShape(lengths)),)


def infer_rank(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the type and the rank of the data."""
    rank = inputs[0].shape.rank
    shape = DYNAMIC if rank is None else PartialShape.unknown(rank)
    return (Known(inputs[0].element_type, shape),)


def infer_rfft(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer a halved last length, and an axis of two parts."""
    shape = inputs[0].shape
    if not shape.dimensions:
        return (Known(inputs[0].element_type),)
    last = shape.dimensions[-1]
    half = last.length // 2 + 1 if last.is_static else None
    lengths = (*shape.dimensions[:-1], half, static(2))
    return (Known(inputs[0].element_type, PartialShape.of(lengths)),)


def infer_irfft(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer a doubled last length, without the axis of two parts."""
    shape = inputs[0].shape
    if shape.dimensions is None or len(shape.dimensions) < 2:
        return (Known(inputs[0].element_type),)
    last = shape.dimensions[-2]
    whole = 2 * (last.length - 1) if last.is_static else None
    return (Known(inputs[0].element_type, PartialShape.of((*shape.dimensions[:-2], whole))),)


_FOURIER = (Attribute("normalized", "int", 0), Attribute("onesided", "int", 1))
OPERATIONS: tuple[Operation, ...] = (
    row("GatherND", gather_nd, infer=infer_gather_nd, inputs=(2, 2), types=(ANY_TYPE, INDICES)),
    row(
        "GridSample",
        grid_sample,
        infer=infer_grid_sample,
        inputs=(2, 2),
        attributes=(
            Attribute("mode", "str", "bilinear", allowed=("bilinear", "nearest", "bicubic")),
            Attribute("padding_mode", "str", "zeros", allowed=("zeros", "border", "reflection")),
            Attribute("align_corners", "int", 0),
        ),
        types=(FLOATING,),
    ),
    row(
        "NhwcConv",
        nhwc_conv,
        infer=infer_rank,
        inputs=(2, 3),
        attributes=CONV_WINDOW,
        types=(FLOATING,),
    ),
    row("SampleOp", echo, infer=same, types=(ANY_TYPE,)),
    row(
        "NGramRepeatBlock",
        ngram_repeat_block,
        infer=lambda inputs, attributes: (Known(inputs[1].element_type, inputs[1].shape),),
        inputs=(2, 2),
        attributes=(Attribute("ngram_size", "int"),),
        types=(INDICES, FLOATING),
    ),
    row(
        "Rfft",
        rfft,
        infer=infer_rfft,
        attributes=(Attribute("signal_ndim", "int", 1), *_FOURIER),
        types=(FLOATING,),
    ),
    row(
        "Irfft",
        irfft,
        infer=infer_irfft,
        attributes=(Attribute("signal_ndim", "int"), *_FOURIER),
        types=(FLOATING,),
    ),
)


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


MATRIX: tuple[Operation, ...] = (
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
