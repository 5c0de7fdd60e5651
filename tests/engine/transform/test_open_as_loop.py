"""Opening operators as loops: which ones, under which names, and what a model keeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.errors import AddressError, BuildError
from loopscope.ir.address import nodes
from loopscope.ir.rt_info import opened_operator, opened_operators
from loopscope.transform.open_as_loop import openable
from loopscope.write import write_model
from tests.engine.ops.recurrence_nodes import linear_attention

SIZE = 2


def stacked(*names: str) -> loopscope.Model:
    """Return LSTMs of ONNX one after the other, whose outputs are named after them."""
    return loopscope.read_model(document(*names))


def document(*names: str) -> bytes:
    """Return the file of ``stacked``."""
    random = np.random.default_rng(1)
    weights, operators, source = [], [], "x"
    for name in names:
        for role, width in (("w", SIZE), ("r", SIZE)):
            values = random.standard_normal((1, 4 * SIZE, width)).astype(np.float32)
            weights.append(numpy_helper.from_array(values, f"{name} {role}"))
        operators += [
            helper.make_node(
                "LSTM",
                [source, f"{name} w", f"{name} r"],
                [f"{name} y", f"{name} h"],
                name=name,
                hidden_size=SIZE,
            ),
            helper.make_node("Squeeze", [f"{name} y", "axis"], [f"{name} out"]),
        ]
        source = f"{name} out"
    weights.append(numpy_helper.from_array(np.array([1], np.int64), "axis"))
    graph = helper.make_graph(
        operators,
        "stacked",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 1, SIZE])],
        [helper.make_tensor_value_info(source, TensorProto.FLOAT, [4, 1, SIZE])],
        weights,
    )
    opsets = [helper.make_opsetid("", 14)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    content: bytes = model.SerializeToString()
    return content


X = {"x": np.random.default_rng(2).standard_normal((4, 1, SIZE)).astype(np.float32)}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("all", ["main/first", "main/second"]),
        ("main/second", ["main/second"]),
        ("second", ["main/second"]),
        (["first", "main/second"], ["main/first", "main/second"]),
        ("*s*", ["main/first", "main/second"]),
    ],
)
def test_operators_are_opened_by_name(names: str | list[str], expected: list[str]) -> None:
    model = stacked("first", "second")
    opened = loopscope.open_as_loop(model, names)
    assert opened_operators(opened) == expected
    assert opened.unopened is model
    for own, closed in zip(
        loopscope.run(opened, X).outputs, loopscope.run(model, X).outputs, strict=True
    ):
        np.testing.assert_allclose(own, closed, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["third", "main/first/body/x", "x", "Squeeze"])
def test_a_name_without_such_an_operator_is_refused(name: str) -> None:
    with pytest.raises(AddressError):
        loopscope.open_as_loop(stacked("first"), name)


def test_values_inside_have_names_and_iterations() -> None:
    run = loopscope.Debugger(loopscope.open_as_loop(stacked("decoder/LSTM")), X)
    run.run()
    for gate in ("input_gate", "forget_gate", "output_gate"):
        value = np.asarray(run.value(f"main/decoder%2FLSTM[3]/body/{gate}"))
        assert value.shape == (1, 1, SIZE)
        assert ((value > 0) & (value < 1)).all()
    sequence = np.asarray(run.value("main/decoder%2FLSTM"))
    for step in range(4):
        hidden = run.value(f"main/decoder%2FLSTM[{step}]/body/next_hidden")
        np.testing.assert_array_equal(sequence[step], hidden)


def test_the_loop_remembers_its_operator_and_the_tensor_names() -> None:
    model = stacked("first")
    opened = loopscope.open_as_loop(model)
    loop = next(node for node in opened.graph.nodes if node.is_loop)
    operator = next(node for node in model.graph.nodes if node.name == "first")
    assert opened_operator(loop) == "LSTM ai.onnx 14"
    assert loop.id == operator.id
    names = [port.names for port in operator.outputs]
    assert [port.names for port in loop.outputs[: len(names)]] == names
    assert [node.name for node in opened.graph.results] == [
        node.name for node in model.graph.results
    ]


def test_an_opened_model_opens_further_and_again_gives_itself() -> None:
    once = loopscope.open_as_loop(stacked("first", "second"), "first")
    twice = loopscope.open_as_loop(once, "second")
    assert opened_operators(twice) == ["main/first", "main/second"]
    assert twice.unopened is once.unopened
    assert loopscope.open_as_loop(twice).graph is twice.graph


def test_an_operator_in_a_body_and_hostile_names() -> None:
    name = "a/b[0]:~%*<b>"
    text = f"""<ir_version: 8, opset_import: ["" : 14]>
        g (float[4, 1, 2] x) => (float[4, 1, 2] last)
        <float[1, 8, 2] w = {{{", ".join(["0.5"] * 16)}}},
         float[1, 8, 2] r = {{{", ".join(["-0.25"] * 16)}}}, int64[1] axis = {{1}},
         int64 n = {{3}}, bool t = {{1}}> {{
            last = Loop (n, t, x) <body = inner
                (int64 i, bool c, float[4, 1, 2] state) => (bool c2, float[4, 1, 2] next) {{
                c2 = Identity(c)
                y = LSTM <hidden_size = 2> (state, w, r)
                next = Squeeze(y, axis)
            }}>
        }}"""
    document = parser.parse_model(text)
    document.graph.node[0].attribute[0].g.node[1].name = name
    model = loopscope.read_model(document.SerializeToString())
    (address,) = openable(model)
    opened = loopscope.open_as_loop(model, address)
    own, closed = (loopscope.run(each, X).outputs[0] for each in (opened, model))
    np.testing.assert_allclose(own, closed, rtol=2e-5, atol=2e-6)
    run = loopscope.Debugger(opened, X)
    run.run()
    encoded = address.rpartition("/")[2]
    place = f"main/Loop_0[2]/body/{encoded}[3]/body/forget_gate"
    assert np.asarray(run.value(place.replace("Loop_0", _loop_label(opened)))).shape == (1, 1, 2)


def _loop_label(model: loopscope.Model) -> str:
    return next(
        address.rpartition("/")[2]
        for address, node in nodes(model)
        if node.is_loop and not opened_operator(node)
    )


def test_what_cannot_be_opened_is_a_note_or_an_error() -> None:
    case = linear_attention(2, 2, 2)
    model = loopscope.read_model(case.model.replace(b"gated_delta", b"delta_gated"))
    (address,) = openable(model)
    with pytest.raises((BuildError, AddressError)):
        loopscope.open_as_loop(model, address)
    kept = loopscope.open_as_loop(model, "all")
    assert kept.graph is model.graph
    assert len(kept.notes) == 1
    assert kept.notes[0].startswith(f"{address}: LinearAttention is not opened as a loop:")


def test_an_opened_model_is_written_and_read_again(tmp_path: Path) -> None:
    graph = builder.Graph("sum")
    data = graph.parameter("data", "f32", [3, 2])
    model = loopscope.open_as_loop(graph.model(ops.cum_sum(data, 0, name="total")))
    write_model(model, tmp_path / "opened.xml")
    again = loopscope.read_model(tmp_path / "opened.xml")
    assert opened_operators(again) == ["main/total"]
    np.testing.assert_array_equal(
        loopscope.run(again, [np.ones((3, 2), np.float32)]).outputs[0],
        np.cumsum(np.ones((3, 2), np.float32), axis=0),
    )


def test_gradients_pass_through_an_opened_operator() -> None:
    model = stacked("first")
    opened = loopscope.open_as_loop(model)
    expected, own = (
        loopscope.run(loopscope.gradients(each, "first out", "x"), X).outputs[-1]
        for each in (model, opened)
    )
    np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-6)


def test_an_operator_without_a_derivative_is_advised_to_be_opened() -> None:
    convolution = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]> '
        "conv (float[1,4,6] x, float[4,1,3] w) => (float[1,4,6] y, float[1,4,2] state) "
        "{ y, state = com.microsoft.CausalConvWithState(x, w) }"
    )
    convolution.graph.node[0].name = "conv"
    model = loopscope.read_model(convolution.SerializeToString())
    with pytest.raises(BuildError, match="Open it as a loop, which has gradients: --open conv"):
        loopscope.gradients(model, "y", "x")
    opened = loopscope.gradients(loopscope.open_as_loop(model), "y", "x")
    assert len(opened.outputs) == len(model.outputs) + 1


def test_each_direction_has_its_own_alpha() -> None:
    random = np.random.default_rng(3)
    weights = [
        numpy_helper.from_array(random.standard_normal((2, SIZE, SIZE)).astype(np.float32), name)
        for name in ("w", "r")
    ]
    layer = helper.make_node(
        "RNN",
        ["x", "w", "r"],
        ["y"],
        name="layer",
        hidden_size=SIZE,
        direction="bidirectional",
        activations=["LeakyRelu", "LeakyRelu"],
        activation_alpha=[0.1, 0.7],
    )
    graph = helper.make_graph(
        [layer],
        "directions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 1, SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 2, 1, SIZE])],
        weights,
    )
    document = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    model = loopscope.read_model(document.SerializeToString())
    (expected,) = loopscope.run(model, X).outputs
    (found,) = loopscope.run(loopscope.open_as_loop(model), X).outputs
    np.testing.assert_allclose(found, expected, rtol=1e-6)
