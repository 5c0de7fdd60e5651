"""Operations that enlarge tensors: replication along axes, repetition, padding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INTEGERS
from loopscope.ir.shape import DYNAMIC, PartialShape, length_within, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.infer import broadcast_shapes, common_type, spelled
from loopscope.ops.kernel_checks import axes_within, check_elements, whole_numbers

_MAPPED = ("explicit", "none")
"""Modes with axes_mapping: OpenVINO writes version 1's ``explicit`` as ``none``."""


def broadcast(
    data: Array, target_shape: Array, axes_mapping: Array | None = None, /, *, mode: str = "numpy"
) -> Array:
    """Replicate ``data`` to ``target_shape`` [n].

    In mode ``explicit``, ``axes_mapping`` [rank of data] is the target axis of each axis of the
    data. Mode ``pdpd`` lacks its attribute ``axis`` here, so that the data is aligned at the last
    axis, as in ``numpy``.
    """
    target = _lengths(target_shape)
    if mode in _MAPPED:
        if axes_mapping is None:
            raise ValueError(f"mode '{mode}' needs the input axes_mapping")
        data = data.reshape(_mapped_lengths(data.shape, whole_numbers(axes_mapping), len(target)))
    elif mode == "bidirectional":
        target = list(np.broadcast_shapes(data.shape, tuple(target)))
    check_elements(math.prod(target), "the broadcast tensor")
    result = np.empty(target, data.dtype)
    result[...] = data
    return result


def _lengths(shape: Array) -> list[int]:
    target = whole_numbers(shape)
    if target and min(target) < 0:
        raise ValueError(f"target shape {target} has a negative length")
    return target


def _mapped_lengths(shape: tuple[int, ...], mapping: list[int], rank: int) -> list[int]:
    if len(mapping) != len(shape):
        raise ValueError(
            f"axes_mapping {mapping} names {len(mapping)} axes, the data has shape {list(shape)}"
        )
    if sorted(mapping) != mapping:
        raise ValueError(f"axes_mapping {mapping} is not in ascending order")
    lengths = [1] * rank
    for axis, length in zip(axes_within(mapping, rank), shape, strict=True):
        lengths[axis] = length
    return lengths


def _infer_broadcast(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, target = inputs[:2]
    shape = spelled(target) if target.value is None else PartialShape.of(_lengths(target.value))
    source = data.shape
    if attributes["mode"] == "bidirectional":
        return (Known(data.element_type, broadcast_shapes(source, shape)),)
    if not shape.is_static:
        return (Known(data.element_type, shape),)
    if (
        attributes["mode"] in _MAPPED
        and source.is_static
        and len(inputs) > 2
        and inputs[2].value is not None
    ):
        source = PartialShape.of(
            _mapped_lengths(source.lengths, whole_numbers(inputs[2].value), len(shape.lengths))
        )
    if (source.is_static and attributes["mode"] not in _MAPPED) or source is not data.shape:
        _check_fits(source.lengths, shape.lengths)
    return (Known(data.element_type, shape),)


def _check_fits(source: tuple[int, ...], target: tuple[int, ...]) -> None:
    aligned = target[len(target) - len(source) :] if len(source) <= len(target) else ()
    if len(aligned) != len(source) or any(
        length not in (1, target_length)
        for length, target_length in zip(source, aligned, strict=True)
    ):
        raise ValueError(f"a tensor of shape {list(source)} cannot be broadcast to {list(target)}")


def tile(data: Array, repeats: Array, /) -> Array:
    """Repeat ``data`` ``repeats`` [n] times along each axis.

    The shorter of shape and repeats is extended with 1 at the front.
    """
    times = whole_numbers(repeats)
    if times and min(times) < 0:
        raise ValueError(f"repeats {times} has a negative number")
    times = [1] * (data.ndim - len(times)) + times
    check_elements(data.size * math.prod(times), "the tiled tensor")
    if data.size * math.prod(times) == 0:
        lengths = (1,) * (len(times) - data.ndim) + data.shape
        return np.empty(
            [length * time for length, time in zip(lengths, times, strict=True)], data.dtype
        )
    return np.tile(data, times)


def _infer_tile(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data, repeats = inputs
    dimensions = data.shape.dimensions
    if dimensions is None:
        return (Known(data.element_type),)
    if repeats.value is not None and repeats.value.size and min(whole_numbers(repeats.value)) < 0:
        raise ValueError(f"repeats {whole_numbers(repeats.value)} has a negative number")
    times = spelled(repeats).dimensions
    if times is None:
        return (Known(data.element_type),)
    rank = max(len(times), len(dimensions))
    lengths, times = ((static(1),) * (rank - len(dims)) + dims for dims in (dimensions, times))
    return (
        Known(
            data.element_type,
            PartialShape(tuple(length * time for length, time in zip(lengths, times, strict=True))),
        ),
    )


def pad(
    data: Array,
    pads_begin: Array,
    pads_end: Array,
    pad_value: Array | None = None,
    /,
    *,
    pad_mode: str,
) -> Array:
    """Add ``pads_begin`` and ``pads_end`` [rank] elements on each axis of ``data``.

    Negative numbers remove elements.
    """
    begins, ends = whole_numbers(pads_begin), whole_numbers(pads_end)
    lengths = _padded_lengths(data.shape, begins, ends)
    check_elements(math.prod(lengths), "the padded tensor")
    if pad_mode == "constant":
        return _surround(data, begins, lengths, pad_value)
    for axis, (begin, length) in enumerate(zip(begins, lengths, strict=True)):
        whole = data.shape[axis]
        if begin or length != whole:
            check_elements(length, "a padded axis")
            data = data.take(_copied_positions(begin, length, whole, axis, pad_mode), axis)
    return data


_MAX_PAD = 2**62


def _padded_lengths(shape: Sequence[int], begins: list[int], ends: list[int]) -> list[int]:
    if not len(begins) == len(ends) == len(shape):
        raise ValueError(f"pads {begins} and {ends} do not fit a tensor of shape {list(shape)}")
    if max(map(abs, (*begins, *ends)), default=0) > _MAX_PAD:
        raise ValueError(f"pads {begins} and {ends} are beyond all bounds")
    return [
        max(begin + length + end, 0) for begin, length, end in zip(begins, shape, ends, strict=True)
    ]


def _surround(data: Array, begins: list[int], lengths: list[int], value: Array | None) -> Array:
    result = (
        np.zeros(lengths, data.dtype) if data.dtype.kind != "O" else np.full(lengths, "", object)
    )
    if value is not None:
        result[...] = value.reshape(())
    target, source = [], []
    for begin, length, whole in zip(begins, lengths, data.shape, strict=True):
        first, last = max(begin, 0), min(begin + whole, length)
        target.append(slice(first, max(first, last)))
        source.append(slice(first - begin, max(first, last) - begin))
    result[tuple(target)] = data[tuple(source)]
    return result


def _copied_positions(begin: int, length: int, whole: int, axis: int, pad_mode: str) -> np.ndarray:
    """Return for each element of a padded axis the position that it copies."""
    position = np.arange(-begin, length - begin)
    end = length - begin - whole
    limit = {"edge": None, "reflect": whole - 1, "symmetric": whole}[pad_mode]
    if length and whole == 0:
        raise ValueError(f"axis {axis} is empty and cannot be padded in mode '{pad_mode}'")
    if limit is not None and max(begin, end) > limit:
        raise ValueError(
            f"pads {begin} and {end} of axis {axis} are more than mode '{pad_mode}' "
            f"can mirror ({limit})"
        )
    match pad_mode:
        case "edge":
            return np.clip(position, 0, max(whole - 1, 0))
        case "reflect":
            position = np.abs(position)
            return np.where(position >= whole, 2 * whole - 2 - position, position)
        case _:
            position = np.where(position < 0, -1 - position, position)
            return np.where(position >= whole, 2 * whole - 1 - position, position)


def _infer_pad(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data, begin, end = inputs[:3]
    element_type = common_type([data, *inputs[3:]])
    dimensions = data.shape.dimensions
    if dimensions is None:
        rank = spelled(begin).rank
        return (Known(element_type, DYNAMIC if rank is None else PartialShape.unknown(rank)),)
    if begin.value is not None and end.value is not None:
        _padded_lengths(
            [length.least for length in dimensions],
            whole_numbers(begin.value),
            whole_numbers(end.value),
        )
    begins, ends = begin.elements, end.elements
    if begins is None or ends is None:
        return (Known(element_type, PartialShape.unknown(len(dimensions))),)
    lengths = [
        length_within(
            (
                max(length.least + first[0] + last[0], 0),
                math.inf if length.most is None else max(length.most + first[1] + last[1], 0),
            )
        )
        for length, first, last in zip(dimensions, begins.intervals, ends.intervals, strict=True)
    ]
    return (Known(element_type, PartialShape(tuple(lengths))),)


_MODES = ("constant", "edge", "reflect", "symmetric")

_MODE = Attribute("mode", "str", "numpy", ("numpy", "explicit", "bidirectional", "pdpd"))
_FIRST_MODE = Attribute("mode", "str", "numpy", ("numpy", "explicit", "none", "pdpd"))
row = family(
    "movement",
    infer=_infer_broadcast,
    inputs=(2, 3),
    attributes=(_MODE,),
    types=(ANY_TYPE, INTEGERS),
)
pads = family(
    "movement",
    infer=_infer_pad,
    inputs=(3, 4),
    attributes=(Attribute("pad_mode", "str", allowed=_MODES),),
    types=(ANY_TYPE, INTEGERS, INTEGERS, ANY_TYPE),
)

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Broadcast",
        broadcast,
        opsets=(1, 2),
        attributes=(_FIRST_MODE,),
        gradient=gradients.broadcast,
    ),
    row("Broadcast", broadcast, version=3, gradient=gradients.broadcast),
    pads("Pad", pad, opsets=(1, 11), gradient=gradients.pad),
    pads("Pad", pad, version=12, gradient=gradients.pad),
    row("Tile", tile, infer=_infer_tile, inputs=(2, 2), attributes=(), gradient=gradients.tile),
)
