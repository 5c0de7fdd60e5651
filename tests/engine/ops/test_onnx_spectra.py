"""STFT is as ONNX Runtime has it, DFT as it is defined, and no length makes it take more memory
than a run may have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ValueInfoProto, helper, numpy_helper

import loopscope


def _model(
    signal: np.ndarray, step: int, window: np.ndarray | None, length: int | None, onesided: int
) -> bytes:
    held = {
        "step": np.array(step),
        "window": window,
        "length": None if length is None else np.array(length),
    }
    constants = [
        numpy_helper.from_array(value, name) for name, value in held.items() if value is not None
    ]
    names = ["x", *(name if value is not None else "" for name, value in held.items())]
    kind = helper.np_dtype_to_tensor_dtype(signal.dtype)
    asked = helper.make_tensor_value_info("x", kind, [None] * signal.ndim)
    nodes = [helper.make_node("STFT", names, ["y"], onesided=onesided)]
    graph = helper.make_graph(nodes, "spectra", [asked], [ValueInfoProto(name="y")], constants)
    data: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    return data


def _ours(data: bytes, signal: np.ndarray) -> Any:
    return np.asarray(loopscope.run(loopscope.read_model(data), [signal]).outputs[0])


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
@pytest.mark.parametrize(
    ("shape", "step", "window", "length", "onesided"), CASES.values(), ids=CASES.keys()
)
def test_as_onnx_runtime(
    shape: tuple[int, ...],
    step: int,
    window: int | None,
    length: int | None,
    onesided: int,
    dtype: type[np.floating[Any]],
) -> None:
    """Within the roundings of f32, in which ONNX Runtime turns its factors even for f64."""
    random = np.random.default_rng(0)
    signal = random.normal(size=shape).astype(dtype)
    weights = None if window is None else random.random(window).astype(dtype)
    data = _model(signal, step, weights, length, onesided)
    made, theirs = (
        _ours(data, signal),
        onnxruntime.InferenceSession(data).run(None, {"x": signal})[0],
    )
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
    shape: tuple[int, ...],
    step: int,
    window: int | None,
    length: int | None,
    onesided: int,
    message: str,
) -> None:
    signal = np.ones(shape, np.float32)
    data = _model(
        signal, step, None if window is None else np.ones(window, np.float32), length, onesided
    )
    with pytest.raises(loopscope.RunStopped, match=message):
        _ours(data, signal)


def _transform(
    opset: int, shape: tuple[int, ...], length: int | None, axis: int | None, **attributes: Any
) -> bytes:
    """DFT, whose axis is an attribute before opset 20 and an input from then on."""
    held = {"length": length, "axis": axis} if opset >= 20 else {"length": length}
    constants = [
        numpy_helper.from_array(np.array(value), name)
        for name, value in held.items()
        if value is not None
    ]
    names = ["x", *(name if value is not None else "" for name, value in held.items())]
    own: dict[str, Any] = {"axis": axis} if opset < 20 and axis is not None else {}
    asked = helper.make_tensor_value_info("x", 1, [None] * len(shape))
    graph = helper.make_graph(
        [helper.make_node("DFT", names, ["y"], **own, **attributes)],
        "spectra",
        [asked],
        [ValueInfoProto(name="y")],
        constants,
    )
    data: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9
    ).SerializeToString()
    return data


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize(
    ("shape", "length", "axis", "attributes"),
    [
        ((2, 16, 1), None, None, {}),
        ((2, 15, 2), None, 1, {}),
        ((2, 12, 1), 20, 1, {}),
        ((2, 12, 1), 7, -2, {"onesided": 1}),
        ((4, 6, 5, 1), None, 1, {"onesided": 1}),
        ((4, 6, 5, 2), None, 2, {"inverse": 1}),
        ((3, 8, 2), 6, 0, {"inverse": 1}),
    ],
)
def test_dft_as_defined(
    opset: int,
    shape: tuple[int, ...],
    length: int | None,
    axis: int | None,
    attributes: dict[str, int],
) -> None:
    """By the sums themselves: ONNX Runtime crashes where a length is larger than the signal."""
    signal = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    made = _ours(_transform(opset, shape, length, axis, **attributes), signal)
    values = np.moveaxis(
        signal[..., 0] + (1j * signal[..., 1] if shape[-1] == 2 else 0),
        (1 if axis is None else axis) % len(shape),
        -1,
    )
    size = length or values.shape[-1]
    values = np.concatenate([values, np.zeros((*values.shape[:-1], size))], -1)[..., :size]
    turns = (
        np.outer(np.arange(size), np.arange(size))
        / size
        * (2j if attributes.get("inverse") else -2j)
        * np.pi
    )
    sums = values @ np.exp(turns) / (size if attributes.get("inverse") else 1)
    sums = np.moveaxis(
        sums[..., : size // 2 + 1] if attributes.get("onesided") else sums,
        -1,
        (1 if axis is None else axis) % len(shape),
    )
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, np.stack([sums.real, sums.imag], -1), rtol=1e-5, atol=1e-5)


def test_a_spectrum_of_a_real_signal_gives_it_back() -> None:
    """In one half and back to a real signal, which ONNX Runtime does not have."""
    signal = np.random.default_rng(2).normal(size=(2, 9, 1)).astype(np.float32)
    half = _ours(_transform(20, signal.shape, None, 1, onesided=1), signal)
    assert half.shape == (2, 5, 2)
    np.testing.assert_allclose(
        _ours(_transform(20, half.shape, 9, 1, onesided=1, inverse=1), half),
        signal,
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("shape", "length", "axis", "message"),
    [
        (
            (1, 1, 1),
            16_843_009,
            1,
            "the transform's memory would have 673720360 elements, more than the limit of 16777216",
        ),
        ((1, 1, 1), 2**60, 1, "more than the limit"),
        ((1, 4, 1), 0, 1, "the length of the transform is 0"),
        ((1, 4, 3), None, 1, r"the signal has shape \[1, 4, 3\]"),
        ((1, 4, 1), None, 2, "the axis is 2, expected one of the first 2 of 3"),
    ],
)
def test_what_dft_refuses_says_why(
    shape: tuple[int, ...], length: int | None, axis: int, message: str
) -> None:
    """The first was found by damage: it took 2.3 GB within a limit of 64 MB."""
    model = loopscope.read_model(_transform(20, shape, length, axis))
    with pytest.raises(loopscope.RunStopped, match=message):
        loopscope.run(
            model, [np.ones(shape, np.float32)], limits=loopscope.Limits(memory_bytes=2**26)
        )
