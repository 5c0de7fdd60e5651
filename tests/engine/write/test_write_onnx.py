"""ONNX models are written as ONNX: what was read is written again, and what was changed is valid."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, parser

import loopscope
from loopscope.errors import EngineError, ReadError, WriteError
from loopscope.ir.equal import difference
from loopscope.ir.model import Model, ModelGraph
from loopscope.ir.replace import replace
from loopscope.write.onnx.onnx_file import model_proto
from tests.draws import draws
from tests.engine.read.onnx_models import CASES, Case
from tests.fuzz.onnx_pieces import made

ROOT = Path(__file__).parents[3]
FILES = sorted([*(ROOT / "tests").rglob("*.onnx"), *(ROOT / "sample_models").rglob("*.onnx")])


def rebuilt(model: Model) -> Model:
    """The same model of other objects, as a transformation makes it."""

    def graph(old: ModelGraph) -> ModelGraph:
        return replace(
            old,
            nodes=tuple(
                replace(
                    node,
                    bodies=tuple(replace(body, graph=graph(body.graph)) for body in node.bodies),
                )
                for node in old.nodes
            ),
        )

    return replace(model, graph=graph(model.graph))


def written(model: Model, folder: Path) -> Path:
    target = folder / "out.onnx"
    loopscope.write_model(model, target)
    return target


def is_valid(document: bytes) -> bool:
    try:
        onnx.checker.check_model(document)
    except Exception:
        return False
    return True


def runtime_outputs(document: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(document, options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, feeds)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_was_read_is_written_again(file: Path, tmp_path: Path) -> None:
    try:
        model = loopscope.read_model(file)
    except ReadError:
        pytest.skip("the file is not read")
    again = loopscope.read_model(written(model, tmp_path))
    assert difference(model, again) == ""
    if is_valid(file.read_bytes()):
        assert is_valid((tmp_path / "out.onnx").read_bytes())


@pytest.mark.parametrize("change", [lambda model: model, rebuilt], ids=["as read", "rebuilt"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_runtime_computes_the_same(
    case: Case, change: Callable[[Model], Model], tmp_path: Path
) -> None:
    document = case.model().SerializeToString()
    model = loopscope.read_model(document)
    target = written(change(model), tmp_path)
    assert is_valid(target.read_bytes()) or not is_valid(document)
    feeds = case.inputs
    try:
        expected = runtime_outputs(document, feeds)
    except Exception:
        pytest.skip("the runtime does not run the original")
    for left, right in zip(expected, runtime_outputs(target.read_bytes(), feeds), strict=True):
        assert (left.dtype, left.shape, left.tobytes()) == (
            right.dtype,
            right.shape,
            right.tobytes(),
        )


@pytest.mark.chance
@settings(max_examples=draws(60), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_drawn_models_are_written_again(seed: int) -> None:
    document = made(random.Random(seed)).SerializeToString()
    try:
        model = loopscope.read_model(document)
    except EngineError:
        return
    for version in (model, rebuilt(model)):
        try:
            again = loopscope.read_model(model_proto(version).SerializeToString())
        except WriteError as refusal:
            assert "was changed, and its graphs cannot be written" in str(refusal)  # noqa: PT017
            continue
        assert difference(model, again) == ""


EVERYTHING = """<
    ir_version: 10, opset_import: ["" : 18, "local" : 3],
    producer_name: "a tool", producer_version: "7", model_version: 4,
    doc_string: "a whole model", metadata_props: ["author": "somebody"]
>
everything (float[batch, 3] x, float gain) => (float[batch, 3] y) <float gain = {2.0}, float[batch, 3] z> {
    z = local.scale <by = 3.0> (x, gain)
    [named] y = Clip (z, low, )
    low = Constant <value_float = -1.0> ()
}
<domain: "local", opset_import: ["" : 18]>
scale <by: float = 1.0> (a, b) => (c) {
    factor = Constant <value_float: float = @by> ()
    scaled = Mul (a, factor)
    c = Mul (scaled, b)
}
"""


def everything() -> ModelProto:
    return parser.parse_model(EVERYTHING)


def test_what_a_model_does_not_contain_comes_from_the_file(tmp_path: Path) -> None:
    source = everything()
    source.graph.node[1].doc_string = "keeps the range"
    source.graph.input[0].doc_string = "samples"
    proto = onnx.load(written(loopscope.read_model(source.SerializeToString()), tmp_path))
    for field in ("producer_name", "producer_version", "model_version", "doc_string", "ir_version"):
        assert getattr(proto, field) == getattr(source, field)
    assert list(proto.metadata_props) == list(source.metadata_props)
    assert list(proto.opset_import) == list(source.opset_import)
    assert list(proto.functions) == list(source.functions)
    assert list(proto.graph.input) == list(source.graph.input)
    assert list(proto.graph.value_info) == list(source.graph.value_info)
    assert [node.SerializeToString() for node in proto.graph.node] == [
        node.SerializeToString() for node in source.graph.node
    ]


def test_a_changed_function_becomes_a_function_of_its_own(tmp_path: Path) -> None:
    source = everything().SerializeToString()
    target = written(rebuilt(loopscope.read_model(source)), tmp_path)
    proto = onnx.load(target)
    assert [function.name for function in proto.functions] == ["scale", "scale_1"]
    assert proto.graph.node[0].op_type == "scale_1"
    feeds = {"x": np.array([[1, -2, 3]], np.float32)}
    (expected,), (result,) = (
        runtime_outputs(document, feeds) for document in (source, target.read_bytes())
    )
    assert np.array_equal(expected, result)


def external_model(folder: Path) -> Path:
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "external",
        [onnx.helper.make_tensor_value_info("x", 1, [1, 64])],
        [onnx.helper.make_tensor_value_info("y", 1, [1, 64])],
        [onnx.numpy_helper.from_array(np.random.default_rng(0).random((64, 64), np.float32), "w")],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10
    )
    onnx.save(model, folder / "in.onnx", save_as_external_data=True, location="in.data")
    return folder / "in.onnx"


def test_external_data_stays_external(tmp_path: Path) -> None:
    source = external_model(tmp_path)
    target = written(loopscope.read_model(source), tmp_path)
    (tensor,) = onnx.load(target, load_external_data=False).graph.initializer
    assert {entry.key: entry.value for entry in tensor.external_data}["location"] == "out.onnx.data"
    assert difference(loopscope.read_model(source), loopscope.read_model(target)) == ""
    feeds = {"x": np.ones((1, 64), np.float32)}
    results = [
        ort.InferenceSession(str(file), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
        for file in (source, target)
    ]
    assert np.array_equal(*results)


@pytest.mark.parametrize("name", ["in.onnx", "in.data"])
def test_an_opened_file_is_not_overwritten(name: str, tmp_path: Path) -> None:
    source = external_model(tmp_path)
    if name == "in.data":
        (tmp_path / "copy.onnx.data").hardlink_to(tmp_path / "in.data")
        target = tmp_path / "copy.onnx"
    else:
        target = source
    before = (tmp_path / name).read_bytes()
    with pytest.raises(WriteError, match="was opened as the model: expected another path"):
        loopscope.write_model(loopscope.read_model(source), target)
    assert (tmp_path / name).read_bytes() == before


SHADOWED = """<ir_version: 10, opset_import: ["" : 18]>
shadowed (bool c, float[2] x) => (float[2] y) {
    t = Neg (x)
    y = If (c) <
        then_branch = a () => (float[2] r) { t = Abs (x)  r = Identity (t) },
        else_branch = b () => (float[2] s) { s = Identity (t) }
    >
}
"""


def test_a_file_without_opsets_stays_without(tmp_path: Path) -> None:
    """Found by the fuzzer: ONNX 1 was imported."""
    source = parser.parse_model(SHADOWED)
    del source.opset_import[:]
    target = written(loopscope.read_model(source.SerializeToString()), tmp_path)
    assert not onnx.load(target).opset_import


def test_names_of_a_body_remain_where_they_connect_the_same(tmp_path: Path) -> None:
    model = loopscope.read_model(parser.parse_model(SHADOWED).SerializeToString())
    assert difference(model, loopscope.read_model(written(model, tmp_path))) == ""


def test_two_tensors_of_one_name_get_two_names(tmp_path: Path) -> None:
    """As when a branch is moved into the graph around it."""
    model = loopscope.read_model(parser.parse_model(SHADOWED).SerializeToString())
    nodes = [
        replace(node, outputs=(replace(node.outputs[0], names=("x",)),))
        if node.type == "Neg"
        else node
        for node in model.graph.nodes
    ]
    target = written(replace(model, graph=replace(model.graph, nodes=tuple(nodes))), tmp_path)
    assert is_valid(target.read_bytes())
    feeds = {"c": np.array(False), "x": np.array([1, -2], np.float32)}
    assert runtime_outputs(target.read_bytes(), feeds)[0].tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("suffix", "words"),
    [(".xml", "an ONNX model cannot be written as OpenVINO IR"), (".txt", "with .onnx")],
)
def test_other_paths_are_refused(suffix: str, words: str, tmp_path: Path) -> None:
    model = loopscope.read_model(everything().SerializeToString())
    with pytest.raises(WriteError, match=words):
        loopscope.write_model(model, tmp_path / f"out{suffix}")


BATCHED_SCAN = """<ir_version: 4, opset_import: ["" : 8]>
g (int64[2] n, float[2, 2] s0, float[2, 3, 2] xs) => (float[2, 2] last, float[2, 3, 2] out)
<float[2] w = {2.0, 3.0}> {
    last, ys = Scan (n, s0, xs) <num_scan_inputs: int = 1, body: graph = step (float[2] s, float[2] x)
        => (float[2] next, float[2] y) { next = Add (s, x)  y = Mul (next, w) }>
    out = Relu (ys)
}"""


def test_a_part_with_a_scan_of_opset_8_keeps_the_weights_that_it_captures() -> None:
    model = loopscope.read_model(parser.parse_model(BATCHED_SCAN).SerializeToString())
    (scan,) = (node.name for node in model.graph.nodes if node.type == "Scan")
    part = model_proto(loopscope.cut(model, f"main/{scan}"))
    feeds = {
        "n": np.array([2, 3]),
        "s0": np.zeros((2, 2), np.float32),
        "xs": np.arange(12, dtype=np.float32).reshape(2, 3, 2),
    }
    _, expected = ort.InferenceSession(part.SerializeToString()).run(None, feeds)
    whole = loopscope.run(model, feeds).named["out"]
    np.testing.assert_array_equal(expected, whole)


@pytest.mark.parametrize("place", ["body", "body/scan"])
def test_a_part_of_a_scan_of_opset_8_is_refused(place: str, tmp_path: Path) -> None:
    model = loopscope.read_model(parser.parse_model(BATCHED_SCAN).SerializeToString())
    (scan,) = (node.name for node in model.graph.nodes if node.type == "Scan")
    with pytest.raises(WriteError, match="part of a Scan of opset 8"):
        loopscope.write_model(loopscope.cut(model, f"main/{scan}/{place}"), tmp_path / "x.onnx")
