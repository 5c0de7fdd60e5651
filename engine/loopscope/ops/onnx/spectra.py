"""ONNX's STFT and DFT, and the windows for them.

The onnx package's STFT takes no signal without a last axis of length 1, which exporters write and
ONNX Runtime takes; its DFT takes as much memory as the length says that a model asks for.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Kernel
from loopscope.ops.precision import computable


def stft(
    signal: Array,
    step: Array,
    window: Array | None = None,
    length: Array | None = None,
    /,
    *,
    onesided: int = 1,
) -> Array:
    """Return spectra of the frames of each signal: [batch, frames, frequencies, real and imaginary
    part].
    """
    if signal.ndim not in (2, 3) or (signal.ndim == 3 and signal.shape[2] not in (1, 2)):
        raise ValueError(
            f"the signal has shape {list(signal.shape)}, "
            "expected [batch, length], [batch, length, 1] or [batch, length, 2]"
        )
    stride, size = int(np.ravel(step)[0]), _frame_length(window, length)
    if stride < 1 or not 1 <= size <= signal.shape[1]:
        raise ValueError(
            f"frames of {size} every {stride} of a signal of {signal.shape[1]}, "
            "expected at least 1 each, and one whole frame"
        )
    values = computable(signal).astype(np.float64)
    two_sided = signal.ndim == 3 and signal.shape[2] == 2
    if two_sided and onesided:
        raise ValueError(
            "the signal is complex, which has no one-sided spectrum: expected onesided 0"
        )
    values = values[..., 0] + 1j * values[..., 1] if two_sided else values.reshape(signal.shape[:2])
    bins = size // 2 + 1 if onesided else size
    check_elements(
        len(values) * ((values.shape[1] - size) // stride + 1) * max(bins, size) * 2,
        "the output of STFT",
    )
    frames = sliding_window_view(values, size, axis=1)[:, ::stride]
    if window is not None:
        frames = frames * computable(window).astype(np.float64)
    spectra = np.fft.fft(frames)[..., :bins]
    return np.stack([spectra.real, spectra.imag], axis=-1).astype(signal.dtype)


def _frame_length(window: np.ndarray | None, length: np.ndarray | None) -> int:
    """Return the length of a frame, from the window or from frame_length. Raise ``ValueError`` if
    neither is present or they differ.
    """
    lengths = {int(np.ravel(length)[0])} if length is not None else set[int]()
    lengths |= {len(window)} if window is not None and window.ndim == 1 else set()
    if len(lengths) != 1:
        raise ValueError(
            f"the window and frame_length say {sorted(lengths) or 'nothing'}, "
            "expected one length for both"
        )
    return lengths.pop()


_WORDS_FOR_EACH, _WORDS_OF_A_ROW = 8, 32
"""Memory of a transform in words of four bytes: for each value, itself and its spectrum as two f64
each; for each element of a row, the buffers of a transform of an awkward length.
"""


def dft(
    data: Array,
    length: Array | None = None,
    axes: Array | None = None,
    /,
    *,
    axis: int = -2,
    inverse: int = 0,
    onesided: int = 0,
) -> Array:
    """Return the spectrum along one axis of ``[..., 1]`` or ``[..., 2]`` (real and imaginary part),
    or the signal of a spectrum.
    """
    if data.ndim < 2 or data.shape[-1] not in (1, 2):
        raise ValueError(
            f"the signal has shape {list(data.shape)}, "
            "expected a last axis of length 1, or 2 for complex numbers"
        )
    along = int(axis if axes is None else np.ravel(axes)[0])
    if not -data.ndim <= along < data.ndim - 1 or along == -1:
        raise ValueError(
            f"the axis is {along}, expected one of the first {data.ndim - 1} of {data.ndim}"
        )
    along %= data.ndim
    whole = 2 * (data.shape[along] - 1) if inverse and onesided else data.shape[along]
    size = whole if length is None else int(np.ravel(length)[0])
    if size < 1:
        raise ValueError(f"the length of the transform is {size}, expected at least 1")
    others = math.prod(data.shape[:along]) * math.prod(data.shape[along + 1 : -1])
    check_elements(size * (others * _WORDS_FOR_EACH + _WORDS_OF_A_ROW), "the transform's memory")
    values = computable(data).astype(np.float64)
    if onesided and not inverse and data.shape[-1] == 2:
        raise ValueError(
            "the signal is complex, which has no one-sided spectrum: expected onesided 0"
        )
    if onesided and not inverse:
        spectrum = np.fft.rfft(values[..., 0], size, along)
    else:
        numbers = values[..., 0] + 1j * values[..., 1] if data.shape[-1] == 2 else values[..., 0]
        if onesided:
            return np.fft.irfft(numbers, size, along)[..., None].astype(data.dtype)
        spectrum = (np.fft.ifft if inverse else np.fft.fft)(numbers, size, along)
    pairs = np.ascontiguousarray(spectrum).view(np.float64)
    return pairs.reshape(*spectrum.shape, 2).astype(data.dtype)


def _window(*weights: float) -> Kernel:
    """Return a kernel of a sum of cosines over a length. The weights are those of 1, cos(x), cos(2
    x).
    """

    def kernel(
        length: Array, /, *, output_datatype: int = TensorProto.FLOAT, periodic: int = 1
    ) -> Array:
        dtype = helper.tensor_dtype_to_np_dtype(output_datatype)
        if length.size != 1 or length.reshape(-1)[0] < 0:
            raise ValueError(
                f"the length is {np.ravel(length)[:8].tolist()}, expected one number of at least 0"
            )
        count = int(length.reshape(-1)[0])
        check_elements(count, "the window")
        whole = max(count if periodic else count - 1, 1)
        angles = np.arange(count) * (2 * math.pi / whole)
        return np.asarray(
            sum(weight * np.cos(number * angles) for number, weight in enumerate(weights))
        ).astype(dtype)

    return kernel


blackman_window = _window(0.42, -0.5, 0.08)
hamming_window = _window(25 / 46, -21 / 46)
hann_window = _window(0.5, -0.5)
