"""Names, scopes, functions, outputs, and what cannot be built."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.view.build import graph_view
from loopscope.view.folding import default_folding, toggle
from tests.engine.builder.both import run_both


def names(model: loopscope.Model) -> list[str]:
    return [node.name for node in model.graph.nodes]


def test_scopes_nest_and_names_are_unique() -> None:
    graph = builder.Graph("names")
    x = graph.parameter("x", "f32", [2])
    with graph.scope("decoder"):
        with graph.scope("attention") as whole:
            assert whole == "decoder/attention"
            y = ops.relu(x) + ops.relu(x)
        z = ops.relu(y, name="end")
    with graph.scope("decoder"):
        z = ops.relu(z, name="end")
    expected = [
        "x",
        "decoder/attention/ReLU",
        "decoder/attention/ReLU_1",
        "decoder/attention/Add",
        "decoder/end",
        "decoder_1/end",
    ]
    assert names(graph.model({"z": z})) == [*expected, "z"]


def test_a_failed_scope_is_left() -> None:
    graph = builder.Graph("names")
    with pytest.raises(RuntimeError), graph.scope("inner"):
        raise RuntimeError
    assert graph.parameter("x", "f32", []).name == "x"


def test_a_function_is_a_scope_of_its_own_for_each_call() -> None:
    @builder.function
    def norm(values: Tensor) -> Tensor:
        return values / ops.sqrt(ops.reduce_sum(values * values, [0], keep_dims=True))

    twice = builder.function(lambda values: values + values, name="twice")
    graph = builder.Graph("functions")
    x = graph.parameter("x", "f32", [2])
    y = twice(norm(norm(x)))
    made = names(graph.model(y))
    calls = [
        [name.partition("/")[2] for name in made if name.startswith(f"{scope}/")]
        for scope in ("norm", "norm_1")
    ]
    assert calls[0] == calls[1] == ["Multiply", "Const", "ReduceSum", "Sqrt", "Divide"]
    assert "twice/Add" in made
    assert norm.__name__ == "norm"
    result = run_both(graph.model(y), [np.array([3, 4], np.float32)])
    np.testing.assert_allclose(result.outputs[0], [1.2, 1.6], rtol=1e-6)


def called_three_times() -> loopscope.Model:
    @builder.function
    def norm(values: Tensor) -> Tensor:
        return values / ops.sqrt(ops.reduce_sum(values * values, [0], keep_dims=True))

    graph = builder.Graph("functions")
    x = graph.parameter("x", "f32", [2])
    last = builder.while_loop(lambda v: v[0] < 3, lambda v: norm(v) * 8.0, [norm(norm(x))])[0]
    return graph.model(last)


def test_a_function_is_drawn_once_and_its_other_calls_are_boxes_that_open(tmp_path: Path) -> None:
    """Seed page "TensorFlow in other languages": "functions: define a subgraph that may be
    called in several places".
    """
    model = called_three_times()
    run_both(model, [np.array([1, 2], np.float32)])
    loopscope.write_model(model, tmp_path / "m.xml")
    for one in (model, loopscope.read_model(tmp_path / "m.xml")):
        folding = default_folding(one)
        view = graph_view(one, folding)
        assert folding.opened == {"main/norm%2F*"}
        assert [(frame.title, frame.name) for frame in view.clusters if frame.kind == "group"] == [
            ("Function", "norm, called 3 times")
        ]
        boxes = {
            node.address: (node.title, node.name) for node in view.nodes if node.kind == "folded"
        }
        assert boxes == {
            "main/norm_1%2F*": ("Function", "norm, call 2 of 3"),
            "main/while/body/norm%2F*": ("Function", "norm, call 3 of 3"),
        }
        for address in boxes:
            opened = graph_view(one, toggle(one, folding, address))
            assert {frame.address for frame in opened.clusters if frame.kind == "group"} == {
                "main/norm%2F*",
                address,
            }
        everything = {
            node.name
            for node in one.graph.nodes
            if node.name.startswith("norm/") and node.type != "Const"
        }
        assert {node.name for node in view.nodes} >= everything


def test_a_function_that_is_called_once_needs_no_number() -> None:
    graph = builder.Graph("once")
    builder.function(lambda x: x * 2, name="double")(graph.parameter("x", "f32", []))
    model = graph.model(graph["double/Multiply"].outputs[0])
    (frame,) = graph_view(model).clusters
    assert (frame.title, frame.name) == ("Function", "double")


def test_scopes_are_frames_that_fold_in_bodies_and_in_small_graphs() -> None:
    """Seed page: "names have directories ... TensorBoard relies on them to show large graphs"."""
    graph = builder.Graph("scopes")
    x = graph.parameter("x", "f32", [2])

    def body(v: Tensor) -> Tensor:
        with graph.scope("decoder"), graph.scope("attention"):
            return v * 2 + 1

    with graph.scope("encoder"):
        start = ops.relu(x)
    model = graph.model(builder.while_loop(lambda v: v[0] < 9, body, [start])[0])
    scopes = {
        "main/encoder%2F*",
        "main/while/body/decoder%2F*",
        "main/while/body/decoder%2Fattention%2F*",
    }
    folding = default_folding(model)
    view = graph_view(model, folding)
    assert {frame.address for frame in view.clusters if frame.kind == "group"} == scopes
    inner = next(frame for frame in view.clusters if frame.name == "decoder/attention")
    assert next(frame.name for frame in view.clusters if frame.id == inner.parent) == "decoder"
    for address in scopes:
        folded = graph_view(model, toggle(model, folding, address))
        assert [node.address for node in folded.nodes if node.kind == "folded"] == [address]


def test_what_a_file_tells_of_scopes_may_be_anything() -> None:
    model = called_three_times()
    odd = {
        "functions": {"a": "main/norm%2F*", "b": ["x"]},
        "function_names": {"a": {}},
        "scopes": {"c": "main"},
    }
    for told in ("text", {"functions": 3}, odd):
        strange = replace(model, rt_info={"loopscope": told})
        assert len(graph_view(strange).nodes) > 5


def test_outputs_alone_in_a_list_or_by_name() -> None:
    graph = builder.Graph("outputs")
    x = graph.parameter("x", "f32", [None])
    y = ops.relu(x, name="y")
    assert [one.names for one in graph.model(y).outputs] == [("y",)]
    assert [one.names for one in graph.model([y, x]).outputs] == [("y",), ("x",)]
    named = graph.model({"first": y, "second": y, "x": x})
    assert [one.name for one in named.outputs] == ["first", "second", "x_1"]
    result = run_both(named, [np.array([-1, 2], np.float32)])
    assert result.named["second"].tolist() == [0, 2]


def test_outputs_in_structures() -> None:
    graph = builder.Graph("outputs")
    x = graph.parameter("x", "f32", [2])
    pair = {"first": x, "rest": [x + 1, builder.TensorArray.unstack(x * 2)]}
    assert [one.name for one in graph.model({"y": pair}).outputs] == [
        "y['first']",
        "y['rest'][0]",
        "y['rest'][1].stacked",
    ]
    assert len(run_both(graph.model([pair, x]), [np.array([1, 2], np.float32)]).outputs) == 4


def test_names_that_are_none() -> None:
    graph = builder.Graph("names")
    x = graph.parameter("x", "f32", [2])
    for wrong in (3, "\n", " ", "a\x00b"):
        with pytest.raises(BuildError, match="expected printable text"):
            ops.relu(x, name=wrong)
        with pytest.raises(BuildError, match=r"name of a parameter is .* expected printable text"):
            graph.parameter(wrong, "f32", [])
        with pytest.raises(BuildError, match="expected printable text"), graph.scope(wrong):
            pass
    with graph.scope("inner"):
        assert graph.parameter("x", "f32", []).name == "inner/x"
        with pytest.raises(BuildError, match="already has a node 'inner/x'"):
            graph.parameter("x", "f32", [])


def test_numbers_without_a_tensor_go_to_the_open_graph_or_the_last_one() -> None:
    first, second = builder.Graph("first"), builder.Graph("second")
    assert ops.range(0, 5, 1, output_type="i64").graph is second
    with first:
        made = ops.range(0, 5, 1, output_type="i64")
        assert made.graph is first
        assert made.shape.lengths == (5,)
    assert run_both(first.model(made)).outputs[0].tolist() == [0, 1, 2, 3, 4]


def test_constants_of_every_kind() -> None:
    graph = builder.Graph("constants")
    made = [
        graph.constant(value)
        for value in (1, 2.5, True, [1, 2], np.float16(3), np.zeros((0, 2), np.int32))
    ]
    made += [graph.constant([1, 2], "u8"), graph.constant(0.5, "bf16"), graph.constant(["a", "b"])]
    types = ["i64", "f32", "boolean", "i64", "f16", "i32", "u8", "bf16", "string"]
    assert [str(one.element_type) for one in made] == types
    for value, element_type, words in [
        (300, "u8", "which u8 cannot represent"),
        (1.5, "i32", "cannot represent"),
        (None, None, "NoneType"),
    ]:
        with pytest.raises(BuildError, match=words):
            graph.constant(value, element_type)


def test_shapes_of_parameters() -> None:
    graph = builder.Graph("shapes")
    shapes = [
        str(graph.parameter(f"p{number}", "f32", shape).shape)
        for number, shape in enumerate([[], [2, None], None, "1..8,?", [-1], 3])
    ]
    assert shapes == ["[]", "[2,?]", "...", "[1..8,?]", "[?]", "[3]"]
    with pytest.raises(BuildError, match=r"the shape of parameter 'q' is \[1.5\]"):
        graph.parameter("q", "f32", [1.5])
    with pytest.raises(BuildError, match="already has a node 'p0'"):
        graph.parameter("p0", "f32", [])
    with pytest.raises(
        BuildError, match="the element type of parameter 'q' is 'float', expected one of"
    ):
        graph.parameter("q", "float", [])


def test_graphs_do_not_mix() -> None:
    x, y = (
        builder.Graph("one").parameter("x", "f32", []),
        builder.Graph("two").parameter("y", "f32", []),
    )
    with pytest.raises(
        BuildError, match=r"<Tensor 'y' f32\[\]> belongs to graph 'two', not to 'one'"
    ):
        x + y
    with pytest.raises(BuildError, match="belongs to graph 'two'"):
        x.graph.model(y)


def test_outputs_that_are_none() -> None:
    graph = builder.Graph("none")
    x = graph.parameter("x", "f32", [])
    for outputs, words in [
        ([], "at least one output"),
        ({}, "at least one"),
        (3, "an output is 3"),
        ({"a": 1}, "output 'a' is 1"),
        ({1: x}, "name of an output is 1"),
    ]:
        with pytest.raises(BuildError, match=words):
            graph.model(outputs)


def test_an_output_cannot_take_the_name_of_another_tensor() -> None:
    graph = builder.Graph("names")
    x = graph.parameter("x", "f32", [])
    with pytest.raises(BuildError, match="output 'x' has the same name as a tensor"):
        graph.model({"x": x + 1})


def test_a_variable_is_read_and_assigned() -> None:
    graph = builder.Graph("state")
    x = graph.parameter("x", "f32", [2])
    state = ops.read_value(
        np.zeros(2, np.float32), variable_id="total", variable_type="f32", variable_shape=[2]
    )
    total = ops.assign(state + x, variable_id="total")
    session = loopscope.Session(graph.model(total))
    assert [session.run([[1, 2]]).outputs[0].tolist() for _ in range(3)] == [[1, 2], [2, 4], [3, 6]]


def test_a_notebook_shows_the_graph_in_words_lengths_or_zeros() -> None:
    graph = builder.Graph("halve")
    model = graph.model({"half": graph.parameter("x", "f32", [None]) / 2})
    shown = model._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/plain"].startswith(
        "Model 'halve' with 4 nodes\n  input  x: f32[?]\n  output half: f32[?]"
    )
