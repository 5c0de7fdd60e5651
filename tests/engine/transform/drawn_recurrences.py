"""Drawn recurrent layers of ONNX and OpenVINO: directions, lengths, layouts, empty ones too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.builder import ops
from tests.engine.ops.microsoft_nodes import Case

DIRECTIONS = ("forward", "reverse", "bidirectional")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
ACTIVATIONS = (
    "Affine",
    "Elu",
    "HardSigmoid",
    "LeakyRelu",
    "Relu",
    "ScaledTanh",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Tanh",
    "ThresholdedRelu",
)


@dataclass(frozen=True, slots=True)
class DrawnModel:
    """A model of one recurrent layer, with inputs."""

    model: loopscope.Model
    feeds: Mapping[str, np.ndarray]
    tolerance: float
    """Relative and absolute. Kernels multiply the inputs of all steps at once and the loop those of
    one step, so sums of f32 are in another order. Narrow floats are rounded once in both.
    """


_SIZES = st.integers(0, 3)


def _reals(seed: np.random.Generator, dtype: Any, *shape: int) -> np.ndarray:
    return np.asarray(seed.standard_normal(shape)).astype(dtype)


def onnx_case(draw: st.DrawFn) -> Case:
    """Return a drawn LSTM, GRU or RNN of ONNX."""
    kind, direction = draw(st.sampled_from(sorted(GATES))), draw(st.sampled_from(DIRECTIONS))
    steps, batch, width, size = draw(st.integers(0, 5)), draw(_SIZES), draw(st.integers(1, 3)), 2
    layout = draw(st.integers(0, 1))
    dtype = draw(st.sampled_from((np.float32, np.float64, np.float16)))
    seed = np.random.default_rng(draw(st.integers(0, 99)))
    directions, gates = 1 + (direction == "bidirectional"), GATES[kind]
    states = (batch, directions, size) if layout else (directions, batch, size)
    optional = [
        _reals(seed, dtype, directions, 2 * gates * size),
        np.array(draw(st.lists(st.integers(0, steps), min_size=batch, max_size=batch)), np.int32),
        _reals(seed, dtype, *states),
    ]
    if kind == "LSTM":
        optional += [_reals(seed, dtype, *states), _reals(seed, dtype, directions, 3 * size)]
    inputs = [
        _reals(seed, dtype, *((batch, steps, width) if layout else (steps, batch, width))),
        _reals(seed, dtype, directions, gates * size, width),
        _reals(seed, dtype, directions, gates * size, size),
        *(value if draw(st.booleans()) else None for value in optional),
    ]
    while inputs[-1] is None:
        inputs.pop()
    attributes: dict[str, Any] = {
        "direction": direction,
        "hidden_size": size,
        **({"layout": 1} if layout else {}),
        **({"clip": 0.5} if draw(st.booleans()) else {}),
        **({"linear_before_reset": 1} if kind == "GRU" and draw(st.booleans()) else {}),
        **({"input_forget": 1} if kind == "LSTM" and draw(st.booleans()) else {}),
    }
    if draw(st.booleans()):
        count = FUNCTIONS[kind] * directions
        attributes["activations"] = draw(
            st.lists(st.sampled_from(ACTIVATIONS), min_size=count, max_size=count)
        )
    outputs = (True,) * (3 if kind == "LSTM" else 2)
    return Case(kind, inputs, attributes, outputs, domain="", opset=14)


@st.composite
def onnx_layers(draw: st.DrawFn) -> DrawnModel:
    """Draw a layer of ONNX."""
    case = onnx_case(draw)
    tolerance = 2e-3 if case.feeds["x0"].dtype == np.float16 else 2e-5
    return DrawnModel(loopscope.read_model(case.model), case.feeds, tolerance)


@st.composite
def openvino_layers(draw: st.DrawFn) -> DrawnModel:
    """Draw an LSTMSequence, GRUSequence or RNNSequence."""
    kind, direction = draw(st.sampled_from(sorted(GATES))), draw(st.sampled_from(DIRECTIONS))
    steps, batch, width, size = draw(st.integers(0, 5)), draw(_SIZES), draw(st.integers(1, 3)), 2
    seed = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from((np.float32, np.float16)))
    directions, gates = 1 + (direction == "bidirectional"), GATES[kind]
    resets_last = kind == "GRU" and draw(st.booleans())
    is_known = draw(st.booleans())
    graph = builder.Graph("drawn")
    data = graph.parameter(
        "data", dtype, [batch if is_known else None, steps if is_known else None, width]
    )
    lengths = graph.parameter("lengths", "i64", [batch])
    result = getattr(ops, f"{kind.lower()}_sequence")(
        data,
        *(_reals(seed, dtype, batch, directions, size) for _ in range(1 + (kind == "LSTM"))),
        lengths,
        _reals(seed, dtype, directions, gates * size, width),
        _reals(seed, dtype, directions, gates * size, size),
        _reals(seed, dtype, directions, (4 if resets_last else gates) * size),
        hidden_size=size,
        direction=direction,
        clip=draw(st.sampled_from((float("inf"), 0.5))),
        **({"linear_before_reset": True} if resets_last else {}),
    )
    feeds = {
        "data": _reals(seed, dtype, batch, steps, width),
        "lengths": np.array(
            draw(st.lists(st.integers(0, steps), min_size=batch, max_size=batch)), np.int64
        ),
    }
    return DrawnModel(graph.model(list(result)), feeds, 2e-3 if dtype == np.float16 else 2e-5)


@st.composite
def attending_layers(draw: st.DrawFn, whole: bool = False) -> DrawnModel:
    """Draw an AUGRUSequence of OpenVINO.

    ``whole``: only f32 and sequences that have all steps, which OpenVINO's processor plugin runs.
    """
    steps, batch, width, size = draw(st.integers(0, 5)), draw(_SIZES), draw(st.integers(1, 3)), 2
    seed = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = np.float32 if whole else draw(st.sampled_from((np.float32, np.float16)))
    lengths = draw(st.lists(st.integers(0, steps), min_size=batch, max_size=batch))
    graph = builder.Graph("drawn")
    known = [batch, steps] if whole else [None, None]
    data = graph.parameter("data", dtype, [*known, width])
    attention = graph.parameter("attention", dtype, [*known, 1])
    result = ops.augru_sequence(
        data,
        _reals(seed, dtype, batch, 1, size),
        np.array([steps] * batch if whole else lengths, np.int64),
        _reals(seed, dtype, 1, 3 * size, width),
        _reals(seed, dtype, 1, 3 * size, size),
        _reals(seed, dtype, 1, 3 * size),
        attention,
        hidden_size=size,
    )
    feeds = {
        "data": _reals(seed, dtype, batch, steps, width),
        "attention": seed.random((batch, steps, 1)).astype(dtype),
    }
    return DrawnModel(graph.model(list(result)), feeds, 2e-3 if dtype == np.float16 else 2e-5)


@st.composite
def gated_delta_nets(draw: st.DrawFn) -> DrawnModel:
    """Draw a GatedDeltaNet of OpenVINO."""
    batch, steps, key_heads = draw(_SIZES), draw(st.integers(0, 5)), draw(st.integers(1, 2))
    heads = key_heads * draw(st.integers(1, 2))
    key_size, value_size = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    seed = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from((np.float32, np.float16)))
    shapes = {
        "query": (batch, steps, key_heads, key_size),
        "key": (batch, steps, key_heads, key_size),
        "value": (batch, steps, heads, value_size),
        "state": (batch, heads, key_size, value_size),
        "gate": (batch, steps, heads),
        "beta": (batch, steps, heads),
    }
    feeds = {name: _reals(seed, dtype, *shape) for name, shape in shapes.items()}
    feeds["gate"] = -np.abs(feeds["gate"])
    feeds["beta"] = seed.random(shapes["beta"]).astype(dtype)
    graph = builder.Graph("drawn")
    parameters = [
        graph.parameter(
            name, dtype, [None, *(shape[1:] if name == "state" else (None, *shape[2:]))]
        )
        for name, shape in shapes.items()
    ]
    epsilon = draw(st.sampled_from((1e-6, 1e-2)))
    result = ops.gated_delta_net(
        *parameters,
        fuse_qk_l2norm=draw(st.booleans()),
        q_l2_norm_eps=epsilon,
        k_l2_norm_eps=epsilon,
    )
    return DrawnModel(graph.model(list(result)), feeds, 1e-2 if dtype == np.float16 else 2e-5)
