"""Movement of blocks of elements between spatial axes and the depth or batch axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INTEGERS
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.kernel_checks import check_elements, whole_numbers


def depth_to_space(data: Array, /, *, mode: str, block_size: int = 1) -> Array:
    """Move depth into space: [N, C * b^k, D1, ..., Dk] to [N, C, D1 * b, ..., Dk * b].

    ``mode`` selects whether the block is the first or the last part of the depth.
    """
    batch, depth, *lengths = _spatial(data)
    rank = len(lengths)
    blocks = block_size**rank
    if depth % blocks:
        raise ValueError(f"depth {depth} is not a multiple of {block_size} to the power of {rank}")
    grid = (block_size,) * rank
    first = mode == "blocks_first"
    cut = data.reshape(
        (batch, *grid, depth // blocks, *lengths)
        if first
        else (batch, depth // blocks, *grid, *lengths)
    )
    offset = 1 if first else 2
    interleaved = [axis for pair in range(rank) for axis in (rank + 2 + pair, offset + pair)]
    return cut.transpose((0, rank + 1 if first else 1, *interleaved)).reshape(
        (batch, depth // blocks, *(length * block_size for length in lengths))
    )


def space_to_depth(data: Array, /, *, mode: str, block_size: int = 1) -> Array:
    """Move space into depth: [N, C, D1 * b, ..., Dk * b] to [N, C * b^k, D1, ..., Dk].

    Inverse of ``depth_to_space``.
    """
    batch, depth, *lengths = _spatial(data)
    rank = len(lengths)
    if any(length % block_size for length in lengths):
        raise ValueError(
            f"spatial lengths {lengths} are not multiples of the block size {block_size}"
        )
    cut = data.reshape(
        (batch, depth, *(part for length in lengths for part in (length // block_size, block_size)))
    )
    places, blocks = [2 + 2 * pair for pair in range(rank)], [3 + 2 * pair for pair in range(rank)]
    order = (0, *blocks, 1, *places) if mode == "blocks_first" else (0, 1, *blocks, *places)
    return cut.transpose(order).reshape(
        (batch, depth * block_size**rank, *(length // block_size for length in lengths))
    )


def _spatial(data: Array) -> tuple[int, ...]:
    if data.ndim < 3:
        raise ValueError(f"a tensor of shape {list(data.shape)} has no spatial axes")
    return data.shape


def _spatial_dimensions(shape: PartialShape) -> tuple[Dimension, ...] | None:
    if shape.dimensions is not None and len(shape.dimensions) < 3:
        raise ValueError(f"a tensor of shape {shape} has no spatial axes")
    return shape.dimensions


def _infer_depth_to_space(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    dimensions = _spatial_dimensions(inputs[0].shape)
    if dimensions is None:
        return (Known(inputs[0].element_type),)
    block = attributes["block_size"]
    depth = _divide(dimensions[1], block ** (len(dimensions) - 2), "depth")
    shape = (dimensions[0], depth, *(length * block for length in dimensions[2:]))
    return (Known(inputs[0].element_type, PartialShape(shape)),)


def _infer_space_to_depth(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    dimensions = _spatial_dimensions(inputs[0].shape)
    if dimensions is None:
        return (Known(inputs[0].element_type),)
    block = attributes["block_size"]
    lengths = (_divide(length, block, "spatial length") for length in dimensions[2:])
    shape = (dimensions[0], dimensions[1] * block ** (len(dimensions) - 2), *lengths)
    return (Known(inputs[0].element_type, PartialShape(shape)),)


def _divide(whole: Dimension, parts: int, what: str) -> Dimension:
    if whole.is_static:
        if whole.length % parts:
            raise ValueError(f"{what} {whole} is not a multiple of {parts}")
        return static(whole.length // parts)
    lower = -(-whole.least // parts)
    return Dimension(lower, None if whole.most is None else max(whole.most // parts, lower))


def batch_to_space(
    data: Array, block_shape: Array, crops_begin: Array, crops_end: Array, /
) -> Array:
    """Move blocks of the batch axis into the spatial axes, and crop the result.

    [B1 * ... * Bk * N, D1, ..., Dk] becomes [N, D1 * B1, ..., Dk * Bk] before cropping. All other
    inputs are [k + 1].
    """
    blocks, begins, ends = _block_inputs(data, block_shape, crops_begin, crops_end)
    batch, *lengths = data.shape
    rank, count = len(lengths), math.prod(blocks)
    if batch % count:
        raise ValueError(f"batch {batch} is not a multiple of the {count} blocks")
    cut = data.reshape((*blocks[1:], batch // count, *lengths))
    interleaved = [axis for pair in range(rank) for axis in (rank + 1 + pair, pair)]
    whole = cut.transpose((rank, *interleaved)).reshape(
        (batch // count, *(a * b for a, b in zip(lengths, blocks[1:], strict=True)))
    )
    for axis, (length, begin, end) in enumerate(zip(whole.shape, begins, ends, strict=True)):
        if begin + end > length:
            raise ValueError(
                f"crops {begin} and {end} are more than the {length} elements of axis {axis}"
            )
    return whole[
        tuple(
            slice(begin, length - end)
            for length, begin, end in zip(whole.shape, begins, ends, strict=True)
        )
    ]


def space_to_batch(data: Array, block_shape: Array, pads_begin: Array, pads_end: Array, /) -> Array:
    """Pad with zeros and move blocks of the spatial axes into the batch axis.

    The padded [N, D1, ..., Dk] becomes [B1 * ... * Bk * N, D1 / B1, ..., Dk / Bk]. Inverse of
    ``batch_to_space``.
    """
    blocks, begins, ends = _block_inputs(data, block_shape, pads_begin, pads_end)
    lengths = [
        begin + length + end for length, begin, end in zip(data.shape, begins, ends, strict=True)
    ]
    if any(length % block for length, block in zip(lengths, blocks, strict=True)):
        raise ValueError(f"padded lengths {lengths} are not multiples of the blocks {blocks}")
    check_elements(math.prod(lengths), "the padded tensor")
    padded = np.zeros(lengths, data.dtype)
    padded[
        tuple(
            slice(begin, begin + length) for begin, length in zip(begins, data.shape, strict=True)
        )
    ] = data
    rank = len(lengths) - 1
    parts = [length // block for length, block in zip(lengths, blocks, strict=True)]
    cut = padded.reshape(
        (lengths[0], *(part for pair in zip(parts[1:], blocks[1:], strict=True) for part in pair))
    )
    order = (*(2 + 2 * pair for pair in range(rank)), 0, *(1 + 2 * pair for pair in range(rank)))
    return cut.transpose(order).reshape((math.prod(blocks) * lengths[0], *parts[1:]))


def _block_inputs(data: Array, *tensors: Array) -> tuple[list[int], list[int], list[int]]:
    blocks, begins, ends = (whole_numbers(tensor) for tensor in tensors)
    if data.ndim < 2 or not len(blocks) == len(begins) == len(ends) == data.ndim:
        raise ValueError(
            f"blocks {blocks}, {begins}, {ends} do not fit a tensor of shape {list(data.shape)}"
        )
    if (
        min(blocks) < 1
        or min(begins) < 0
        or min(ends) < 0
        or blocks[0] != 1
        or begins[0]
        or ends[0]
    ):
        raise ValueError(
            f"blocks {blocks}, {begins}, {ends}: blocks are at least 1, the others at "
            "least 0, the batch axis has 1, 0 and 0"
        )
    return blocks, begins, ends


def _infer_batch_to_space(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    values = _known_values(inputs)
    dimensions = inputs[0].shape.dimensions
    if values is None or dimensions is None:
        return (Known(inputs[0].element_type, _same_rank(inputs)),)
    blocks, begins, ends = values
    lengths = [_divide(dimensions[0], math.prod(blocks), "batch")]
    for length, block, begin, end in zip(
        dimensions[1:], blocks[1:], begins[1:], ends[1:], strict=True
    ):
        whole = length * block
        lower = max(whole.least - begin - end, 0)
        lengths.append(
            Dimension(lower, None if whole.most is None else max(whole.most - begin - end, lower))
        )
    return (Known(inputs[0].element_type, PartialShape(tuple(lengths))),)


def _infer_space_to_batch(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    values = _known_values(inputs)
    dimensions = inputs[0].shape.dimensions
    if values is None or dimensions is None:
        return (Known(inputs[0].element_type, _same_rank(inputs)),)
    blocks, begins, ends = values
    lengths = [dimensions[0] * math.prod(blocks)]
    for length, block, begin, end in zip(
        dimensions[1:], blocks[1:], begins[1:], ends[1:], strict=True
    ):
        lengths.append(_divide(length + (begin + end), block, "padded length"))
    return (Known(inputs[0].element_type, PartialShape(tuple(lengths))),)


def _known_values(inputs: Sequence[Known]) -> list[list[int]] | None:
    values = [whole_numbers(known.value) for known in inputs[1:] if known.value is not None]
    rank = inputs[0].shape.rank
    if len(values) < 3 or rank is None:
        return None
    if rank < 2 or any(len(numbers) != rank for numbers in values) or min(values[0]) < 1:
        raise ValueError(f"blocks {values} do not fit a tensor of shape {inputs[0].shape}")
    return values


def _same_rank(inputs: Sequence[Known]) -> PartialShape:
    count = inputs[1].shape.at(0) if inputs[1].shape.rank == 1 else UNKNOWN
    rank = (
        inputs[0].shape.rank
        if inputs[0].shape.rank is not None
        else count.length
        if count.is_static and count.least <= 64
        else None
    )
    return PartialShape(None) if rank is None else PartialShape.unknown(rank)


_MODE = Attribute("mode", "str", allowed=("blocks_first", "depth_first"))
_BLOCK_SIZE = Attribute("block_size", "int", 1, least=1)

row = family("movement")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "BatchToSpace",
        batch_to_space,
        version=2,
        infer=_infer_batch_to_space,
        inputs=(4, 4),
        types=(ANY_TYPE, INTEGERS),
        gradient=gradients.batch_to_space,
    ),
    row(
        "DepthToSpace",
        depth_to_space,
        infer=_infer_depth_to_space,
        attributes=(_MODE, _BLOCK_SIZE),
        gradient=gradients.depth_to_space,
    ),
    row(
        "SpaceToBatch",
        space_to_batch,
        version=2,
        infer=_infer_space_to_batch,
        inputs=(4, 4),
        types=(ANY_TYPE, INTEGERS),
        gradient=gradients.space_to_batch,
    ),
    row(
        "SpaceToDepth",
        space_to_depth,
        infer=_infer_space_to_depth,
        attributes=(_MODE, _BLOCK_SIZE),
        gradient=gradients.space_to_depth,
    ),
)
