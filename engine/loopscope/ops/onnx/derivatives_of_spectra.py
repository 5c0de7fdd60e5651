"""Derivatives of ONNX's DFT and STFT, by those of OpenVINO's transforms, which are the same
functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from loopscope.ops.derivative import Reverse, Value
from loopscope.ops.gradients.element_places import whole_number
from loopscope.ops.gradients.fourier import frames_back
from loopscope.ops.onnx.derivatives import openvino_adjoints

_LAST = np.array([-1])


def dft(node: Reverse, /) -> Mapping[int, Value | None]:
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


def stft(node: Reverse, /) -> Mapping[int, Value | None]:
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
