"""Derivatives of ONNX's DFT and STFT, by those of the transforms of OpenVINO that compute the
same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from loopscope.ops.derivative import Reverse, Value
from loopscope.ops.gradients.element_places import whole_number
from loopscope.ops.gradients.fourier import frames_back
from loopscope.ops.onnx.openvino_rules import through

_LAST = np.array([-1])


def dft(at: Reverse, /) -> Mapping[int, Value | None]:
    """Along one axis; the data holds real numbers (a last axis of 1) or complex ones (of 2)."""
    data, length, axis = (at.input_at(place) for place in range(3))
    assert data is not None
    rank, pairs = data.rank, _pairs(data)
    if rank is None:
        raise ValueError("the rank of the signal is not known: give the model's inputs their ranks")
    attribute = at.attributes.get("axis")
    along = (
        whole_number(axis, "axis")
        if axis is not None
        else -2
        if attribute is None
        else int(attribute)
    )
    rest = (
        at.constant(np.array([along % rank])),
        *(() if length is None else (at.reshaped_to(length, (1,)),)),
    )
    inverse, onesided = bool(at.attributes["inverse"]), bool(at.attributes["onesided"])
    if onesided and not inverse:
        return {
            0: at.ops.unsqueeze(
                _given(through("RDFT", at, (at.ops.squeeze(data, _LAST), *rest), {})[0]), _LAST
            )
        }
    numbers = data if pairs else _with_zeros(at, data, rank)
    if onesided:
        found = _given(
            through(
                "IRDFT",
                replace(at, adjoints=(at.ops.squeeze(at.adjoint, _LAST),)),
                (numbers, *rest),
                {},
            )[0]
        )
    else:
        found = _given(through("IDFT" if inverse else "DFT", at, (numbers, *rest), {})[0])
    return {0: _real(at, found, pairs)}


def stft(at: Reverse, /) -> Mapping[int, Value | None]:
    """Of real signals."""
    signal, step, window, length = (at.input_at(place) for place in range(4))
    assert signal is not None
    assert step is not None
    if signal.rank not in (2, 3) or (signal.rank == 3 and _pairs(signal)):
        raise ValueError(
            f"the signal has shape {signal.shape}: only real signals [batch, samples] or [batch, samples, 1] go back here"
        )
    if window is not None and window.shape.is_static:
        size = window.shape.lengths[0]
    elif length is not None:
        size = whole_number(length, "frame_length")
    else:
        raise ValueError(
            "the length of the window is not known: make it a constant, or give frame_length"
        )
    flat = at.ops.squeeze(signal, _LAST) if signal.rank == 3 else signal
    weights = at.filled_to(1, signal, (size,)) if window is None else window
    missing = size - size // 2 - 1 if at.attributes["onesided"] else 0
    if not at.adjoint.shape.at(-2).contains(size - missing):
        # ONNX's shape inference takes an attribute onesided that is left out for 0.
        raise ValueError(
            f"its shape is inferred as {at.adjoint.shape}, for {size - missing} frequencies: write its attribute onesided"
        )
    spectra = at.ops.pad(
        at.adjoint, np.zeros(4, np.int64), np.array([0, 0, missing, 0]), pad_mode="constant"
    )
    of_signal, of_window = frames_back(
        at, flat, weights, spectra, size, whole_number(step, "frame_step")
    )
    return {
        0: at.ops.unsqueeze(of_signal, _LAST) if signal.rank == 3 else of_signal,
        2: None if window is None else of_window,
    }


def _given(found: Value | None) -> Value:
    assert found is not None
    return found


def _pairs(data: Value) -> bool:
    """Whether numbers are complex; ``ValueError`` where that is not known before the model runs."""
    if data.rank in (None, 0) or not data.shape.at(-1).is_static:
        raise ValueError(
            f"the signal has shape {data.shape}, and whether it is complex, its last length, is not known"
        )
    return data.shape.at(-1).length == 2


def _with_zeros(at: Reverse, data: Value, rank: int) -> Value:
    """Real numbers as complex ones."""
    return at.ops.pad(
        data, np.zeros(rank, np.int64), np.array([*[0] * (rank - 1), 1]), pad_mode="constant"
    )


def _real(at: Reverse, found: Value, pairs: bool) -> Value:
    """Of the adjoint of real numbers the imaginary part is that of zeros."""
    return found if pairs else at.ops.gather(found, np.array([0]), np.array(-1), batch_dims=0)
