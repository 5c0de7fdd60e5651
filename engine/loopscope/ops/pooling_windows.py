"""Windows of a pooling: their positions on each axis, the reduction over them, and the inferred
shapes of the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.shape import UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Known
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.window import Lengths, inferred, pads, per_axis, places, span

_BLOCK_ELEMENTS = 1 << 17
_SHORT_ROW = 256


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """Windows over spatial axes."""

    lengths: Lengths
    kernel: Lengths
    strides: Lengths
    dilations: Lengths
    begin: Lengths
    overhang: Lengths
    """Padding at the end that the last windows need, declared or not."""
    counts: Lengths
    is_padded: bool
    """True if padding is declared or follows from ``auto_pad``."""

    @property
    def surrounded(self) -> Lengths:
        """Lengths with the padding at both ends."""
        return tuple(
            low + length + high
            for low, length, high in zip(self.begin, self.lengths, self.overhang, strict=True)
        )

    def blocks(self, data: Array, fill: float) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of planes of ``[N, C, lengths...]`` with padding: ``[planes,
        surrounded...]`` in a reused buffer.

        A block stays in a processor's cache through all steps of a pooling; a padded copy of the
        whole array would not.
        """
        planes = data.reshape(prod(data.shape[:2]), *self.lengths)
        planes_per_block = max(1, _BLOCK_ELEMENTS // max(1, prod(self.surrounded)))
        inside: tuple[Any, ...] = (
            ...,
            *(
                slice(low, low + length)
                for low, length in zip(self.begin, self.lengths, strict=True)
            ),
        )
        buffer = (
            np.full((min(planes_per_block, len(planes)), *self.surrounded), fill, data.dtype)
            if self.surrounded != self.lengths
            else None
        )
        for start in range(0, len(planes), planes_per_block):
            block = slice(start, min(start + planes_per_block, len(planes)))
            if buffer is None:
                yield block, planes[block]
            else:
                part = buffer[: block.stop - block.start]
                part[inside] = planes[block]
                yield block, part

    def taps(self, values: Array, axis: int, place: int) -> list[Array]:
        """Return for each element of the kernel along an axis a view of its values in all
        windows.
        """
        count, stride = self.counts[place], self.strides[place]
        before = (slice(None),) * axis
        return [
            values[
                (
                    *before,
                    slice(first, first + (count - 1) * stride + 1 if count else first, stride),
                )
            ]
            for first in range(0, self.kernel[place] * self.dilations[place], self.dilations[place])
        ]


def combined(data: Array, frame: WindowFrame, fill: float, operation: np.ufunc) -> Array:
    """Combine the elements of each window by an operation: ``[N, C, lengths...] -> [N, C,
    places...]``.

    Padding is ``fill``. The first axis comes first: each step leaves fewer rows for the last axis,
    whose elements are not adjacent.
    """
    check_elements(
        prod(data.shape[:2]) * max(prod(frame.counts), prod(frame.surrounded)),
        "the data of the pooling",
    )
    result = np.empty((prod(data.shape[:2]), *frame.counts), data.dtype)
    last = len(frame.counts) - 1
    for block, values in frame.blocks(data, fill):
        for axis in range(last):
            values = _combine_rows(operation, values, frame, axis)
        _combine_lines(operation, values, frame, result[block])
    return result.reshape(*data.shape[:2], *frame.counts)


def summed_in_order(data: Array, frame: WindowFrame) -> Array:
    """Sum each window like ``combined`` with padding 0, but element by element in row order.

    ONNX Runtime rounds this way: where a mean is half way between two quanta, the last bit of the
    sum decides.
    """
    check_elements(
        prod(data.shape[:2]) * max(prod(frame.counts), prod(frame.surrounded)),
        "the data of the pooling",
    )
    result = np.empty((prod(data.shape[:2]), *frame.counts), data.dtype)
    for block, values in frame.blocks(data, 0):
        taps = [values]
        for axis in range(len(frame.counts)):
            taps = [tap for view in taps for tap in frame.taps(view, 1 + axis, axis)]
        _combine_taps(np.add, taps, result[block])
    return result.reshape(*data.shape[:2], *frame.counts)


def _combine_rows(operation: np.ufunc, values: Array, frame: WindowFrame, axis: int) -> Array:
    """Combine along an axis before the last.

    With stride 2 and short rows, process all rows as one contiguous line and drop every other
    result: fewer numpy calls take less time.
    """
    inner, reach = prod(values.shape[2 + axis :]), (frame.kernel[axis] - 1) * frame.dilations[axis]
    if (
        not values.size
        or not reach
        or inner > _SHORT_ROW
        or frame.strides[axis] != 2
        or not values.flags.c_contiguous
    ):
        return _combine_taps(operation, frame.taps(values, 1 + axis, axis))
    line, whole = values.reshape(-1), np.empty_like(values)
    joined = whole.reshape(-1)[: line.size - reach * inner]
    taps = [
        line[shift : shift + joined.size]
        for shift in range(0, reach * inner + 1, frame.dilations[axis] * inner)
    ]
    _combine_taps(operation, taps, joined)
    even_rows = slice(0, max(0, 2 * frame.counts[axis] - 1), 2)
    return np.ascontiguousarray(whole[(*(slice(None),) * (1 + axis), even_rows)])


def _combine_lines(operation: np.ufunc, values: Array, frame: WindowFrame, out: Array) -> None:
    """Combine along the last axis.

    If the stride divides the length, all lines are processed as one, and results across line ends
    are dropped.
    """
    count, length, last = frame.counts[-1], values.shape[-1], values.ndim - 1
    stride = frame.strides[-1] if count > 1 else length
    if not values.size or length % stride or not values.flags.c_contiguous:
        _combine_taps(operation, frame.taps(values, last, last - 1), out)
        return
    line = values.reshape(-1)
    joined = np.empty((*values.shape[:-1], length // stride), values.dtype)
    needed = joined.size - length // stride + count
    taps = [
        line[shift::stride][:needed]
        for shift in range(0, frame.kernel[-1] * frame.dilations[-1], frame.dilations[-1])
    ]
    _combine_taps(operation, taps, joined.reshape(-1)[:needed])
    out[...] = joined[..., :count]


def _combine_taps(operation: np.ufunc, taps: Sequence[Array], out: Array | None = None) -> Array:
    if len(taps) == 1:
        if out is None:
            return taps[0]
        np.copyto(out, taps[0])
        return out
    result: Array = operation(taps[0], taps[1], out=out)
    for tap in taps[2:]:
        operation(result, tap, out=result)
    return result


def frame_of(
    shape: Sequence[int],
    kernel: Lengths,
    strides: Lengths,
    dilations: Lengths,
    begin: Lengths,
    end: Lengths,
    auto_pad: str,
    rounding: str,
) -> WindowFrame:
    """Return the windows over data of shape ``[N, C, lengths...]``; raise ``ValueError`` if
    attributes do not fit it.
    """
    axes = len(kernel)
    if not 1 <= axes <= 3 or len(shape) != axes + 2:
        raise ValueError(f"a kernel of {axes} axes does not fit data of shape {list(shape)[:8]}")
    lengths = tuple(shape[2:])
    strides = per_axis(strides, axes, 1, "strides")
    dilations = per_axis(dilations, axes, 1, "dilations")
    begin, end = per_axis(begin, axes, 0, "pads_begin"), per_axis(end, axes, 0, "pads_end")
    begin, end = pads(lengths, kernel, strides, dilations, begin, end, auto_pad)
    counts, overhang = [], []
    for axis in range(axes):
        reach = span(kernel[axis], dilations[axis])
        count = places(lengths[axis], reach, strides[axis], begin[axis], end[axis], rounding)
        counts.append(count)
        overhang.append(
            max(end[axis], (count - 1) * strides[axis] + reach - lengths[axis] - begin[axis])
        )
    is_padded = any(begin) or any(end)
    return WindowFrame(
        lengths, kernel, strides, dilations, begin, tuple(overhang), tuple(counts), is_padded
    )


def infer_pool(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer batch and channels of the data, and the number of windows along each axis."""
    return (Known(inputs[0].element_type, pooled_shape(inputs[0].shape, attributes)),)


def infer_max_pool_with_indices(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer one shape for maxima and indices."""
    shape = pooled_shape(inputs[0].shape, attributes)
    return (Known(inputs[0].element_type, shape), Known(attributes["index_element_type"], shape))


def pooled_shape(data: PartialShape, attributes: Mapping[str, Any]) -> PartialShape:
    """Return the shape of the result of a pooling with these attributes."""
    kernel = attributes["kernel"]
    axes = len(kernel)
    if data.dimensions is None:
        return PartialShape.unknown(axes + 2)
    if len(data.dimensions) != axes + 2:
        raise ValueError(f"a kernel of {axes} axes does not fit data of shape {data}")
    strides = per_axis(attributes["strides"], axes, 1, "strides")
    dilations = per_axis(attributes.get("dilations", ()), axes, 1, "dilations")
    begin = per_axis(attributes["pads_begin"], axes, 0, "pads_begin")
    end = per_axis(attributes["pads_end"], axes, 0, "pads_end")
    rounding, auto_pad = attributes["rounding_type"], attributes["auto_pad"]
    spatial = [
        inferred(
            data.at(2 + axis),
            static(kernel[axis]),
            strides[axis],
            dilations[axis],
            begin[axis],
            end[axis],
            auto_pad,
            rounding,
        )
        for axis in range(axes)
    ]
    return PartialShape((*data.dimensions[:2], *spatial))


def infer_adaptive_average_pool(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch and channels of the data, and lengths from the second input."""
    return (Known(inputs[0].element_type, _adaptive_shape(inputs)),)


def infer_adaptive_max_pool(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer one shape for maxima and indices."""
    return (
        Known(inputs[0].element_type, _adaptive_shape(inputs)),
        Known(attributes["index_element_type"], _adaptive_shape(inputs)),
    )


def _adaptive_shape(inputs: Sequence[Known]) -> PartialShape:
    data, output_shape = inputs[0].shape, inputs[1].value
    if data.dimensions is None:
        return data
    if output_shape is None:
        return PartialShape((*data.dimensions[:2], *(UNKNOWN,) * (len(data.dimensions) - 2)))
    lengths = [int(length) for length in np.asarray(output_shape).reshape(-1)]
    if len(lengths) != len(data.dimensions) - 2 or any(length < 0 for length in lengths):
        raise ValueError(f"output shape {lengths[:8]} does not fit data of shape {data}")
    return PartialShape((*data.dimensions[:2], *map(static, lengths)))
