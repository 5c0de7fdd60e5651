"""OpenVINO models are written as ONNX: ONNX Runtime computes what Loopscope computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import loopscope
from loopscope import builder
from loopscope.errors import WriteError
from loopscope.ir.address import nodes
from loopscope.ir.model import Model
from tests.engine.drawn.models import drawn_model

SAMPLES = Path(__file__).parents[3] / "sample_models"
LIMITS = loopscope.Limits(iterations=20_000, seconds=20)
WITHOUT_EQUIVALENT = {
    "hybrid_stack": "'GroupConvolution', 'NormalizeL2', 'ScaledDotProductAttention' have no",
    "language_decoder": "'ScaledDotProductAttention' has no equivalent there",
    "linear_attention": "ONNX scatters slices along the first axis only",
    "lstm_melody": "'LSTMCell' has no equivalent there",
    "mamba2": "'GroupConvolution' has no equivalent there",
    "speech_decoder": "'ScaledDotProductAttention' has no equivalent there",
}
MODELS = sorted(
    file.parent.name
    for file in SAMPLES.glob("*/model.xml")
    if file.parent.name not in WITHOUT_EQUIVALENT
)


def in_runtime(file: Path, feeds: dict[str, Any]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {name: np.asarray(value) for name, value in feeds.items()}))


def compare(model: Model, feeds: dict[str, Any], folder: Path) -> None:
    target = folder / "out.onnx"
    loopscope.write_model(model, target)
    if all(output.type.tensor_type.HasField("shape") for output in onnx.load(target).graph.output):
        # The checker refuses an output of unknown rank, which the runtime accepts.
        onnx.checker.check_model(str(target))
    expected = loopscope.run(model, feeds, limits=LIMITS).outputs
    here = loopscope.run(loopscope.read_model(target), feeds, limits=LIMITS).outputs
    for results in (here, in_runtime(target, feeds)):
        for left, right in zip(expected, results, strict=True):
            assert (left.dtype, left.shape) == (right.dtype, right.shape)
            np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("name", MODELS)
def test_samples_run_in_onnx_runtime(name: str, tmp_path: Path) -> None:
    model = loopscope.read_model(SAMPLES / name / "model.xml")
    file = min(SAMPLES.joinpath(name, "inputs").glob("*.npz"))
    with np.load(file) as stored:
        feeds = dict(stored)
    if name == "infinite_loop":
        loopscope.write_model(model, tmp_path / "out.onnx")
        onnx.checker.check_model(str(tmp_path / "out.onnx"))
        return
    compare(model, feeds, tmp_path)


@pytest.mark.parametrize("name", sorted(WITHOUT_EQUIVALENT))
def test_what_has_no_equivalent_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=WITHOUT_EQUIVALENT[name]):
        loopscope.write_model(
            loopscope.read_model(SAMPLES / name / "model.xml"), tmp_path / "out.onnx"
        )
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.chance
@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(40))
def test_drawn_models_compute_the_same(seed: int, tmp_path: Path) -> None:
    model, (feeds, _) = drawn_model(seed)
    target = tmp_path / "out.onnx"
    try:
        loopscope.write_model(model, target)
    except WriteError as refusal:
        pytest.skip(str(refusal))
    named = {signature.name: feed for signature, feed in zip(model.inputs, feeds, strict=True)}
    expected = loopscope.run(model, feeds, limits=LIMITS).outputs
    results = loopscope.run(loopscope.read_model(target), named, limits=LIMITS).outputs
    for left, right in zip(expected, results, strict=True):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["reduce_logical_and", "reduce_logical_or"])
@pytest.mark.parametrize("values", [[], [True, False], [False, False], [True, True]])
def test_a_reduction_of_booleans_may_have_no_elements(
    name: str, values: list[bool], tmp_path: Path
) -> None:
    graph = builder.Graph(name)
    x = graph.parameter("x", "boolean", [None])
    model = graph.model(getattr(builder.ops, name)(x, np.array([0])))
    compare(model, {"x": np.array(values, bool)}, tmp_path)


def arithmetic(name: str, kind: str) -> Model:
    graph = builder.Graph(name)
    left, right = (graph.parameter(text, kind, [4]) for text in ("a", "b"))
    return graph.model(getattr(builder.ops, name)(left, right))


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["i32", "i64", "f32"])
@pytest.mark.parametrize("name", ["divide", "floor_mod", "mod", "not_equal", "squared_difference"])
def test_signs_are_those_of_openvino(name: str, kind: str, tmp_path: Path) -> None:
    dtype = {"i32": np.int32, "i64": np.int64, "f32": np.float32}[kind]
    feeds = {"a": np.array([7, -7, 7, -7], dtype), "b": np.array([2, 2, -2, -2], dtype)}
    compare(arithmetic(name, kind), feeds, tmp_path)


@pytest.mark.oracle
@pytest.mark.parametrize("backward", [False, True])
def test_slices_and_parts_go_the_way_of_the_loop(*, backward: bool, tmp_path: Path) -> None:
    graph = builder.Graph("cumulated")
    values = graph.parameter("x", "f32", [6, 2])
    start = graph.parameter("s", "f32", [2])
    sums = builder.scan(lambda total, part: total * 2 + part, values, start, reverse=backward)
    model = graph.model(sums)
    assert any(node.is_loop for _, node in nodes(model))
    feeds = {
        "x": np.arange(12, dtype=np.float32).reshape(6, 2),
        "s": np.array([1, -1], np.float32),
    }
    compare(model, feeds, tmp_path)


def test_the_node_that_computes_the_value_has_the_name_of_the_operation(tmp_path: Path) -> None:
    """``compare`` pairs nodes by name: NotEqual becomes Equal and Not."""
    graph = builder.Graph("names")
    x = graph.parameter("x", "f32", [2])
    differs = builder.ops.not_equal(x, np.zeros(2, np.float32), name="differs")
    path = tmp_path / "names.onnx"
    loopscope.write_model(graph.model({"y": builder.ops.logical_not(differs)}), path)
    kinds = {node.name: node.type for node in loopscope.read_model(path).graph.nodes}
    assert kinds["differs"] == "Not"
    assert kinds["differs_1"] == "Equal"
