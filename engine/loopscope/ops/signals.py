"""Category signals of the OpenVINO operation specs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, REAL_FLOATS
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.derivative import Gradient
from loopscope.ops.family import family
from loopscope.ops.gradients import fourier as gradients
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import axis_within, check_elements
from loopscope.ops.window import windows


def dft(data: Array, axes: Array, signal_size: Array | None = None, /) -> Array:
    """Compute the discrete Fourier transform along ``axes``.

    ``[..., 2] -> [..., 2]``: the last axis is real and imaginary part. The axes are first cut or
    filled with zeros to ``signal_size``. Spec: signals/dft-7.
    """
    return _transform_axes(data, axes, signal_size, np.fft.fft)


def idft(data: Array, axes: Array, signal_size: Array | None = None, /) -> Array:
    """Compute the inverse of DFT: ``[..., 2] -> [..., 2]``.

    Spec: signals/idft-7.
    """
    return _transform_axes(data, axes, signal_size, np.fft.ifft)


def rdft(data: Array, axes: Array, signal_size: Array | None = None, /) -> Array:
    """Compute the Fourier transform of real numbers, without the redundant half.

    ``[...] -> [..., 2]`` with ``n // 2 + 1`` elements along the last of ``axes``. Spec:
    signals/rdft-9.
    """
    axis_numbers = _axes(axes, data.ndim)
    sizes = _sizes(axis_numbers, signal_size, data.shape)
    _check(data.shape, axis_numbers, sizes)
    result = computable(data)
    for index, (axis, size) in reversed(list(enumerate(zip(axis_numbers, sizes, strict=True)))):
        result = (np.fft.rfft if index == len(axis_numbers) - 1 else np.fft.fft)(result, size, axis)
    return _as_pairs(result, data.dtype)


def irdft(data: Array, axes: Array, signal_size: Array | None = None, /) -> Array:
    """Compute the inverse of RDFT; the missing half makes the result real.

    ``[..., 2] -> [...]`` with ``2 * (n - 1)`` elements along the last of ``axes``, if not
    ``signal_size``. Spec: signals/irdft-9.
    """
    values = _complex(data)
    axis_numbers = _axes(axes, values.ndim)
    shape = list(values.shape)
    if axis_numbers:
        shape[axis_numbers[-1]] = 2 * (shape[axis_numbers[-1]] - 1)
    sizes = _sizes(axis_numbers, signal_size, shape)
    _check(shape, axis_numbers, sizes)
    for axis, size in zip(axis_numbers[:-1], sizes[:-1], strict=True):
        values = np.fft.ifft(values, size, axis)
    result = np.fft.irfft(values, sizes[-1], axis_numbers[-1]) if axis_numbers else values.real
    return rounded(np.asarray(result, order="C"), data.dtype)


def _transform_axes(
    data: Array, axes: Array, signal_size: Array | None, transform: Callable[..., Array]
) -> Array:
    values = _complex(data)
    axis_numbers = _axes(axes, values.ndim)
    sizes = _sizes(axis_numbers, signal_size, values.shape)
    _check(values.shape, axis_numbers, sizes)
    for axis, size in zip(axis_numbers, sizes, strict=True):
        values = transform(values, size, axis)
    return _as_pairs(values, data.dtype)


def _complex(data: Array) -> Array:
    if not data.ndim or data.shape[-1] != 2:
        raise ValueError(
            f"the data has shape {list(data.shape)}, expected real and imaginary part "
            "as its last axis"
        )
    wide = np.ascontiguousarray(computable(data))
    return wide.view(np.complex128 if wide.dtype == np.float64 else np.complex64)[..., 0]


def _as_pairs(values: Array, dtype: np.dtype) -> Array:
    """Return complex numbers as pairs of the operation's type."""
    pairs = np.empty((*values.shape, 2), values.real.dtype)
    pairs[..., 0], pairs[..., 1] = values.real, values.imag
    return rounded(pairs, dtype)


def _axes(axes: Array, rank: int) -> list[int]:
    axis_numbers = [axis_within(int(axis), rank) for axis in np.asarray(axes).reshape(-1)]
    if len(set(axis_numbers)) != len(axis_numbers):
        raise ValueError(f"axes {axis_numbers} name one axis twice")
    return axis_numbers


def _sizes(axes: Sequence[int], signal_size: Array | None, shape: Sequence[int]) -> list[int]:
    """Return the size of each transformed axis; -1 means its current length."""
    requested = (
        [-1] * len(axes)
        if signal_size is None
        else [int(size) for size in np.asarray(signal_size).reshape(-1)]
    )
    if len(requested) != len(axes):
        raise ValueError(f"signal_size has {len(requested)} elements for {len(axes)} axes")
    sizes = [
        shape[axis] if size == -1 else size for axis, size in zip(axes, requested, strict=True)
    ]
    if any(size < 1 for size in sizes):
        raise ValueError(f"signal sizes {sizes[:8]}: a transform needs at least 1 element")
    return sizes


def _check(shape: Sequence[int], axes: Sequence[int], sizes: Sequence[int]) -> None:
    result = list(shape)
    for axis, size in zip(axes, sizes, strict=True):
        result[axis] = size
    check_elements(2 * prod(result), "the transform")


def stft(
    signal: Array, window: Array, frame_size: Array, frame_step: Array, /, *, transpose_frames: bool
) -> Array:
    """Compute Fourier transforms of overlapping frames, each weighted by the window.

    ``[(batch,) samples] -> [(batch,) frames, frame_size // 2 + 1, 2]``, the middle axes swapped by
    ``transpose_frames``. Spec: signals/stft-15.
    """
    size, step = _frame(frame_size, frame_step)
    wide = np.ascontiguousarray(computable(signal))
    if wide.ndim not in (1, 2) or not size <= wide.shape[-1]:
        raise ValueError(f"a signal of shape {list(signal.shape)} has no frame of {size}")
    count = (wide.shape[-1] - size) // step + 1
    check_elements(prod(wide.shape[:-1]) * count * (size + 2), "the frames")
    frames = windows(wide, (size,), (count,), (step,), (1,)).swapaxes(-1, -2) * _padded_window(
        window, size
    )
    result = np.fft.rfft(frames, axis=-1)
    return _as_pairs(result.swapaxes(-1, -2) if transpose_frames else result, signal.dtype)


def istft(
    data: Array,
    window: Array,
    frame_size: Array,
    frame_step: Array,
    signal_length: Array | None = None,
    /,
    *,
    center: bool,
    normalized: bool,
) -> Array:
    """Reconstruct the signal whose overlapping, weighted frames have these transforms.

    ``[(batch,) frame_size // 2 + 1, frames, 2] -> [(batch,) samples]``: frames are weighted again
    and summed, and the sum is divided by that of the squared windows. Spec: signals/istft-16.
    """
    size, step = _frame(frame_size, frame_step)
    values = _complex(data)
    if values.ndim not in (2, 3) or values.shape[-2] != size // 2 + 1 or not values.shape[-1]:
        raise ValueError(
            f"data of shape {list(data.shape)} does not hold transforms of frames of {size}"
        )
    count = values.shape[-1]
    whole = (count - 1) * step + size
    margin = size // 2 if center else 0
    requested = -1 if signal_length is None else int(np.asarray(signal_length).reshape(-1)[0])
    # The page's default length is one less for an odd frame size. This is the runtime's length,
    # which the shapes in files have.
    length = requested if requested > 0 else whole - 2 * margin
    check_elements(prod(values.shape[:-2]) * (max(length, whole) + count * size), "the signal")
    weights = _padded_window(window, size)
    signal = _overlap_add(np.fft.irfft(values.swapaxes(-1, -2), size, -1) * weights, step)
    if normalized:
        signal *= signal.dtype.type(np.sqrt(size))
    total = _overlap_add(np.broadcast_to(weights * weights, (count, size)), step)
    np.divide(signal, total, out=signal, where=total != 0)
    result = np.zeros((*signal.shape[:-1], length), signal.dtype)
    part = signal[..., margin : margin + length]
    result[..., : part.shape[-1]] = part
    return rounded(result, data.dtype)


def _overlap_add(frames: np.ndarray, step: int) -> np.ndarray:
    """Sum frames [..., count, size] that begin ``step`` samples after each other."""
    count, size = frames.shape[-2:]
    total = np.zeros((*frames.shape[:-2], (count - 1) * step + size), frames.dtype)
    for index in range(count):
        total[..., index * step : index * step + size] += frames[..., index, :]
    return total


def _frame(frame_size: Array, frame_step: Array) -> tuple[int, int]:
    size = int(np.asarray(frame_size).reshape(-1)[0])
    step = int(np.asarray(frame_step).reshape(-1)[0])
    if size < 1 or step < 1:
        raise ValueError(f"frames of {size} every {step} samples: both must be at least 1")
    return size, step


def _padded_window(window: Array, size: int) -> Array:
    """Return the window in the middle of a frame, with zeros around it."""
    if window.ndim != 1 or len(window) > size:
        raise ValueError(f"a window of shape {list(window.shape)} does not fit frames of {size}")
    before = (size - len(window)) // 2
    return np.pad(computable(window), (before, size - len(window) - before))


def infer_dft(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of the data, with transformed axes as in ``signal_size``."""
    dimensions = inputs[0].shape.dimensions
    if dimensions is None:
        return (Known(inputs[0].element_type),)
    _check_pair(inputs[0].shape)
    lengths = _lengths(inputs, list(dimensions[:-1]), lambda length, last: length)
    return (Known(inputs[0].element_type, PartialShape((*lengths, static(2)))),)


def infer_rdft(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer as for DFT: half of the last transformed axis, then real and imaginary part."""
    dimensions = inputs[0].shape.dimensions
    if dimensions is None:
        return (Known(inputs[0].element_type),)

    def half(length: Dimension, last: bool) -> Dimension:
        return (
            Dimension(length.least // 2 + 1, None if length.most is None else length.most // 2 + 1)
            if last
            else length
        )

    return (
        Known(
            inputs[0].element_type,
            PartialShape((*_lengths(inputs, list(dimensions), half), static(2))),
        ),
    )


def infer_irdft(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer as for DFT without the pair, and with the full length of the last transformed axis."""
    dimensions = inputs[0].shape.dimensions
    if dimensions is None:
        return (Known(inputs[0].element_type),)
    _check_pair(inputs[0].shape)
    lengths = list(dimensions[:-1])
    axes = inputs[1].value
    if axes is not None and np.asarray(axes).size:
        last = axis_within(int(np.asarray(axes).reshape(-1)[-1]), len(lengths))
        length = lengths[last]
        lengths[last] = Dimension(
            max(0, 2 * (length.least - 1)),
            None if length.most is None else max(0, 2 * (length.most - 1)),
        )
    return (
        Known(
            inputs[0].element_type,
            PartialShape(tuple(_lengths(inputs, lengths, lambda length, last: length))),
        ),
    )


def _check_pair(shape: PartialShape) -> None:
    if shape.rank == 0 or not shape.at(-1).contains(2):
        raise ValueError(
            f"the data has shape {shape}, expected real and imaginary part as its last axis"
        )


def _lengths(
    inputs: Sequence[Known],
    lengths: list[Dimension],
    change: Callable[[Dimension, bool], Dimension],
) -> list[Dimension]:
    """Return lengths with those of the transformed axes replaced; all unknown if the axes are
    unknown.
    """
    axes = inputs[1].value
    if axes is None:
        return [UNKNOWN] * len(lengths)
    axis_numbers = _axes(axes, len(lengths))
    sizes = inputs[2].value if len(inputs) > 2 else np.full(len(axis_numbers), -1)
    for index, axis in enumerate(axis_numbers):
        size = None if sizes is None else int(np.asarray(sizes).reshape(-1)[index])
        length = UNKNOWN if size is None else lengths[axis] if size == -1 else static(max(0, size))
        lengths[axis] = change(length, index == len(axis_numbers) - 1)
    return lengths


def infer_stft(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer batch, frames and bins as far as signal, frame size and step are known."""
    signal = inputs[0].shape
    if signal.dimensions is None:
        return (Known(inputs[0].element_type, DYNAMIC),)
    frames, bins = UNKNOWN, UNKNOWN
    if inputs[2].value is not None:
        size = int(np.asarray(inputs[2].value).reshape(-1)[0])
        bins = static(size // 2 + 1)
        if inputs[3].value is not None and signal.at(-1).is_static:
            _, step = _frame(inputs[2].value, inputs[3].value)
            frames = static(max(0, (signal.at(-1).length - size) // step + 1))
    middle = (bins, frames) if attributes["transpose_frames"] else (frames, bins)
    return (
        Known(inputs[0].element_type, PartialShape((*signal.dimensions[:-1], *middle, static(2)))),
    )


def infer_istft(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the batch, and the signal's length from its input or from frames, size and step."""
    data = inputs[0].shape
    if data.dimensions is None:
        return (Known(inputs[0].element_type, DYNAMIC),)
    length = UNKNOWN
    if len(inputs) > 4:
        if inputs[4].value is not None and int(np.asarray(inputs[4].value).reshape(-1)[0]) > 0:
            length = static(int(np.asarray(inputs[4].value).reshape(-1)[0]))
    elif inputs[2].value is not None and inputs[3].value is not None and data.at(-2).is_static:
        size, step = _frame(inputs[2].value, inputs[3].value)
        length = static(
            max(
                0,
                (data.at(-2).length - 1) * step
                + size
                - (2 * (size // 2) if attributes["center"] else 0),
            )
        )
    return (Known(inputs[0].element_type, PartialShape((*data.dimensions[:-3], length))),)


_TRANSFORM_TYPES = (REAL_FLOATS, INDEX_TYPES)


def _transform(
    name: str,
    version: int,
    kernel: Callable[..., Array],
    infer: Callable[..., tuple[Known, ...]],
    gradient: Gradient,
) -> Operation:
    return Operation(
        name=name,
        version=version,
        opsets=(version, 16),
        page=f"signals/{name.lower()}-{version}",
        kernel=kernel,
        infer=infer,
        inputs=(2, 3),
        types=_TRANSFORM_TYPES,
        gradient=gradient,
    )


row = family("signals")

OPERATIONS: tuple[Operation, ...] = (
    _transform("DFT", 7, dft, infer_dft, gradients.dft),
    _transform("IDFT", 7, idft, infer_dft, gradients.idft),
    _transform("RDFT", 9, rdft, infer_rdft, gradients.rdft),
    _transform("IRDFT", 9, irdft, infer_irdft, gradients.irdft),
    row(
        "STFT",
        stft,
        version=15,
        infer=infer_stft,
        inputs=(4, 4),
        attributes=(Attribute("transpose_frames", "bool"),),
        types=(REAL_FLOATS, REAL_FLOATS, INDEX_TYPES),
        gradient=gradients.stft,
    ),
    row(
        "ISTFT",
        istft,
        version=16,
        infer=infer_istft,
        inputs=(4, 5),
        attributes=(Attribute("center", "bool"), Attribute("normalized", "bool")),
        types=(REAL_FLOATS, REAL_FLOATS, INDEX_TYPES),
    ),
)
