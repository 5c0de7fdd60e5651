"""How large the outputs of ONNX operations get whose size comes from a value: asked before the
reference kernel allocates them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.index import axis_within

Arguments = Sequence[Any]
Attributes = Mapping[str, Any]


def check_size(type: str, arguments: Arguments, attributes: Attributes) -> None:
    """``ValueError`` when the output would have more elements than a run allows; arguments as
    reference kernels take them.
    """
    rule = _RULES.get(type)
    if rule is not None:
        check_elements(rule(arguments, attributes), f"the output of {type}")


def _tile(arguments: Arguments, attributes: Attributes) -> int:
    return int(arguments[0].size) * _product(arguments[1])


def _range(arguments: Arguments, attributes: Attributes) -> int:
    start, limit, delta = (one.reshape(-1)[0].item() for one in arguments[:3])
    if not delta or not all(math.isfinite(one) for one in (start, limit, delta)):
        raise ValueError(f"a range from {start} to {limit} in steps of {delta} has no end")
    return max(0, math.ceil((limit - start) / delta))


def _pad(arguments: Arguments, attributes: Attributes) -> int:
    tensor, pads, _, named = (*arguments, *[None] * 3)[:4]
    given = attributes.get("pads") or attributes.get("paddings") or (() if pads is None else pads)
    added = [int(one) for one in np.ravel(given)]
    axes = _axes(named, tensor.ndim)
    if len(added) != 2 * len(axes):
        raise ValueError(
            f"there are {len(added)} pads, expected {2 * len(axes)}: two for each padded axis"
        )
    lengths = list(tensor.shape)
    for axis, before, after in zip(axes, added, added[len(axes) :], strict=False):
        lengths[axis] += before + after
    return _product(lengths)


def _resize(arguments: Arguments, attributes: Attributes) -> int:
    """Page onnx_Resize: the axes that are not named keep their lengths."""
    tensor, _, scales, sizes = (*arguments, *[None] * 3)[:4]
    axes = _axes(attributes.get("axes"), tensor.ndim)
    lengths = [float(length) for length in tensor.shape]
    if sizes is not None and sizes.size:
        found = _sized(
            [tensor.shape[axis] for axis in axes],
            np.ravel(sizes),
            attributes.get("keep_aspect_ratio_policy") or "stretch",
        )
    else:
        given = (
            np.ones(len(axes))
            if scales is None or not scales.size
            else np.ravel(scales).astype(np.float64)
        )
        _one_for_each(given, axes, "scales")
        found = [
            np.floor(tensor.shape[axis] * max(scale, 0.0))
            for axis, scale in zip(axes, given.tolist(), strict=True)
        ]
    for axis, length in zip(axes, found, strict=True):
        lengths[axis] = length
    return _finite(math.prod(lengths))


def _sized(lengths: Sequence[int], sizes: np.ndarray, policy: str) -> list[float]:
    """The lengths of the axes that ``sizes`` is about; two policies scale all of them alike."""
    _one_for_each(sizes, lengths, "sizes")
    if policy == "stretch" or not all(lengths):
        return [float(max(int(size), 0)) for size in sizes]
    ratios = [int(size) / length for size, length in zip(sizes, lengths, strict=True)]
    scale = max(min(ratios) if policy == "not_larger" else max(ratios), 0.0)
    return [float(math.floor(scale * length + 0.5)) for length in lengths]


def _one_for_each(given: np.ndarray, axes: Sequence[int], what: str) -> None:
    if len(given) != len(axes):
        raise ValueError(
            f"there are {len(given)} {what}, expected {len(axes)}: one for each resized axis"
        )


def _axes(named: Any, rank: int) -> list[int]:
    """The axes that an attribute or a tensor names, counted from the front; all of them where it
    names none.
    """
    return (
        list(range(rank))
        if named is None
        else [axis_within(int(axis), rank) for axis in np.ravel(named)]
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
    bins, length = (int(np.ravel(one)[0]) for one in arguments[:2])
    return bins * (length // 2 + 1)


def _product(lengths: Any) -> int:
    return math.prod(max(int(length), 0) for length in np.ravel(lengths))


def _finite(elements: float) -> int:
    return int(elements) if math.isfinite(elements) else 2**62


def _characters(arguments: Arguments, attributes: Attributes) -> int:
    """Of texts that are joined element by element: as many characters at most as the longest
    have, in each.
    """
    longest = sum(
        max((len(str(text)) for text in one.reshape(-1).tolist()), default=0) for one in arguments
    )
    return longest * math.prod(np.broadcast_shapes(*(one.shape for one in arguments)))


def _terms(arguments: Arguments, attributes: Attributes) -> int:
    """A count for each number of a gram up to the greatest, for each row."""
    rows = arguments[0].shape[0] if arguments[0].ndim == 2 else 1
    return int(rows) * (max(attributes.get("ngram_indexes") or (), default=-1) + 1)


def _pieces(arguments: Arguments, attributes: Attributes) -> int:
    """Of SplitToSequence: tensors without elements, too, take their time and memory."""
    tensor, split = (*arguments, None)[:2]
    axis = attributes.get("axis", 0)
    if -tensor.ndim <= axis < tensor.ndim and (split is None or split.ndim == 0):
        pieces = tensor.shape[axis] // (1 if split is None else max(1, int(split)))
        if pieces > _MOST_PIECES:
            raise ValueError(
                f"the output of SplitToSequence would have {pieces} tensors, more than the limit of {_MOST_PIECES}"
            )
    return int(tensor.size)


_MOST_PIECES = 1_000_000
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
