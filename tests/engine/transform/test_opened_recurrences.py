"""Operators that are opened as loops compute what their kernels compute, on every variant."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.transform.recurrences import ROWS
from tests.draws import draws
from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.recurrence_nodes import (
    ATTENTION_LSTMS,
    CAUSAL_CONVOLUTIONS,
    GATED_DELTA_NETS,
    LINEAR_ATTENTIONS,
    RAGGED_CONVOLUTIONS,
)
from tests.engine.ops.test_microsoft_quantized_products import LSTMS
from tests.engine.transform.drawn_recurrences import (
    DrawnModel,
    attending_layers,
    gated_delta_nets,
    onnx_case,
    onnx_layers,
    openvino_layers,
)

SUM_ORDER = 2e-5
"""Tolerance for sums of f32 in another order: the kernels multiply larger matrices."""
_NOT_OPENED = ("two axes of channels", "with updates")


def check_agreement(
    model: loopscope.Model, feeds: Mapping[str, Any], tolerance: float = SUM_ORDER
) -> loopscope.Model:
    """Assert that all outputs agree with the operator opened; return the opened model."""
    opened = loopscope.open_as_loop(model, "all")
    assert opened.notes == model.notes
    assert any(node.is_loop for node in opened.graph.nodes)
    closed_outputs = loopscope.run(model, feeds).outputs
    for own, expected in zip(loopscope.run(opened, feeds).outputs, closed_outputs, strict=True):
        assert (own.dtype, own.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(
            own.astype(np.float64),
            expected.astype(np.float64),
            rtol=tolerance,
            atol=tolerance,
        )
    return opened


@settings(max_examples=draws(120))
@given(onnx_layers())
def test_layers_of_onnx(drawn: DrawnModel) -> None:
    check_agreement(drawn.model, drawn.feeds, drawn.tolerance)


@settings(max_examples=draws(120))
@given(openvino_layers())
def test_layers_of_openvino(drawn: DrawnModel) -> None:
    check_agreement(drawn.model, drawn.feeds, drawn.tolerance)


@settings(max_examples=60)
@given(st.one_of(attending_layers(), gated_delta_nets()))
def test_operators_of_compiled_models(drawn: DrawnModel) -> None:
    check_agreement(drawn.model, drawn.feeds, drawn.tolerance)


@pytest.mark.oracle
@settings(max_examples=12)
@given(st.one_of(attending_layers(whole=True), gated_delta_nets()))
def test_operators_of_compiled_models_in_openvino(drawn: DrawnModel) -> None:
    """OpenVINO reads these operators when its processor plugin is loaded as an extension."""
    assume(all(array.size for array in drawn.feeds.values()))
    core = ov.Core()
    core.add_extension(str(Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        loopscope.write_model(drawn.model, path)
        compiled = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        peers = list(compiled(drawn.feeds).values())
    for model in (drawn.model, loopscope.open_as_loop(drawn.model)):
        outputs = loopscope.run(model, drawn.feeds).outputs
        for own, peer in zip(outputs, peers, strict=True):
            tolerance = 5 * drawn.tolerance
            np.testing.assert_allclose(
                own.astype(np.float64), peer.astype(np.float64), rtol=tolerance, atol=tolerance
            )


MICROSOFT = {
    f"{case.type}, {name}": case
    for table in (
        LINEAR_ATTENTIONS,
        CAUSAL_CONVOLUTIONS,
        RAGGED_CONVOLUTIONS,
        GATED_DELTA_NETS,
        ATTENTION_LSTMS,
        LSTMS,
    )
    for name, case in table.items()
    if name not in _NOT_OPENED
}


@pytest.mark.parametrize("case", MICROSOFT.values(), ids=MICROSOFT.keys())
def test_operators_of_com_microsoft(case: Case) -> None:
    check_agreement(loopscope.read_model(case.model), case.feeds)


@settings(max_examples=draws(40))
@given(
    st.sampled_from((0, 1, -1)),
    st.booleans(),
    st.booleans(),
    st.sampled_from((np.float32, np.int64, np.float16)),
    st.tuples(st.integers(0, 3), st.integers(0, 4)),
)
def test_cumulative_sums(
    axis: int, exclusive: bool, reverse: bool, dtype: Any, shape: tuple[int, int]
) -> None:
    graph = builder.Graph("sum")
    data = graph.parameter("data", dtype, [None, shape[1]])
    model = graph.model(ops.cum_sum(data, axis, exclusive=exclusive, reverse=reverse))
    values = np.random.default_rng(3).normal(size=shape) * 4
    tolerance = 2e-3 if dtype == np.float16 else 1e-6
    check_agreement(model, {"data": values.astype(dtype)}, tolerance)


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("blank", [None, 1])
def test_greedy_decoders(merges: bool, blank: int | None) -> None:
    scores = np.random.default_rng(4).normal(size=(3, 9, 3)).astype(np.float32)
    graph = builder.Graph("decoder")
    data, lengths = graph.parameter("data", "f32", [3, None, 3]), graph.parameter("l", "i32", [3])
    blanks = [] if blank is None else [np.array([blank], np.int32)]
    decoded = ops.ctc_greedy_decoder_seq_len(data, lengths, *blanks, merge_repeated=merges)
    feeds = {"data": scores, "l": np.array([9, 5, 0], np.int32)}
    check_agreement(graph.model(list(decoded)), feeds)
    graph = builder.Graph("masked decoder")
    data, mask = graph.parameter("data", "f32", [9, 3, 3]), graph.parameter("mask", "f32", [9, 3])
    model = graph.model(ops.ctc_greedy_decoder(data, mask, ctc_merge_repeated=merges))
    masks = np.ones((9, 3), np.float32)
    masks[5:, 1] = masks[0, 2] = 0
    check_agreement(model, {"data": scores.swapaxes(0, 1), "mask": masks})


RUNTIME_SUPPORTS = ("Relu", "Sigmoid", "Tanh")


@pytest.mark.oracle
@settings(max_examples=draws(60))
@given(st.data())
def test_opened_layers_agree_with_onnx_runtime(data: st.DataObject) -> None:
    """ONNX Runtime computes f32 with time first, and sequences with at least one step."""
    case = data.draw(st.composite(onnx_case)())
    values = case.feeds["x0"]
    lengths = case.inputs[4] if len(case.inputs) > 4 else None
    functions = case.attributes.get("activations", ())
    if (
        case.attributes.get("layout")
        or values.dtype != np.float32
        or 0 in values.shape
        or (lengths is not None and not lengths.all())
        or not set(functions) <= set(RUNTIME_SUPPORTS)
        or case.attributes.get("input_forget")
    ):
        return
    opened = loopscope.open_as_loop(loopscope.read_model(case.model), "all")
    for own, expected in zip(loopscope.run(opened, case.feeds).outputs, case.there(), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)


def test_every_row_names_nodes_of_its_body() -> None:
    """States are Parameters of the body, and gates are nodes in it."""
    seen = set()
    for case in (*MICROSOFT.values(), *_layers_of_each_kind()):
        model = loopscope.read_model(case.model) if isinstance(case, Case) else case
        opened = loopscope.open_as_loop(model, "all")
        loop = next(node for node in opened.graph.nodes if node.is_loop)
        operator = next(node for node in model.graph.nodes if node.name == loop.name)
        row = next(row for row in ROWS if row.type == operator.type)
        names = {node.name: node.type for node in loop.bodies[0].graph.nodes}
        assert all(names.get(state) == "Parameter" for state in row.states), row.type
        if row.type not in ("LinearAttention", "GatedDeltaNet"):  # gates depend on the rule
            assert set(row.gates) <= names.keys(), row.type
        seen.add(row.type)
    assert seen >= {row.type for row in ROWS} - {"CumSum", "GatedDeltaNetStateReplay"} - {
        "AUGRUSequence",
        "CTCGreedyDecoder",
        "CTCGreedyDecoderSeqLen",
    }


def _layers_of_each_kind() -> list[Case | loopscope.Model]:
    layers: list[Case | loopscope.Model] = []
    for kind, gates in {"LSTM": 4, "GRU": 3, "RNN": 1}.items():
        weights = [np.ones(shape, np.float32) for shape in ((1, gates * 2, 3), (1, gates * 2, 2))]
        layers.append(
            Case(
                kind,
                [np.ones((2, 1, 3), np.float32), *weights],
                {"hidden_size": 2},
                (True,),
                domain="",
                opset=14,
            )
        )
        graph = builder.Graph(kind)
        data = graph.parameter("data", "f32", [1, 2, 3])
        states = [np.ones((1, 1, 2), np.float32)] * (1 + (kind == "LSTM"))
        bias = np.ones((1, gates * 2), np.float32)
        sequence = getattr(ops, f"{kind.lower()}_sequence")
        result = sequence(
            data, *states, np.array([2]), *weights, bias, hidden_size=2, direction="forward"
        )
        layers.append(graph.model(list(result)))
    return layers
