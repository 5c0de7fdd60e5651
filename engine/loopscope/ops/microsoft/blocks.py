"""Weights quantized in blocks to 2, 4 or 8 bits, as large language models ship them: products
with them, and rows looked up in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, KeepingKernel, Known, Operation
from loopscope.ops.index import axis_within
from loopscope.ops.matrix import matmul
from loopscope.ops.microsoft.row import INDICES, row
from loopscope.ops.onnx.quantizing import along
from loopscope.ops.precision import computable

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
    """``[..., K] x [N, blocks, bytes] -> [..., N]``: a product with weights of few bits, ``(weight
    - zero point) * scale``.

    The weights of each block of ``block_size`` along K lie in bytes, the first in the lowest bits;
    zero points likewise, or as floats. ``accuracy_level`` allows a runtime to compute with less
    precision, which is not done here.
    """
    if weight_prepacked:
        raise ValueError(
            f"weight_prepacked is {weight_prepacked}, expected 0: other layouts are for one make of GPU"
        )
    return _multiplied(data, _weights(packed, scales, zeros, groups, K, N, bits, block_size), bias)


class _OneMatrix:
    """``matmul_n_bits`` with one and the same weights, which it keeps in f32 from the second run
    on: a run that is the only one does not pay for memory that nothing would use again.
    """

    def __init__(self, unpack: Callable[..., Array], most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._unpack = unpack
        self._last: tuple[Array | None, ...] = ()
        self._kept: tuple[tuple[Array | None, ...], Array] | None = None
        """What was given and what was made of it; set as one, for the threads that share a plan."""

    def __call__(self, data: Array, packed: Array, scales: Array, *others: Array | None) -> Array:
        zeros, groups, bias = (*others, None, None, None)[:3]
        given, kept = (packed, scales, zeros, groups), self._kept
        if kept is not None and all(map(is_, kept[0], given)):
            return _multiplied(data, kept[1], bias)
        matrix = self._unpack(*given)
        if self._last and all(map(is_, self._last, given)):
            self._kept = given, matrix
        self._last = given
        return _multiplied(data, matrix, bias)


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
    """The kernel of one node whose weights are constants."""
    unpack = partial(_weights, K=K, N=N, bits=bits, block_size=block_size)
    return None if weight_prepacked or min(K, N) < 1 else _OneMatrix(unpack, 4 * K * N)


def _multiplied(data: Array, matrix: Array, bias: Array | None) -> Array:
    made = matmul(computable(data), matrix, transpose_a=False, transpose_b=True)
    if bias is not None:
        if bias.shape != (len(matrix),):
            raise ValueError(f"the bias has shape {list(bias.shape)}, expected [{len(matrix)}]")
        made = made + computable(bias)
    return np.asarray(made).astype(data.dtype, copy=False)


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
    """The matrix ``[N, K]`` in f32."""
    _check_block(bits, block_size)
    blocks = -(-K // block_size)
    if min(K, N) < 1 or packed.size != N * blocks * (block_size * bits // 8):
        expected = [N, blocks, block_size * bits // 8]
        raise ValueError(
            f"the weights have shape {list(packed.shape)}, expected {expected} for K {K} and N {N} in blocks of {block_size}"
        )
    if scales.size != N * blocks:
        raise ValueError(f"the scales have shape {list(scales.shape)}, expected [{N}, {blocks}]")
    check_elements(N * blocks * block_size, "the unpacked weights")
    levels = _floats(packed, bits).reshape(N, blocks, block_size)
    offsets, factors = (
        _zero_points(zeros, N, blocks, bits),
        computable(scales).reshape(N, blocks, 1),
    )
    if groups is not None:
        offsets, factors = (_of_groups(one, groups, K) for one in (offsets, factors))
        return (levels.reshape(N, -1)[:, :K] - offsets) * factors
    levels -= offsets
    levels *= factors
    return np.ascontiguousarray(levels.reshape(N, -1)[:, :K])


def _of_groups(parameter: Array, groups: Array, K: int) -> Array:
    """For each column what the group has that it names."""
    named = groups.reshape(-1)[:K]
    if named.size != K or named.min() < 0 or named.max() >= parameter.shape[1]:
        raise ValueError(
            f"the groups have shape {list(groups.shape)}, expected {K} numbers from 0 to {parameter.shape[1] - 1}"
        )
    return parameter[:, named, 0]


def _zero_points(zeros: Array | None, N: int, blocks: int, bits: int) -> Array:
    """One for each block: what is given, or the middle of what the bits hold."""
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
            f"the zero points have shape {list(zeros.shape)}, expected [{N}, {-(-blocks * bits // 8)}]"
        )
    return unpacked(zeros.reshape(N, -1), bits)[:, :blocks, None].astype(np.float32)


def unpacked(data: Array, bits: int) -> Array:
    """The numbers that lie in bytes, the first in the lowest bits: the last axis becomes longer
    by as many as a byte holds.
    """
    if bits == 8:
        return data
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((data[..., None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(
        *data.shape[:-1], data.shape[-1] * shifts.size
    )


def _floats(data: Array, bits: int) -> Array:
    """As ``unpacked``, in f32."""
    made = np.empty((*data.shape, 8 // bits), np.float32)
    for place in range(8 // bits):
        made[..., place] = (data >> np.uint8(place * bits)) & np.uint8((1 << bits) - 1)
    return made.reshape(*data.shape[:-1], data.shape[-1] * (8 // bits))


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
    """Slices of a tensor quantized in blocks along an axis, as floats: ``(data - zero point) *
    scale``; an index outside gives zeros.

    The data is of 4-bit integers, or of bytes that hold numbers of ``bits`` bits along the last
    axis, the first in the lowest.
    """
    _check_block(bits, block_size)
    in_bytes = data.dtype == np.uint8
    place, cut = axis_within(gather_axis, data.ndim), axis_within(quantize_axis, data.ndim)
    if in_bytes and (place != 0 or cut == 0):
        raise ValueError(
            f"gather_axis is {gather_axis} and quantize_axis {quantize_axis}, expected 0 and another for data of bytes"
        )
    check_elements(
        indices.size * (data.size // max(data.shape[place], 1)) * (8 // bits), "the gathered tensor"
    )
    positions, inside = _positions(indices, data.shape[place])
    taken = data.take(positions, place)
    taken = _floats(taken, bits) if in_bytes else taken.astype(np.float32)
    shape = taken.shape
    offsets = (
        zeros if zeros is None or not in_bytes else unpacked(zeros, bits)[..., : scales.shape[-1]]
    )
    if offsets is None:
        taken -= np.float32(1 << (bits - 1) if in_bytes else 0)
    else:
        taken -= _of_slices(offsets, positions, shape, place, cut, block_size).astype(np.float32)
    numbers = taken * computable(_of_slices(scales, positions, shape, place, cut, block_size))
    numbers = np.where(inside.reshape(-1, *[1] * (data.ndim - place - 1)), numbers, np.float32(0))
    return numbers.reshape(*shape[:place], *indices.shape, *shape[place + 1 :]).astype(
        scales.dtype, copy=False
    )


def _positions(indices: Array, length: int) -> tuple[Array, Array]:
    """Where the indices point, counted from the start, and whether that is inside."""
    flat = indices.reshape(-1).astype(np.int64)
    counted = np.where(flat < 0, flat + length, flat)
    inside = (counted >= 0) & (counted < length)
    return np.where(inside, counted, 0), inside


def _of_slices(
    parameter: Array,
    positions: Array,
    shape: tuple[int, ...],
    place: int,
    cut: int,
    block_size: int,
) -> Array:
    """The parameters of the slices that are taken, one for each element."""
    if place == cut:
        return parameter.take(positions // block_size, place)
    return along(parameter.take(positions, place), shape, cut, block_size)


def infer_matmul_n_bits(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """The data's shape, with N in place of K."""
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
    """The data's lengths, with those of the indices in place of the axis; bytes hold several
    numbers of the last axis.
    """
    kind, data, indices = inputs[2].element_type, inputs[0].shape, inputs[1].shape
    if (
        data.dimensions is None
        or indices.dimensions is None
        or not data.dimensions
        or inputs[0].element_type is None
    ):
        return (Known(kind),)
    place = axis_within(attributes["gather_axis"], len(data.dimensions))
    lengths = list(data.dimensions)
    if inputs[0].element_type is ElementType.U8 and attributes["bits"] < 8:
        lengths[-1] = (
            lengths[-1] * static(8 // attributes["bits"]) if lengths[-1].is_static else UNKNOWN
        )
    return (
        Known(kind, PartialShape((*lengths[:place], *indices.dimensions, *lengths[place + 1 :]))),
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
