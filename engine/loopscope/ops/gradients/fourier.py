"""Derivatives of Fourier transforms: the transform in the other direction.

It is scaled so that the division by the length cancels or applies as in the forward transform.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value, known_rank
from loopscope.ops.gradients.element_places import numbered, sent_back, whole_number

_FIRST = np.array(0)
_STEP = np.array([1])


def dft(node: Reverse, /) -> Adjoints:
    """Return the IDFT of the adjoint times the number of elements."""
    data, axes, *sizes = node.inputs
    transformed = node.ops.idft(node.adjoint, axes) * _count(
        node, node.adjoint, axes, known_rank(data) - 1
    )
    return (_fit(node, transformed, data), None, *[None] * len(sizes))


def idft(node: Reverse, /) -> Adjoints:
    """Return the DFT of the adjoint divided by the number of elements."""
    data, axes, *sizes = node.inputs
    transformed = node.ops.dft(node.adjoint, axes) / _count(
        node, node.adjoint, axes, known_rank(data) - 1
    )
    return (_fit(node, transformed, data), None, *[None] * len(sizes))


def rdft(node: Reverse, /) -> Adjoints:
    """Return the real part of the inverse transform.

    The adjoint of the omitted half of the spectrum is zero.
    """
    data, axes, *sizes = node.inputs
    rank = known_rank(data)
    last = _last_axis(axes, rank)
    length = _length_of(node, data, last)
    if sizes:
        size = node.ops.gather(
            node.ops.convert(sizes[0], destination_type="i64"), np.array(-1), _FIRST, batch_dims=0
        )
        length = node.ops.select(node.ops.equal(size, np.int64(-1)), length, size)
    missing = length - _length_of(node, node.adjoint, last)
    ends = node.ops.concat(
        np.zeros(last, np.int64),
        node.ops.unsqueeze(missing, _FIRST),
        np.zeros(rank - last, np.int64),
        axis=0,
    )
    full = node.ops.pad(node.adjoint, np.zeros(rank + 1, np.int64), ends, pad_mode="constant")
    transformed = node.ops.idft(full, axes) * _count(node, full, axes, rank)
    return (
        _fit(node, node.ops.gather(transformed, _FIRST, np.array(rank), batch_dims=0), data),
        None,
        *[None] * len(sizes),
    )


def irdft(node: Reverse, /) -> Adjoints:
    """Return the RDFT of the adjoint divided by the number of elements.

    Elements that represent two halves of the spectrum count twice.
    """
    data, axes, *sizes = node.inputs
    rank = known_rank(data) - 1
    last = _last_axis(axes, rank)
    transformed = node.ops.rdft(node.adjoint, axes) / _count(node, node.adjoint, axes, rank)
    length, half = _length_of(node, node.adjoint, last), _length_of(node, transformed, last)
    positions = node.ops.range(np.int64(0), half, np.int64(1), output_type="i64")
    is_single = node.ops.logical_or(
        node.ops.equal(positions, np.int64(0)), node.ops.equal(positions * np.int64(2), length)
    )
    mask = node.ops.unsqueeze(is_single, np.arange(1, rank - last + 1))
    return (
        _fit(node, node.ops.select(mask, transformed, transformed + transformed), data),
        None,
        *[None] * len(sizes),
    )


def stft(node: Reverse, /) -> Adjoints:
    """Transform the adjoint of each frame back, and sum the frames where they overlap."""
    signal, window, frame_size, frame_step = node.inputs
    size, step = whole_number(frame_size, "frame_size"), whole_number(frame_step, "frame_step")
    rank = known_rank(signal)
    spectra = node.adjoint
    if node.attributes["transpose_frames"]:
        spectra = node.ops.transpose(
            spectra, np.array([*range(rank - 1), rank, rank - 1, rank + 1])
        )
    ends = np.array([*[0] * rank, size - size // 2 - 1, 0])
    full = node.ops.pad(spectra, np.zeros(rank + 2, np.int64), ends, pad_mode="constant")
    return (*frames_back(node, signal, window, full, size, step), None, None)


def frames_back(
    node: Reverse, signal: Value, window: Value, spectra: Value, size: int, step: int
) -> tuple[Value, Value]:
    """Return the adjoints of a signal ``[(batch,) samples]`` and a window.

    ``spectra`` are the adjoints of whole spectra of frames ``[..., size, 2]``.
    """
    rank = known_rank(signal)
    if not window.shape.is_static:
        raise ValueError(
            f"the length of the window is not known ({window.shape}): make it a constant"
        )
    frames = node.ops.gather(
        node.ops.idft(spectra, np.array([rank])), _FIRST, np.array(rank + 1), batch_dims=0
    ) * float(size)
    length = window.shape.lengths[0]
    before = (size - length) // 2
    weights = node.ops.pad(
        window, np.array([before]), np.array([size - length - before]), pad_mode="constant"
    )
    count = node.ops.gather(node.shape_of(frames), np.array(-2), _FIRST, batch_dims=0)
    begins = node.ops.unsqueeze(
        node.ops.range(np.int64(0), count, np.int64(1), output_type="i64") * np.int64(step), _STEP
    )
    positions, along = begins + np.arange(size)[None], np.array(rank - 1)
    source_numbers = node.ops.gather(numbered(node, signal), positions, along, batch_dims=0)
    of_signal = sent_back(node, source_numbers, signal, frames * weights).of_data
    shares = frames * node.ops.gather(signal, positions, along, batch_dims=0)
    of_weights = node.ops.reduce_sum(shares, np.arange(rank), keep_dims=False)
    return of_signal, node.ops.slice(
        of_weights, np.array([before]), np.array([before + length]), _STEP
    )


def _last_axis(axes: Value, rank: int) -> int:
    """Return the axis whose spectrum is halved.

    ``rank`` does not count the axis of real and imaginary parts.
    """
    if axes.known.value is None or not axes.known.value.size:
        raise ValueError("the axes are not known before the model runs: make them a constant")
    return int(axes.known.value.reshape(-1)[-1]) % rank


def _length_of(node: Reverse, value: Value, axis: int) -> Value:
    return node.ops.gather(node.shape_of(value), np.array(axis), _FIRST, batch_dims=0)


def _count(node: Reverse, value: Value, axes: Value, rank: int) -> Value:
    """Return the number of elements that are transformed together, in the type of a tensor.

    ``rank`` does not count the axis of real and imaginary parts.
    """
    if axes.known.value is None:
        raise ValueError("the axes are not known before the model runs: make them a constant")
    transformed = np.asarray(axes.known.value, np.int64).reshape(-1) % rank
    lengths = node.ops.gather(node.shape_of(value), transformed, _FIRST, batch_dims=0)
    return node.ops.convert_like(node.ops.reduce_prod(lengths, _FIRST, keep_dims=False), value)


def _fit(node: Reverse, adjoint: Value, data: Value) -> Value:
    """Pad or crop an adjoint to the shape of the data.

    Elements that the transform cropped get 0. Adjoints of padding are dropped.
    """
    if data.shape.is_static and adjoint.shape == data.shape:
        return adjoint
    return node.ops.pad(
        adjoint,
        np.zeros(known_rank(data), np.int64),
        node.shape_of(data) - node.shape_of(adjoint),
        pad_mode="constant",
    )
