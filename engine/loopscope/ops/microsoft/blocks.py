"""Products and lookups with weights quantized in blocks to 2, 4 or 8 bits.

Large language models are often distributed in this form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Attribute, KeepingKernel, Known, Operation
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import axis_within, check_elements
from loopscope.ops.matrix import matmul
from loopscope.ops.microsoft.row import INDICES, row
from loopscope.ops.onnx.quantization import along

_HALVES = frozenset({ElementType.F16, ElementType.BF16, ElementType.F32})
_BITS = (2, 4, 8)


def matmul_n_bits(
    data: Array,
    packed: Array,
    scales: Array,
    zeros: Array | None = None,
    groups: Array | None = None,
    bias: Array | None = None,
    /,
    *,
    K: int,
    N: int,
    bits: int,
    block_size: int,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Array:
    """Multiply by block-quantized weights: ``[..., K] x [N, blocks, bytes] -> [..., N]``.

    A weight is ``(weight - zero point) * scale``. The weights of each block of ``block_size`` along
    K are packed into bytes, the first in the lowest bits. Zero points are packed likewise or are
    floats. ``accuracy_level`` permits lower precision in runtimes and is ignored here.
    """
    if weight_prepacked:
        raise ValueError(
            f"weight_prepacked is {weight_prepacked}, "
            "expected 0: other layouts are for one make of GPU"
        )
    return _multiply(data, _weights(packed, scales, zeros, groups, K, N, bits, block_size), bias)


class _OneMatrix:
    """``matmul_n_bits`` for constant weights, which are cached in f32 from the second run on.

    A single run does not use memory for a cache that no later run reads.
    """

    def __init__(self, unpack: Callable[..., Array], most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._unpack = unpack
        self._last: tuple[Array | None, ...] = ()
        self._kept: tuple[tuple[Array | None, ...], Array] | None = None
        """The last weights and the unpacked matrix, set together because threads share a plan."""

    def __call__(self, data: Array, packed: Array, scales: Array, *others: Array | None) -> Array:
        zeros, groups, bias = (*others, None, None, None)[:3]
        weights, cached = (packed, scales, zeros, groups), self._kept
        if cached is not None and all(map(is_, cached[0], weights)):
            return _multiply(data, cached[1], bias)
        matrix = self._unpack(*weights)
        if self._last and all(map(is_, self._last, weights)):
            self._kept = weights, matrix
        self._last = weights
        return _multiply(data, matrix, bias)


def matmul_n_bits_by_constant(
    packed: Known,
    /,
    *,
    K: int,
    N: int,
    bits: int,
    block_size: int,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> KeepingKernel | None:
    """Return the kernel of a node with constant weights."""
    unpack = partial(_weights, K=K, N=N, bits=bits, block_size=block_size)
    return None if weight_prepacked or min(K, N) < 1 else _OneMatrix(unpack, 4 * K * N)


def _multiply(data: Array, matrix: Array, bias: Array | None) -> Array:
    result = matmul(computable(data), matrix, transpose_a=False, transpose_b=True)
    if bias is not None:
        if bias.shape != (len(matrix),):
            raise ValueError(f"the bias has shape {list(bias.shape)}, expected [{len(matrix)}]")
        result = result + computable(bias)
    return np.asarray(result).astype(data.dtype, copy=False)


def _weights(
    packed: Array,
    scales: Array,
    zeros: Array | None,
    groups: Array | None,
    K: int,
    N: int,
    bits: int,
    block_size: int,
) -> Array:
    """Return the unpacked matrix ``[N, K]`` in f32."""
    _check_block(bits, block_size)
    blocks = -(-K // block_size)
    if min(K, N) < 1 or packed.size != N * blocks * (block_size * bits // 8):
        expected = [N, blocks, block_size * bits // 8]
        raise ValueError(
            f"the weights have shape {list(packed.shape)}, "
            f"expected {expected} for K {K} and N {N} in blocks of {block_size}"
        )
    if scales.size != N * blocks:
        raise ValueError(f"the scales have shape {list(scales.shape)}, expected [{N}, {blocks}]")
    check_elements(N * blocks * block_size, "the unpacked weights")
    levels = _unpack_floats(packed, bits).reshape(N, blocks, block_size)
    offsets = _zero_points(zeros, N, blocks, bits)
    factors = computable(scales).reshape(N, blocks, 1)
    if groups is not None:
        offsets, factors = (_by_group(parameter, groups, K) for parameter in (offsets, factors))
        return (levels.reshape(N, -1)[:, :K] - offsets) * factors
    levels -= offsets
    levels *= factors
    return np.ascontiguousarray(levels.reshape(N, -1)[:, :K])


def _by_group(parameter: Array, groups: Array, K: int) -> Array:
    """Return for each column the parameter of its group."""
    columns = groups.reshape(-1)[:K]
    if columns.size != K or columns.min() < 0 or columns.max() >= parameter.shape[1]:
        raise ValueError(
            f"the groups have shape {list(groups.shape)}, "
            f"expected {K} numbers from 0 to {parameter.shape[1] - 1}"
        )
    return parameter[:, columns, 0]


def _zero_points(zeros: Array | None, N: int, blocks: int, bits: int) -> Array:
    """Return the zero point of each block; the default is the middle of the range."""
    if zeros is None:
        return np.full((N, blocks, 1), 1 << (bits - 1), np.float32)
    if zeros.dtype != np.uint8:
        if zeros.size != N * blocks:
            raise ValueError(
                f"the zero points have shape {list(zeros.shape)}, expected [{N}, {blocks}]"
            )
        return computable(zeros).reshape(N, blocks, 1)
    if zeros.size != N * (-(-blocks * bits // 8)):
        raise ValueError(
            f"the zero points have shape {list(zeros.shape)}, "
            f"expected [{N}, {-(-blocks * bits // 8)}]"
        )
    return unpacked(zeros.reshape(N, -1), bits)[:, :blocks, None].astype(np.float32)


def unpacked(data: Array, bits: int) -> Array:
    """Unpack numbers from bytes, the first in the lowest bits; the last axis grows accordingly."""
    if bits == 8:
        return data
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((data[..., None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(
        *data.shape[:-1], data.shape[-1] * shifts.size
    )


def _unpack_floats(data: Array, bits: int) -> Array:
    """Unpack numbers as ``unpacked`` does, to f32."""
    values = np.empty((*data.shape, 8 // bits), np.float32)
    for index in range(8 // bits):
        values[..., index] = (data >> np.uint8(index * bits)) & np.uint8((1 << bits) - 1)
    return values.reshape(*data.shape[:-1], data.shape[-1] * (8 // bits))


def _check_block(bits: int, block_size: int) -> None:
    if bits not in _BITS:
        raise ValueError(f"bits is {bits}, expected one of {', '.join(map(str, _BITS))}")
    if block_size < 16 or block_size & (block_size - 1):
        raise ValueError(f"block_size is {block_size}, expected a power of two of at least 16")


def gather_block_quantized(
    data: Array,
    indices: Array,
    scales: Array,
    zeros: Array | None = None,
    /,
    *,
    bits: int,
    block_size: int,
    gather_axis: int,
    quantize_axis: int,
) -> Array:
    """Gather slices of a block-quantized tensor as floats: ``(data - zero point) * scale``.

    An index outside the data gives zeros. The data has 4-bit integers, or bytes with numbers of
    ``bits`` bits packed along the last axis, the first in the lowest bits.
    """
    _check_block(bits, block_size)
    in_bytes = data.dtype == np.uint8
    axis, block_axis = axis_within(gather_axis, data.ndim), axis_within(quantize_axis, data.ndim)
    if in_bytes and (axis != 0 or block_axis == 0):
        raise ValueError(
            f"gather_axis is {gather_axis} and quantize_axis {quantize_axis}, "
            "expected 0 and another for data of bytes"
        )
    check_elements(
        indices.size * (data.size // max(data.shape[axis], 1)) * (8 // bits), "the gathered tensor"
    )
    positions, inside = _positions(indices, data.shape[axis])
    slices = data.take(positions, axis)
    slices = _unpack_floats(slices, bits) if in_bytes else slices.astype(np.float32)
    shape = slices.shape
    offsets = (
        zeros if zeros is None or not in_bytes else unpacked(zeros, bits)[..., : scales.shape[-1]]
    )
    if offsets is None:
        slices -= np.float32(1 << (bits - 1) if in_bytes else 0)
    else:
        slices -= _slice_parameters(offsets, positions, shape, axis, block_axis, block_size).astype(
            np.float32
        )
    numbers = slices * computable(
        _slice_parameters(scales, positions, shape, axis, block_axis, block_size)
    )
    numbers = np.where(inside.reshape(-1, *[1] * (data.ndim - axis - 1)), numbers, np.float32(0))
    return numbers.reshape(*shape[:axis], *indices.shape, *shape[axis + 1 :]).astype(
        scales.dtype, copy=False
    )


def _positions(indices: Array, length: int) -> tuple[Array, Array]:
    """Return the positions of the indices from the start, and a mask of those inside the data."""
    flat = indices.reshape(-1).astype(np.int64)
    from_start = np.where(flat < 0, flat + length, flat)
    inside = (from_start >= 0) & (from_start < length)
    return np.where(inside, from_start, 0), inside


def _slice_parameters(
    parameter: Array,
    positions: Array,
    shape: tuple[int, ...],
    axis: int,
    block_axis: int,
    block_size: int,
) -> Array:
    """Return the parameters of the gathered slices, one for each element."""
    if axis == block_axis:
        return parameter.take(positions // block_size, axis)
    return along(parameter.take(positions, axis), shape, block_axis, block_size)


def infer_matmul_n_bits(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the shape of the data with N in place of K."""
    shape = inputs[0].shape
    if shape.dimensions is None:
        return (Known(inputs[0].element_type, DYNAMIC),)
    if not shape.dimensions or not shape.at(-1).contains(attributes["K"]):
        raise ValueError(
            f"the data has shape {shape}, expected a last length of {attributes['K']}, which is K"
        )
    return (
        Known(
            inputs[0].element_type, PartialShape((*shape.dimensions[:-1], static(attributes["N"])))
        ),
    )


def infer_gather(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the lengths of the data with those of the indices in place of the axis.

    Bytes contain several numbers of the last axis.
    """
    kind, data, indices = inputs[2].element_type, inputs[0].shape, inputs[1].shape
    if (
        data.dimensions is None
        or indices.dimensions is None
        or not data.dimensions
        or inputs[0].element_type is None
    ):
        return (Known(kind),)
    axis = axis_within(attributes["gather_axis"], len(data.dimensions))
    lengths = list(data.dimensions)
    if inputs[0].element_type is ElementType.U8 and attributes["bits"] < 8:
        lengths[-1] = (
            lengths[-1] * static(8 // attributes["bits"]) if lengths[-1].is_static else UNKNOWN
        )
    return (
        Known(kind, PartialShape((*lengths[:axis], *indices.dimensions, *lengths[axis + 1 :]))),
    )


OPERATIONS: tuple[Operation, ...] = (
    row(
        "MatMulNBits",
        matmul_n_bits,
        infer=infer_matmul_n_bits,
        by_constant=matmul_n_bits_by_constant,
        inputs=(3, 6),
        attributes=(
            Attribute("K", "int"),
            Attribute("N", "int"),
            Attribute("bits", "int", 4),
            Attribute("block_size", "int"),
            Attribute("accuracy_level", "int", 0),
            Attribute("weight_prepacked", "int", 0),
        ),
        types=(
            _HALVES,
            frozenset({ElementType.U8}),
            _HALVES,
            _HALVES | {ElementType.U8},
            frozenset({ElementType.I32}),
            _HALVES,
        ),
    ),
    row(
        "GatherBlockQuantized",
        gather_block_quantized,
        infer=infer_gather,
        inputs=(3, 4),
        attributes=(
            Attribute("bits", "int", 4),
            Attribute("block_size", "int", 128),
            Attribute("gather_axis", "int", 0),
            Attribute("quantize_axis", "int", 1),
        ),
        types=(
            frozenset({ElementType.I4, ElementType.U4, ElementType.U8}),
            INDICES,
            _HALVES,
            frozenset({ElementType.I4, ElementType.U4, ElementType.U8}),
        ),
    ),
)
