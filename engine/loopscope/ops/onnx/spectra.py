"""ONNX's STFT and DFT with their derivatives, and the windows for them.

The derivatives are those of OpenVINO's transforms, which are the same functions. The onnx
package's STFT takes no signal without a last axis of length 1, which exporters write and ONNX
Runtime takes; its DFT takes as much memory as the length says that a model asks for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper

from loopscope.ops.declare import Array, Kernel
from loopscope.ops.derivative import Reverse, Value
from loopscope.ops.gradients.element_places import whole_number
from loopscope.ops.gradients.fourier import frames_back
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.onnx.derivatives import openvino_adjoints


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


_LAST = np.array([-1])


def dft_gradient(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoint along one axis. The data holds real numbers (last axis of 1) or complex
    ones (of 2).
    """
    data, length, axis = (node.input_at(place) for place in range(3))
    assert data is not None
    rank, pairs = data.rank, _is_complex(data)
    if rank is None:
        raise ValueError("the rank of the signal is not known: give the model's inputs their ranks")
    attribute = node.attributes.get("axis")
    along = (
        whole_number(axis, "axis")
        if axis is not None
        else -2
        if attribute is None
        else int(attribute)
    )
    rest = (
        node.constant(np.array([along % rank])),
        *(() if length is None else (node.reshaped_to(length, (1,)),)),
    )
    inverse, onesided = bool(node.attributes["inverse"]), bool(node.attributes["onesided"])
    if onesided and not inverse:
        return {
            0: node.ops.unsqueeze(
                _present(
                    openvino_adjoints("RDFT", node, (node.ops.squeeze(data, _LAST), *rest), {})[0]
                ),
                _LAST,
            )
        }
    numbers = data if pairs else _with_zeros(node, data, rank)
    if onesided:
        adjoint = _present(
            openvino_adjoints(
                "IRDFT",
                replace(node, adjoints=(node.ops.squeeze(node.adjoint, _LAST),)),
                (numbers, *rest),
                {},
            )[0]
        )
    else:
        adjoint = _present(
            openvino_adjoints("IDFT" if inverse else "DFT", node, (numbers, *rest), {})[0]
        )
    return {0: _real_part(node, adjoint, pairs)}


def stft_gradient(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoint for real signals."""
    signal, step, window, length = (node.input_at(place) for place in range(4))
    assert signal is not None
    assert step is not None
    if signal.rank not in (2, 3) or (signal.rank == 3 and _is_complex(signal)):
        raise ValueError(
            f"the signal has shape {signal.shape}: "
            "only real signals [batch, samples] or [batch, samples, 1] have a derivative"
        )
    if window is not None and window.shape.is_static:
        size = window.shape.lengths[0]
    elif length is not None:
        size = whole_number(length, "frame_length")
    else:
        raise ValueError(
            "the length of the window is not known: make it a constant, or give frame_length"
        )
    flat = node.ops.squeeze(signal, _LAST) if signal.rank == 3 else signal
    weights = node.filled_to(1, signal, (size,)) if window is None else window
    missing = size - size // 2 - 1 if node.attributes["onesided"] else 0
    if not node.adjoint.shape.at(-2).contains(size - missing):
        # ONNX's shape inference uses 0 for the attribute onesided if it is not set.
        raise ValueError(
            f"its shape is inferred as {node.adjoint.shape}, for {size - missing} frequencies: "
            "write its attribute onesided"
        )
    spectra = node.ops.pad(
        node.adjoint, np.zeros(4, np.int64), np.array([0, 0, missing, 0]), pad_mode="constant"
    )
    of_signal, of_window = frames_back(
        node, flat, weights, spectra, size, whole_number(step, "frame_step")
    )
    return {
        0: node.ops.unsqueeze(of_signal, _LAST) if signal.rank == 3 else of_signal,
        2: None if window is None else of_window,
    }


def _present(value: Value | None) -> Value:
    assert value is not None
    return value


def _is_complex(data: Value) -> bool:
    """Return True for complex numbers. Raise ``ValueError`` if that is not known before the model
    runs.
    """
    if data.rank in (None, 0) or not data.shape.at(-1).is_static:
        raise ValueError(
            f"the signal has shape {data.shape}, and whether it is complex, "
            "its last length, is not known"
        )
    return data.shape.at(-1).length == 2


def _with_zeros(node: Reverse, data: Value, rank: int) -> Value:
    """Return real numbers as complex numbers, whose imaginary part is 0."""
    return node.ops.pad(
        data, np.zeros(rank, np.int64), np.array([*[0] * (rank - 1), 1]), pad_mode="constant"
    )


def _real_part(node: Reverse, adjoint: Value, pairs: bool) -> Value:
    """Return the real part of an adjoint if the numbers are real."""
    return adjoint if pairs else node.ops.gather(adjoint, np.array([0]), np.array(-1), batch_dims=0)
