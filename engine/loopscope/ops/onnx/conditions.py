"""Conditions on ONNX inputs that the onnx package's kernels do not check, so that an error says
what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Arguments = Sequence[Any]
Attributes = Mapping[str, Any]


def check_inputs(type: str, arguments: Arguments, attributes: Attributes) -> None:
    """Raise ``ValueError`` if inputs do not fit each other or the attributes. Arguments are those
    of reference kernels.
    """
    condition = _CONDITIONS.get(type)
    if condition is not None:
        condition(arguments, attributes)


def _check_channels(arguments: Arguments, attributes: Attributes) -> None:
    """Require that each input after the first holds a number for each channel."""
    data = arguments[0]
    if data.ndim < 1:
        raise ValueError("the data is a scalar, expected [N, C, lengths...]")
    channels = data.shape[1] if data.ndim > 1 else 1
    for index, values in enumerate(arguments[1:], 1):
        if values is not None and values.shape != (channels,):
            raise ValueError(
                f"input {index} has shape {list(values.shape)}, "
                f"expected [{channels}] for data of shape {list(data.shape)}"
            )


def _check_instances(arguments: Arguments, attributes: Attributes) -> None:
    if arguments[0].ndim < 2:
        raise ValueError(
            f"the data has shape {list(arguments[0].shape)}, expected [N, C, lengths...]"
        )
    _check_channels(arguments, attributes)


def _check_coordinates(arguments: Arguments, attributes: Attributes) -> None:
    """Require indices whose last axis holds coordinates into the data, after axes that both
    share.
    """
    data, indices = arguments[:2]
    shared = int(attributes.get("batch_dims") or 0)
    if indices.ndim < 1 or data.ndim < 1:
        raise ValueError(
            f"data of shape {list(data.shape)} and indices of shape {list(indices.shape)}, "
            "expected at least one dimension each"
        )
    if (
        not 0 <= shared < min(data.ndim, indices.ndim)
        or data.shape[:shared] != indices.shape[:shared]
    ):
        raise ValueError(
            f"batch_dims is {shared} for data of shape {list(data.shape)} "
            f"and indices of shape {list(indices.shape)}"
        )
    depth = indices.shape[-1]
    if depth > data.ndim - shared:
        raise ValueError(
            f"the indices hold {depth} coordinates each, "
            f"the data has {data.ndim - shared} axes for them"
        )
    for place, length in enumerate(data.shape[shared : shared + depth]):
        along = indices[..., place]
        outside = along[(along < -length) | (along >= length)]
        if outside.size:
            raise ValueError(
                f"index {outside[0]} is out of range for axis {shared + place} of length {length}"
            )


def _check_scatter_nd(arguments: Arguments, attributes: Attributes) -> None:
    _check_coordinates(arguments, {})
    data, indices, updates = arguments[:3]
    expected = (*indices.shape[:-1], *data.shape[indices.shape[-1] :])
    if updates.shape != expected:
        raise ValueError(f"the updates have shape {list(updates.shape)}, expected {list(expected)}")


def _check_scatter_elements(arguments: Arguments, attributes: Attributes) -> None:
    data, indices, updates = arguments[:3]
    if indices.shape != updates.shape or indices.ndim != data.ndim:
        shapes = (
            f"indices of shape {list(indices.shape)} and updates of shape {list(updates.shape)}"
        )
        raise ValueError(
            f"{shapes} for data of shape {list(data.shape)}, expected equal ones of its rank"
        )


def one_axis(data: np.ndarray, axis: np.ndarray) -> None:
    """Raise ``ValueError`` unless the data has an axis and ``axis`` is one number."""
    if data.ndim < 1 or axis.size != 1:
        shapes = f"data of shape {list(data.shape)} and an axis of shape {list(axis.shape)}"
        raise ValueError(f"{shapes}, expected at least one dimension and one number")


def _check_direction(arguments: Arguments, attributes: Attributes) -> None:
    if attributes.get("direction") not in ("LEFT", "RIGHT"):
        raise ValueError(
            f"direction is {str(attributes.get('direction'))[:40]!r}, expected LEFT or RIGHT"
        )


def _check_repeats(arguments: Arguments, attributes: Attributes) -> None:
    if len(arguments) == 2 and arguments[1].shape != (arguments[0].ndim,):
        raise ValueError(
            f"the repeats have shape {list(arguments[1].shape)}, "
            f"expected a number for each of {arguments[0].ndim} axes"
        )


def _check_matrix(arguments: Arguments, attributes: Attributes) -> None:
    if arguments[0].ndim != 2:
        raise ValueError(f"the input has shape {list(arguments[0].shape)}, expected a matrix")


def _check_matrices(arguments: Arguments, attributes: Attributes) -> None:
    if arguments[0].ndim < 2:
        raise ValueError(f"the input has shape {list(arguments[0].shape)}, expected matrices")


def _check_sequences(arguments: Arguments, attributes: Attributes) -> None:
    data, lengths = arguments
    batch, time = int(attributes.get("batch_axis", 1)), int(attributes.get("time_axis", 0))
    if data.ndim < 2 or {batch, time} != {0, 1}:
        raise ValueError(
            f"batch_axis is {batch} and time_axis {time} for data of shape {list(data.shape)}, "
            "expected 0 and 1"
        )
    if (
        lengths.shape != (data.shape[batch],)
        or (lengths < 0).any()
        or (lengths > data.shape[time]).any()
    ):
        expected = f"{data.shape[batch]} of at most {data.shape[time]}"
        raise ValueError(
            f"the lengths are {lengths.reshape(-1)[:8].tolist()}, "
            f"expected {expected} for data of shape {list(data.shape)}"
        )


def _check_regions(arguments: Arguments, attributes: Attributes) -> None:
    data, rois, batches = arguments
    if data.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or batches.shape != rois.shape[:1]:
        shapes = ", ".join(str(list(array.shape)) for array in arguments)
        raise ValueError(f"the inputs have shapes {shapes}, expected [N, C, H, W], [n, 4] and [n]")
    outside = batches[(batches < 0) | (batches >= data.shape[0])]
    if outside.size:
        raise ValueError(f"a region is of image {outside[0]}, there are {data.shape[0]}")


def _check_depth_to_space(arguments: Arguments, attributes: Attributes) -> None:
    """Require channels that are blocks, for DepthToSpace."""
    data, size = arguments[0], int(attributes.get("blocksize") or 0)
    if data.ndim != 4 or size < 1 or data.shape[1] % (size * size):
        expected = (
            f"[N, C, H, W] with C a multiple of {size * size}"
            if size > 0
            else "a positive blocksize"
        )
        raise ValueError(
            f"blocksize is {size} for data of shape {list(data.shape)}, expected {expected}"
        )


def _check_space_to_depth(arguments: Arguments, attributes: Attributes) -> None:
    """Require a height and width of whole blocks, for SpaceToDepth."""
    data, size = arguments[0], int(attributes.get("blocksize") or 0)
    if data.ndim != 4 or size < 1 or data.shape[2] % size or data.shape[3] % size:
        expected = (
            f"[N, C, H, W] with H and W multiples of {size}" if size > 0 else "a positive blocksize"
        )
        raise ValueError(
            f"blocksize is {size} for data of shape {list(data.shape)}, expected {expected}"
        )


def _check_grid(arguments: Arguments, attributes: Attributes) -> None:
    data, grid = arguments
    if (
        data.ndim < 3
        or grid.ndim != data.ndim
        or grid.shape[0] != data.shape[0]
        or grid.shape[-1] != data.ndim - 2
    ):
        shapes = f"data of shape {list(data.shape)} and a grid of shape {list(grid.shape)}"
        raise ValueError(
            f"{shapes}: "
            "expected [N, C, H, W] and [N, H', W', 2], or [N, C, D, H, W] and [N, D', H', W', 3]"
        )


def _check_slice(arguments: Arguments, attributes: Attributes) -> None:
    """Check the attributes of Slice before opset 10."""
    starts, ends = (tuple(attributes.get(name) or ()) for name in ("starts", "ends"))
    axes, rank = tuple(attributes.get("axes") or range(len(starts))), arguments[0].ndim
    if len(arguments) > 1:
        return
    if not len(starts) == len(ends) == len(axes):
        raise ValueError(
            f"starts {list(starts)}, ends {list(ends)} and axes {list(axes)} have different lengths"
        )
    outside = [axis for axis in axes if not -rank <= axis < rank]
    if outside:
        raise ValueError(f"axis {outside[0]} is out of range for rank {rank}")


def _check_col2im(arguments: Arguments, attributes: Attributes) -> None:
    """Require for Col2Im one column for each window of the block in the image, and one row for each
    element of a block.
    """
    data, image, block = arguments[:3]
    axes = image.size
    if data.ndim != 3 or image.ndim != 1 or block.shape != image.shape or (block < 1).any():
        shapes = (
            f"data of shape {list(data.shape)}, the image "
            f"{np.ravel(image)[:8].tolist()} and the block {np.ravel(block)[:8].tolist()}"
        )
        raise ValueError(
            f"{shapes}, expected [N, C * elements of a block, L] and a length for each axis of both"
        )
    strides, dilations = (
        np.array(attributes.get(name) or [1] * axes) for name in ("strides", "dilations")
    )
    pads = np.array(attributes.get("pads") or [0] * (2 * axes))
    if strides.size != axes or dilations.size != axes or pads.size != 2 * axes or min(strides) < 1:
        numbers = (
            f"strides {strides.tolist()}, dilations {dilations.tolist()} and pads {pads.tolist()}"
        )
        raise ValueError(f"{numbers}, expected {axes}, {axes} and {2 * axes} numbers")
    windows = (image + pads[:axes] + pads[axes:] - dilations * (block - 1) - 1) // strides + 1
    rows = math.prod(block.tolist())
    columns = math.prod(max(count, 0) for count in windows.tolist())
    if data.shape[1] % rows or data.shape[2] != columns:
        raise ValueError(
            f"the data has shape {list(data.shape)}, "
            f"expected [N, a multiple of {rows}, {columns}] for these blocks"
        )


def _check_attention(arguments: Arguments, attributes: Attributes) -> None:
    shapes = [tuple(shape.shape) for shape in arguments[:3]]
    shapes_text = f"Q, K and V have shapes {', '.join(str(list(shape)) for shape in shapes)}"
    if {len(shape) for shape in shapes} not in ({3}, {4}):
        raise ValueError(
            f"{shapes_text}, "
            "expected [batch, heads, length, size] or [batch, length, heads * size] each"
        )
    if len(shapes[0]) == 3:
        heads = [int(attributes.get(f"{name}_num_heads") or 0) for name in ("q", "kv", "kv")]
        if min(heads) < 1 or any(
            shape[2] % count for shape, count in zip(shapes, heads, strict=True)
        ):
            raise ValueError(
                f"{shapes_text}, q_num_heads is {heads[0]} and kv_num_heads {heads[1]}, "
                "expected divisors of the last lengths"
            )
        shapes = [
            (shape[0], count, shape[1], shape[2] // count)
            for shape, count in zip(shapes, heads, strict=True)
        ]
    query, key, value = shapes
    if (
        query[0] != key[0]
        or key[:3] != value[:3]
        or query[3] != key[3]
        or not key[1]
        or query[1] % key[1]
    ):
        expected = (
            "equal batches, K and V of equal heads and lengths, Q and "
            "K of equal size, and the heads of K dividing those of Q"
        )
        raise ValueError(f"{shapes_text}, expected {expected}")
    past = [
        None if shape is None else tuple(shape.shape) for shape in (*arguments[4:6], None, None)[:2]
    ]
    for name, before, now in (("past_key", past[0], key), ("past_value", past[1], value)):
        if before is not None and (
            len(before) != 4 or (*before[:2], before[3]) != (*now[:2], now[3])
        ):
            raise ValueError(
                f"{name} has shape {list(before)}, expected [{now[0]}, {now[1]}, length, {now[3]}]"
            )
    if (past[0] is None) is not (past[1] is None) or (
        past[0] is not None and past[1] is not None and past[0][2] != past[1][2]
    ):
        raise ValueError(
            "past_key and past_value are of different lengths, "
            "expected both of the same, or neither"
        )


def _check_squares(arguments: Arguments, attributes: Attributes) -> None:
    if arguments[0].ndim < 2 or arguments[0].shape[-1] != arguments[0].shape[-2]:
        raise ValueError(
            f"the input has shape {list(arguments[0].shape)}, expected square matrices"
        )


_MAX_SKIPPED = 1_000_000
"""Limit of max_skip_count of TfIdfVectorizer, whose kernel loops over the distances."""


def _check_grams(arguments: Arguments, attributes: Attributes) -> None:
    shortest, longest, skips = (
        attributes.get(name) for name in ("min_gram_length", "max_gram_length", "max_skip_count")
    )
    if (
        shortest is None
        or longest is None
        or skips is None
        or not 1 <= shortest <= longest
        or not 0 <= skips <= _MAX_SKIPPED
    ):
        raise ValueError(
            f"grams of {shortest} to {longest} with up to {skips} skipped, "
            f"expected lengths of at least 1 and at most {_MAX_SKIPPED:,} skipped"
        )
    pool = len(attributes.get("pool_int64s") or attributes.get("pool_strings") or ())
    starts = [int(start) for start in attributes.get("ngram_counts") or ()]
    if starts != sorted(starts) or any(not 0 <= start <= pool for start in starts):
        raise ValueError(
            f"ngram_counts is {starts[:8]}, "
            f"expected places in the pool of {pool}, in ascending order"
        )


_CONDITIONS: Mapping[str, Callable[[Arguments, Attributes], None]] = {
    "Attention": _check_attention,
    "BatchNormalization": _check_channels,
    "BitShift": _check_direction,
    "Col2Im": _check_col2im,
    "TfIdfVectorizer": _check_grams,
    "DepthToSpace": _check_depth_to_space,
    "Det": _check_squares,
    "EyeLike": _check_matrix,
    "GatherND": _check_coordinates,
    "GridSample": _check_grid,
    "InstanceNormalization": _check_instances,
    "ReverseSequence": _check_sequences,
    "RoiAlign": _check_regions,
    "ScatterElements": _check_scatter_elements,
    "ScatterND": _check_scatter_nd,
    "Slice": _check_slice,
    "SpaceToDepth": _check_space_to_depth,
    "Tile": _check_repeats,
    "Trilu": _check_matrices,
}
