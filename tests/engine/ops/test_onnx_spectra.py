"""STFT is as ONNX Runtime has it, for signals with and without a last axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ValueInfoProto, helper, numpy_helper

import engine


def _model(signal: np.ndarray, step: int, window: np.ndarray | None, length: int | None, onesided: int) -> bytes:
    held = {"step": np.array(step), "window": window, "length": None if length is None else np.array(length)}
    constants = [numpy_helper.from_array(value, name) for name, value in held.items() if value is not None]
    names = ["x", *(name if value is not None else "" for name, value in held.items())]
    kind = helper.np_dtype_to_tensor_dtype(signal.dtype)
    asked = helper.make_tensor_value_info("x", kind, [None] * signal.ndim)
    nodes = [helper.make_node("STFT", names, ["y"], onesided=onesided)]
    graph = helper.make_graph(nodes, "spectra", [asked], [ValueInfoProto(name="y")], constants)
    data: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    return data


def _ours(data: bytes, signal: np.ndarray) -> Any:
    return np.asarray(engine.run(engine.read_model(data), [signal]).outputs[0])


CASES: dict[str, tuple[tuple[int, ...], int, int | None, int | None, int]] = {
    # shape of the signal, step, length of the window and of a frame, onesided
    "as Kokoro has it": ((1, 100), 5, 20, 20, 1),
    "a last axis of 1": ((2, 50, 1), 7, 9, None, 1),
    "all frequencies": ((2, 50), 7, 8, None, 0),
    "without a window": ((1, 33), 4, None, 16, 1),
    "complex": ((2, 40, 2), 3, 10, 10, 0),
    "one frame": ((1, 16), 1, 16, None, 1),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "step", "window", "length", "onesided"), CASES.values(), ids=CASES.keys())
def test_as_onnx_runtime(
    shape: tuple[int, ...], step: int, window: int | None, length: int | None, onesided: int, dtype: type[np.floating[Any]]
) -> None:
    """Within the roundings of f32, in which ONNX Runtime turns its factors even for f64."""
    random = np.random.default_rng(0)
    signal = random.normal(size=shape).astype(dtype)
    weights = None if window is None else random.random(window).astype(dtype)
    data = _model(signal, step, weights, length, onesided)
    made, theirs = _ours(data, signal), onnxruntime.InferenceSession(data).run(None, {"x": signal})[0]
    assert made.dtype == theirs.dtype
    assert made.shape == theirs.shape
    np.testing.assert_allclose(made, theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("shape", "step", "window", "length", "onesided", "message"),
    [
        ((1, 10), 0, 4, None, 1, "frames of 4 every 0 of a signal of 10"),
        ((1, 10), 1, None, 12, 1, "frames of 12 every 1 of a signal of 10"),
        ((1, 10), 1, 4, 5, 1, r"the window and frame_length say \[4, 5\]"),
        ((1, 10), 1, None, None, 1, "say nothing"),
        ((1, 10, 2), 1, 4, None, 1, "no one-sided spectrum"),
        ((1, 10, 3), 1, 4, None, 1, r"the signal has shape \[1, 10, 3\]"),
    ],
)
def test_what_is_refused_says_why(
    shape: tuple[int, ...], step: int, window: int | None, length: int | None, onesided: int, message: str
) -> None:
    signal = np.ones(shape, np.float32)
    data = _model(signal, step, None if window is None else np.ones(window, np.float32), length, onesided)
    with pytest.raises(engine.RunStopped, match=message):
        _ours(data, signal)
