"""Models written as IR: read again they are equal, and OpenVINO reads them and computes the
same.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import openvino as ov
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openvino import opset13 as ops

from loopscope.errors import WriteError
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.equal import difference
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import SCALAR, PartialShape
from loopscope.read import read_model
from loopscope.write import write_model
from tests.engine.read.documents import ADDITION, NESTED_WEIGHTS, WEIGHTS, nested_loops


def again(model: Model, folder: Path) -> Model:
    write_model(model, folder / "again.xml")
    return read_model(folder / "again.xml")


def test_a_written_model_is_read_as_the_same(tmp_path: Path) -> None:
    model = read_model(ADDITION.encode(), WEIGHTS)
    assert difference(model, again(model, tmp_path)) == ""
    first = (tmp_path / "again.xml").read_bytes()
    assert difference(model, again(read_model(tmp_path / "again.xml"), tmp_path)) == ""
    assert (tmp_path / "again.xml").read_bytes() == first


def test_a_file_can_be_replaced_by_the_model_that_was_read_from_it(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(ADDITION)
    path.with_suffix(".bin").write_bytes(bytes(100) + WEIGHTS)
    path.write_text(ADDITION.replace('offset="0"', 'offset="100"'))
    model = read_model(path)
    write_model(model, path)
    assert difference(model, read_model(path)) == ""
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.bin", "m.xml"]


def test_three_hundred_loops_are_written_and_read(tmp_path: Path) -> None:
    model = read_model(nested_loops(300).encode(), NESTED_WEIGHTS)
    assert difference(model, again(model, tmp_path)) == ""


def nested_control_flow() -> ov.Model:
    """A Loop with an If inside, sliced and carried inputs, concatenated outputs, and the body's
    own constants.
    """
    x, start = (
        ops.parameter([4, 2], np.float32, name="x"),
        ops.parameter([1, 2], np.float32, name="start"),
    )
    part, state, index = (
        ops.parameter([1, 2], np.float32),
        ops.parameter([1, 2], np.float32),
        ops.parameter([], np.int64),
    )
    small, large = ops.parameter([1, 2], np.float32), ops.parameter([1, 2], np.float32)
    branch = ops.if_op(ops.less(index, ops.constant(np.int64(2))).output(0))
    then_body = ov.Model(
        [ops.add(small, ops.constant(np.full((1, 2), 5, np.float32)))], [small], "small"
    )
    else_body = ov.Model(
        [ops.multiply(large, ops.constant(np.full((1, 2), 5, np.float32)))], [large], "large"
    )
    branch.set_then_body(then_body)
    branch.set_else_body(else_body)
    branch.set_input(ops.add(state, part).output(0), small, large)
    branch.set_output(then_body.results[0], else_body.results[0])
    body = ov.Model(
        [branch.output(0), ops.constant(np.array(True)).output(0)], [part, state, index], "body"
    )
    loop = ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True)))
    loop.set_function(body)
    loop.set_special_body_ports([2, 1])
    loop.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    loop.set_merged_input(state, start.output(0), body.results[0].output(0))
    last = loop.get_iter_value(body.results[0].output(0), -1)
    every = loop.get_concatenated_slices(body.results[0].output(0), 0, 1, 1, -1, 0)
    every.get_tensor().set_names({"every", "all, of them"})
    return ov.Model([last, every], [x, start], 'a "strange" <name> & more')


def test_openvino_computes_the_same_of_what_it_wrote_and_of_what_we_wrote(tmp_path: Path) -> None:
    ov.save_model(nested_control_flow(), tmp_path / "theirs.xml", compress_to_fp16=False)
    model = read_model(tmp_path / "theirs.xml")
    write_model(model, tmp_path / "ours.xml")
    assert difference(model, read_model(tmp_path / "ours.xml")) == ""
    inputs = [np.arange(8, dtype=np.float32).reshape(4, 2), np.ones((1, 2), np.float32)]
    core = ov.Core()
    answers = []
    for name in ("theirs.xml", "ours.xml"):
        compiled = core.compile_model(
            core.read_model(tmp_path / name), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
        )
        answers.append(compiled(inputs))
        assert {"every", "all, of them"} in [output.names for output in compiled.outputs]
    for index in range(2):
        np.testing.assert_array_equal(answers[0][index], answers[1][index])


def constant_node(layer: int, constant: Constant) -> Node:
    port = Port(0, constant.element_type, PartialShape.of(constant.shape))
    return Node(LayerId(layer), f"c{layer}", "Const", "opset1", outputs=(port,), constant=constant)


def test_equal_constants_are_written_once_and_all_are_aligned(tmp_path: Path) -> None:
    arrays: list[np.ndarray] = [
        np.array([1, 2, 3], np.int8),
        np.ones(5, np.float32),
        np.ones(5, np.float32),
        np.array([], np.float32),
    ]
    nodes = tuple(constant_node(index, Constant.of(array)) for index, array in enumerate(arrays))
    write_model(Model(ModelGraph(nodes, ())), tmp_path / "m.xml")
    assert (tmp_path / "m.bin").stat().st_size == 129
    offsets = [
        int(str(node.attributes["offset"])) for node in read_model(tmp_path / "m.xml").graph.nodes
    ]
    assert offsets == [0, 64, 64, 128]


ARRAYS = {
    "string": np.array([["a", ""], ["ü,\n", "\U0001f40d"]], dtype=object),
    "i4": np.array([-8, 7, 1], ml_dtypes.int4),
    "u3": np.arange(8, dtype=np.uint8).view([("u3", np.uint8)]),
    "bf16": np.array([1.5], ml_dtypes.bfloat16),
    "boolean": np.array(True),
    "f64": np.zeros((2, 0, 3)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_constants_come_back(name: str, tmp_path: Path) -> None:
    model = Model(ModelGraph((constant_node(0, Constant.of(ARRAYS[name])),), ()))
    (node,) = again(model, tmp_path).graph.nodes
    assert node.constant is not None
    assert node.constant.element_type is ElementType(name)
    np.testing.assert_array_equal(node.constant.array(), ARRAYS[name])


def named(name: str, *tensor_names: str) -> Model:
    port = Port(0, ElementType.F32, PartialShape.parse("1..3,?"), tensor_names)
    node = Node(LayerId(0), name, "Parameter", "opset1", outputs=(port,))
    return Model(
        ModelGraph((node,), ()),
        rt_info={"a key": {"b": {"c": "d"}}, "info": "e"},
        meta_data={"tool": "f"},
    )


WRITABLE = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=20,
)


@given(WRITABLE, st.lists(WRITABLE.filter(lambda name: not name.endswith("\\")), max_size=3))
def test_every_name_comes_back(name: str, tensor_names: list[str]) -> None:
    model = named(name + "\n\t<\"'&>,\\", *tensor_names)
    with tempfile.TemporaryDirectory() as folder:
        read = again(model, Path(folder))
        assert read.graph.nodes[0].outputs[0].names == tuple(tensor_names)
        assert read.graph.nodes[0].name == model.graph.nodes[0].name
        assert str(read.inputs[0].shape) == "[1..3,?]"
        assert (read.rt_info, read.meta_data) == (model.rt_info, model.meta_data)


def edges(*edges: Edge) -> Model:
    first = Node(LayerId(0), "a", "Parameter", "opset1", outputs=(Port(0),))
    second = Node(LayerId(1), "b", "Relu", "opset1", inputs=(Port(0),), outputs=(Port(1),))
    return Model(ModelGraph((first, second), edges))


GOOD_EDGE = Edge(LayerId(0), 0, LayerId(1), 0)
REFUSED = {
    "onnx": (replace(named("x"), dialect="onnx"), "an ONNX model cannot be written as OpenVINO IR"),
    "control character": (
        named("a\x01b"),
        r"contains the character '\\x01', which XML cannot hold: rename it",
    ),
    "half a character": (named("a\ud800b"), "which XML cannot hold"),
    "backslash": (named("x", "a\\", "b"), "ends with a backslash, which an IR cannot store"),
    "edge to nothing": (edges(Edge(LayerId(0), 0, LayerId(7), 0)), "1 edges lead nowhere"),
    "edge from no port": (edges(Edge(LayerId(0), 3, LayerId(1), 0)), "1 edges lead nowhere"),
    "two edges to one input": (
        edges(GOOD_EDGE, GOOD_EDGE),
        "1 edges lead nowhere or to an input that another edge feeds",
    ),
    "repeated ids": (
        Model(ModelGraph((named("x").graph.nodes[0], named("y").graph.nodes[0]), ())),
        "have the ids '0'",
    ),
}


@pytest.mark.parametrize(("model", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_written_is_refused_and_leaves_nothing_behind(
    model: Model, message: str, tmp_path: Path
) -> None:
    with pytest.raises(WriteError, match=message):
        write_model(model, tmp_path / "m.xml")
    assert not list(tmp_path.iterdir())


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    model = edges(GOOD_EDGE)
    for path, message in (
        (tmp_path / "none" / "m.xml", "No such file"),
        (tmp_path / "m.tflite", "ends with .xml"),
    ):
        with pytest.raises(WriteError, match=message):
            write_model(model, path)


DIFFERENT = {
    "name": (
        'name="sum"',
        'name="total"',
        "main/sum: name is 'sum' in one and 'total' in the other",
    ),
    "attribute": ('auto_broadcast="numpy"', 'auto_broadcast="none"', "main/sum: its attributes is"),
    "edge": (
        'from-layer="1" from-port="0" to-layer="2"',
        'from-layer="0" from-port="0" to-layer="2"',
        "main/sum: what feeds it",
    ),
    "information": ('value="pytorch"', 'value="onnx"', "the model: rt_info"),
    "shape": ('shape="?,3"', 'shape="1..2,3"', "main/x: outputs"),
    "tensor name": ('names="y"', 'names="z"', "main/sum: outputs"),
    "precision": (
        '<port id="2" precision="FP32"',
        '<port id="2" precision="FP16"',
        "main/sum: outputs",
    ),
    "missing": (
        '<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />',
        "",
        "main: the number of edges is 3 in one and 2",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_a_difference_is_told(old: str, new: str, message: str) -> None:
    one, other = (
        read_model(text.encode(), WEIGHTS) for text in (ADDITION, ADDITION.replace(old, new))
    )
    assert message in difference(one, other)
    assert difference(other, one)


SAME = {
    "port ids": ('port="2"', 'port="12"'),
    "port bounds": ("<dim>-1</dim>", "<dim>-1</dim> "),
}


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME.keys())
def test_what_means_nothing_is_no_difference(old: str, new: str) -> None:
    other = ADDITION.replace('<port id="2"', '<port id="12"') if "port=" in old else ADDITION
    assert (
        difference(
            read_model(ADDITION.encode(), WEIGHTS),
            read_model(other.replace(old, new).encode(), WEIGHTS),
        )
        == ""
    )


def test_different_data_are_a_difference() -> None:
    other = read_model(ADDITION.encode(), WEIGHTS[:-1] + b"\0")
    assert (
        difference(read_model(ADDITION.encode(), WEIGHTS), other)
        == "main/c: its constant data differ"
    )


def test_output_maps_are_compared_by_rank_and_bodies_are_entered() -> None:
    text = nested_loops(2)
    model = read_model(text.encode(), NESTED_WEIGHTS)
    renumbered = text.replace('<output external_port_id="3"', '<output external_port_id="0"')
    assert difference(model, read_model(renumbered.encode(), NESTED_WEIGHTS)) == ""
    last = text.rindex('name="a"')
    changed = text[:last] + 'name="b"' + text[last + len('name="a"') :]
    assert difference(model, read_model(changed.encode(), NESTED_WEIGHTS)).startswith(
        "main/loop/body/loop/body/a: name is"
    )


def test_scalars_and_ports_without_dims_look_alike() -> None:
    node = edges(GOOD_EDGE)
    graph = node.graph
    scalar = replace(graph.nodes[1], outputs=(replace(graph.nodes[1].outputs[0], shape=SCALAR),))
    assert (
        difference(node, replace(node, graph=ModelGraph((graph.nodes[0], scalar), graph.edges)))
        == ""
    )
