"""Sizes of ONNX outputs that depend on a value, checked before the reference kernel allocates
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.kernel_checks import axis_within, check_elements

Arguments = Sequence[Any]
Attributes = Mapping[str, Any]


def check_size(type: str, arguments: Arguments, attributes: Attributes) -> None:
    """Raise ``ValueError`` if the output would have more elements than a run allows. Arguments are
    those of reference kernels.
    """
    rule = _RULES.get(type)
    if rule is not None:
        check_elements(rule(arguments, attributes), f"the output of {type}")


def _tile(arguments: Arguments, attributes: Attributes) -> int:
    return int(arguments[0].size) * _product(arguments[1])


def _range(arguments: Arguments, attributes: Attributes) -> int:
    start, limit, delta = (number.reshape(-1)[0].item() for number in arguments[:3])
    if not delta or not all(math.isfinite(number) for number in (start, limit, delta)):
        raise ValueError(f"a range from {start} to {limit} in steps of {delta} has no end")
    return max(0, math.ceil((limit - start) / delta))


def _pad(arguments: Arguments, attributes: Attributes) -> int:
    tensor, pads, _, axes_input = (*arguments, *[None] * 3)[:4]
    pad_values = (
        attributes.get("pads") or attributes.get("paddings") or (() if pads is None else pads)
    )
    added = [int(number) for number in np.ravel(pad_values)]
    axes = _axes(axes_input, tensor.ndim)
    if len(added) != 2 * len(axes):
        raise ValueError(
            f"there are {len(added)} pads, expected {2 * len(axes)}: two for each padded axis"
        )
    lengths = list(tensor.shape)
    for axis, before, after in zip(axes, added, added[len(axes) :], strict=False):
        lengths[axis] += before + after
    return _product(lengths)


def _resize(arguments: Arguments, attributes: Attributes) -> int:
    """Page onnx_Resize: axes that are not named keep their lengths."""
    tensor, _, scales, sizes = (*arguments, *[None] * 3)[:4]
    axes = _axes(attributes.get("axes"), tensor.ndim)
    lengths = [float(length) for length in tensor.shape]
    if sizes is not None and sizes.size:
        new_lengths = _sized(
            [tensor.shape[axis] for axis in axes],
            np.ravel(sizes),
            attributes.get("keep_aspect_ratio_policy") or "stretch",
        )
    else:
        factors = (
            np.ones(len(axes))
            if scales is None or not scales.size
            else np.ravel(scales).astype(np.float64)
        )
        _one_for_each(factors, axes, "scales")
        new_lengths = [
            np.floor(tensor.shape[axis] * max(scale, 0.0))
            for axis, scale in zip(axes, factors.tolist(), strict=True)
        ]
    for axis, length in zip(axes, new_lengths, strict=True):
        lengths[axis] = length
    return _finite(math.prod(lengths))


def _sized(lengths: Sequence[int], sizes: np.ndarray, policy: str) -> list[float]:
    """Return the lengths of the resized axes. Two policies scale all axes by one factor."""
    _one_for_each(sizes, lengths, "sizes")
    if policy == "stretch" or not all(lengths):
        return [float(max(int(size), 0)) for size in sizes]
    ratios = [int(size) / length for size, length in zip(sizes, lengths, strict=True)]
    scale = max(min(ratios) if policy == "not_larger" else max(ratios), 0.0)
    return [float(math.floor(scale * length + 0.5)) for length in lengths]


def _one_for_each(numbers: np.ndarray, axes: Sequence[int], what: str) -> None:
    if len(numbers) != len(axes):
        raise ValueError(
            f"there are {len(numbers)} {what}, expected {len(axes)}: one for each resized axis"
        )


def _axes(axes: Any, rank: int) -> list[int]:
    """Return the axes that an attribute or a tensor names, counted from the front; all axes for
    None.
    """
    return (
        list(range(rank))
        if axes is None
        else [axis_within(int(axis), rank) for axis in np.ravel(axes)]
    )


def _random(arguments: Arguments, attributes: Attributes) -> int:
    return _product(attributes.get("shape") or ())


def _crop(arguments: Arguments, attributes: Attributes) -> int:
    tensor, wanted = arguments[0], np.ravel(arguments[1])
    axes = _axes(attributes.get("axes"), tensor.ndim)
    if len(wanted) != len(axes):
        raise ValueError(
            f"there are {len(wanted)} lengths, expected {len(axes)}: one for each axis"
        )
    lengths = list(tensor.shape)
    for axis, length in zip(axes, wanted.tolist(), strict=True):
        lengths[axis] = int(length)
    return _product(lengths)


def _mel(arguments: Arguments, attributes: Attributes) -> int:
    bins, length = (int(np.ravel(array)[0]) for array in arguments[:2])
    return bins * (length // 2 + 1)


def _product(lengths: Any) -> int:
    return math.prod(max(int(length), 0) for length in np.ravel(lengths))


def _finite(elements: float) -> int:
    return int(elements) if math.isfinite(elements) else 2**62


def _characters(arguments: Arguments, attributes: Attributes) -> int:
    """Return the largest number of characters of texts that are joined element by element."""
    longest = sum(
        max((len(str(text)) for text in array.reshape(-1).tolist()), default=0)
        for array in arguments
    )
    return longest * math.prod(np.broadcast_shapes(*(array.shape for array in arguments)))


def _terms(arguments: Arguments, attributes: Attributes) -> int:
    """Return the number of counts: for each row, one for each number of a gram up to the
    greatest.
    """
    rows = arguments[0].shape[0] if arguments[0].ndim == 2 else 1
    return int(rows) * (max(attributes.get("ngram_indexes") or (), default=-1) + 1)


def _pieces(arguments: Arguments, attributes: Attributes) -> int:
    """Return the number of elements of SplitToSequence. Raise ``ValueError`` for too many tensors,
    because tensors without elements also take time and memory.
    """
    tensor, split = (*arguments, None)[:2]
    axis = attributes.get("axis", 0)
    if -tensor.ndim <= axis < tensor.ndim and (split is None or split.ndim == 0):
        pieces = tensor.shape[axis] // (1 if split is None else max(1, int(split)))
        if pieces > _MAX_PIECES:
            raise ValueError(
                f"the output of SplitToSequence would have {pieces} tensors, "
                f"more than the limit of {_MAX_PIECES}"
            )
    return int(tensor.size)


_MAX_PIECES = 1_000_000
_RULES: Mapping[str, Callable[[Arguments, Attributes], int]] = {
    "Tile": _tile,
    "StringConcat": _characters,
    "TfIdfVectorizer": _terms,
    "Range": _range,
    "Pad": _pad,
    "Resize": _resize,
    "RandomNormal": _random,
    "RandomUniform": _random,
    "CenterCropPad": _crop,
    "MelWeightMatrix": _mel,
    "SplitToSequence": _pieces,
}
