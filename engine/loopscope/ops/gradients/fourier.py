"""Derivatives of Fourier transforms: a transform is walked back by the one the other way,
without or with its division by the length.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.element_places import numbered, sent_back, whole_number

_FIRST = np.array(0)
_ONE = np.array([1])


def dft(at: Reverse, /) -> Adjoints:
    """Back by IDFT times the number of elements."""
    data, axes, *sizes = at.inputs
    found = at.ops.idft(at.adjoint, axes) * _count(at, at.adjoint, axes, _rank(data) - 1)
    return (_cut(at, found, data), None, *[None] * len(sizes))


def idft(at: Reverse, /) -> Adjoints:
    """Back by DFT, divided by the number of elements."""
    data, axes, *sizes = at.inputs
    found = at.ops.dft(at.adjoint, axes) / _count(at, at.adjoint, axes, _rank(data) - 1)
    return (_cut(at, found, data), None, *[None] * len(sizes))


def rdft(at: Reverse, /) -> Adjoints:
    """The half that was left out has no adjoint; of what comes back the real part counts."""
    data, axes, *sizes = at.inputs
    rank = _rank(data)
    last = _last_axis(axes, rank)
    whole = _length_of(at, data, last)
    if sizes:
        wanted = at.ops.gather(
            at.ops.convert(sizes[0], destination_type="i64"), np.array(-1), _FIRST, batch_dims=0
        )
        whole = at.ops.select(at.ops.equal(wanted, np.int64(-1)), whole, wanted)
    missing = whole - _length_of(at, at.adjoint, last)
    ends = at.ops.concat(
        np.zeros(last, np.int64),
        at.ops.unsqueeze(missing, _FIRST),
        np.zeros(rank - last, np.int64),
        axis=0,
    )
    full = at.ops.pad(at.adjoint, np.zeros(rank + 1, np.int64), ends, pad_mode="constant")
    found = at.ops.idft(full, axes) * _count(at, full, axes, rank)
    return (
        _cut(at, at.ops.gather(found, _FIRST, np.array(rank), batch_dims=0), data),
        None,
        *[None] * len(sizes),
    )


def irdft(at: Reverse, /) -> Adjoints:
    """Back by RDFT, divided by the number of elements; what stands for two halves counts twice."""
    data, axes, *sizes = at.inputs
    rank = _rank(data) - 1
    last = _last_axis(axes, rank)
    found = at.ops.rdft(at.adjoint, axes) / _count(at, at.adjoint, axes, rank)
    whole, half = _length_of(at, at.adjoint, last), _length_of(at, found, last)
    places = at.ops.range(np.int64(0), half, np.int64(1), output_type="i64")
    once = at.ops.logical_or(
        at.ops.equal(places, np.int64(0)), at.ops.equal(places * np.int64(2), whole)
    )
    line = at.ops.unsqueeze(once, np.arange(1, rank - last + 1))
    return (_cut(at, at.ops.select(line, found, found + found), data), None, *[None] * len(sizes))


def stft(at: Reverse, /) -> Adjoints:
    """Each frame back by the inverse transform; where frames overlap, samples get the sum."""
    signal, window, frame_size, frame_step = at.inputs
    size, step = whole_number(frame_size, "frame_size"), whole_number(frame_step, "frame_step")
    rank = _rank(signal)
    spectra = at.adjoint
    if at.attributes["transpose_frames"]:
        spectra = at.ops.transpose(spectra, np.array([*range(rank - 1), rank, rank - 1, rank + 1]))
    ends = np.array([*[0] * rank, size - size // 2 - 1, 0])
    full = at.ops.pad(spectra, np.zeros(rank + 2, np.int64), ends, pad_mode="constant")
    return (*frames_back(at, signal, window, full, size, step), None, None)


def frames_back(
    at: Reverse, signal: Value, window: Value, spectra: Value, size: int, step: int
) -> tuple[Value, Value]:
    """The adjoints of a signal ``[(batch,) samples]`` and a window, from those of whole spectra
    of frames ``[..., size, 2]``.
    """
    rank = _rank(signal)
    if not window.shape.is_static:
        raise ValueError(
            f"the length of the window is not known ({window.shape}): make it a constant"
        )
    frames = at.ops.gather(
        at.ops.idft(spectra, np.array([rank])), _FIRST, np.array(rank + 1), batch_dims=0
    ) * float(size)
    length = window.shape.lengths[0]
    before = (size - length) // 2
    weights = at.ops.pad(
        window, np.array([before]), np.array([size - length - before]), pad_mode="constant"
    )
    count = at.ops.gather(at.shape_of(frames), np.array(-2), _FIRST, batch_dims=0)
    begins = at.ops.unsqueeze(
        at.ops.range(np.int64(0), count, np.int64(1), output_type="i64") * np.int64(step), _ONE
    )
    places, along = begins + np.arange(size)[None], np.array(rank - 1)
    came_from = at.ops.gather(numbered(at, signal), places, along, batch_dims=0)
    of_signal = sent_back(at, came_from, signal, frames * weights).of_data
    shares = frames * at.ops.gather(signal, places, along, batch_dims=0)
    of_weights = at.ops.reduce_sum(shares, np.arange(rank), keep_dims=False)
    return of_signal, at.ops.slice(
        of_weights, np.array([before]), np.array([before + length]), _ONE
    )


def _rank(value: Value) -> int:
    if value.rank is None:
        raise ValueError(
            f"the rank of the data is not known ({value.shape}): give the model's inputs their ranks"
        )
    return value.rank


def _last_axis(axes: Value, rank: int) -> int:
    """The axis whose spectrum is cut to a half; ``rank``: without the pairs of real and
    imaginary part.
    """
    if axes.known.value is None or not axes.known.value.size:
        raise ValueError("the axes are not known before the model runs: make them a constant")
    return int(axes.known.value.reshape(-1)[-1]) % rank


def _length_of(at: Reverse, value: Value, axis: int) -> Value:
    return at.ops.gather(at.shape_of(value), np.array(axis), _FIRST, batch_dims=0)


def _count(at: Reverse, value: Value, axes: Value, rank: int) -> Value:
    """How many elements are transformed together, in the type of a tensor; ``rank``: without the
    pairs of real and imaginary part.
    """
    if axes.known.value is None:
        raise ValueError("the axes are not known before the model runs: make them a constant")
    chosen = np.asarray(axes.known.value, np.int64).reshape(-1) % rank
    lengths = at.ops.gather(at.shape_of(value), chosen, _FIRST, batch_dims=0)
    return at.ops.convert_like(at.ops.reduce_prod(lengths, _FIRST, keep_dims=False), value)


def _cut(at: Reverse, found: Value, data: Value) -> Value:
    """What was cut to the size of the transform gets 0, and what was filled up to it goes
    nowhere.
    """
    if data.shape.is_static and found.shape == data.shape:
        return found
    return at.ops.pad(
        found,
        np.zeros(_rank(data), np.int64),
        at.shape_of(data) - at.shape_of(found),
        pad_mode="constant",
    )
