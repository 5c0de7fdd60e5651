"""Models as TensorFlow's GraphDef, read again by OpenVINO's frontend: the same outputs.

Seed page "TensorFlow in other languages": a graph "supports conversion to and from GraphDef
protocol messages".
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openvino import Model as OpenvinoModel
from openvino import opset15 as op
from openvino import save_model

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.errors import WriteError
from loopscope.ir.address import nodes
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Model, ModelGraph, Node
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.transform.graph_edits import with_every_node
from loopscope.write.tensorflow.graph_def import graph_def
from loopscope.write.tensorflow.translations import RULES
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, branch, loop
from tests.engine.write.graph_def_models import MODELS


def again(model: Model, folder: Path, name: str = "m.pb") -> Model:
    loopscope.write_model(model, folder / name)
    return loopscope.read_model(folder / name)


def by_name(model: Model, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs by their names in TensorFlow; those are the model's own, or what the reader
    has added ``:0`` to.
    """
    inputs = {
        name.removesuffix(":0"): one.name for one in model.inputs for name in (one.name, *one.names)
    }
    found = loopscope.run(model, {inputs[name]: value for name, value in feeds.items()})
    return {
        name.removesuffix(":0"): value
        for one, value in zip(model.outputs, found.outputs, strict=True)
        for name in (one.name, *one.names)
    }


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ending", ["pb", "pbtxt"])
def test_what_was_written_computes_the_same(name: str, ending: str, tmp_path: Path) -> None:
    model, feeds = MODELS[name]()
    found = again(model, tmp_path, f"m.{ending}")
    for one in feeds:
        expected, given = by_name(model, one), by_name(found, one)
        for output in model.outputs:
            np.testing.assert_allclose(
                given[output.name], expected[output.name], rtol=1e-6, err_msg=output.name
            )
            assert given[output.name].shape == expected[output.name].shape
            assert given[output.name].dtype == expected[output.name].dtype


def test_every_rule_is_in_a_model_here() -> None:
    there = {node.type for make in MODELS.values() for _, node in nodes(make()[0])}
    assert set(RULES) - there == {"Print", "After"}, "what shows or waits has tests of its own"


def test_no_index_into_a_shape_is_negative() -> None:
    """TensorFlow refuses a negative index of GatherV2, which OpenVINO accepts."""
    graph = builder.Graph("negative")
    x, indices = graph.parameter("x", "f32", [2, 3]), graph.parameter("indices", "i64", [2])
    message = graph_def(graph.model({"y": ops.gather(x, indices, -1)}))
    by_node = {node.name: node for node in message.node}
    indexed = [node for node in message.node if node.op == "GatherV2" and "Shape" in node.input[0]]
    places = [by_node[node.input[1].partition(":")[0]].attr["value"].tensor for node in indexed]
    assert [np.frombuffer(place.tensor_content, np.int64).tolist() for place in places] == [[1]]


def _declare_f32(node: Node) -> Node:
    return _declare(node, F32)


def _declare(node: Node, kind: ElementType) -> Node:
    outputs = (replace(port, element_type=port.element_type or kind) for port in node.outputs)
    return replace(node, outputs=tuple(outputs))


@pytest.mark.parametrize(("repeats", "rank"), [([2], 3), ([3, 2, 1], 3), ([2, 1, 1, 1], 4)])
def test_a_tile_has_a_repeat_for_each_axis(repeats: list[int], rank: int, tmp_path: Path) -> None:
    """TensorFlow refuses another number of repeats, which OpenVINO accepts."""
    values = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    graph = builder.Graph("tiled")
    model = graph.model({"y": ops.tile(graph.parameter("x", "f32", values.shape), repeats)})
    by_node = {node.name: node for node in graph_def(model).node}
    (tile,) = (node for node in by_node.values() if node.op == "Tile")
    multiples = by_node[tile.input[1].partition(":")[0]].attr["value"].tensor
    assert multiples.tensor_shape.dim[0].size == rank
    expected, written = (
        by_name(model, {"x": values}),
        by_name(again(model, tmp_path), {"x": values}),
    )
    np.testing.assert_array_equal(written["y"], expected["y"])


def test_an_empty_order_reverses_the_axes(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    graph = builder.Graph("reversed")
    x = graph.parameter("x", "f32", values.shape)
    model = graph.model({"y": ops.transpose(x, np.zeros(0, np.int64))})
    written = by_name(again(model, tmp_path), {"x": values})
    np.testing.assert_array_equal(written["y"], values.T)


def test_a_result_is_collected_in_both_directions(tmp_path: Path) -> None:
    draft, body = Draft(), Draft()
    state = body.parameter("state", F32, (1,))
    doubled = body.result(body.op("Add", state, state))
    loop(
        draft,
        body,
        draft.const(3, I64),
        draft.const(True, BOOL),
        again=body.result(body.const(True, BOOL)),
        carried=[(draft.parameter("x", F32, (1,)), state, doubled)],
        joined=[(doubled, {}), (doubled, {"start": -1, "end": 0, "stride": -1})],
    )
    region = draft.nodes[-1]
    for output in range(2):
        draft.result(Ref(region.id, output), f"y{output}")

    def declare(node: Node) -> Node:
        typed = _declare_f32(node)
        if node.type != "Add":
            return typed
        (port,) = typed.outputs
        return replace(typed, outputs=(replace(port, shape=PartialShape.of([1])),))

    model = with_every_node(draft.model(), declare)
    feeds = {"x": np.ones(1, np.float32)}
    expected, written = by_name(model, feeds), by_name(again(model, tmp_path), feeds)
    for name in ("y0", "y1"):
        np.testing.assert_array_equal(written[name], expected[name])


def test_a_branch_may_read_the_condition(tmp_path: Path) -> None:
    draft, then, otherwise = Draft(), Draft(), Draft()
    condition, x = draft.parameter("c", BOOL, ()), draft.parameter("x", BOOL, ())
    same, other = then.parameter("p", BOOL, ()), otherwise.parameter("p", BOOL, ())
    branches = (
        branch("then", then, [(0, same)], [then.result(same)]),
        branch("else", otherwise, [(1, other)], [otherwise.result(other)]),
    )
    draft.result(draft.region("If", [condition, x], branches, 1, name="if", opset=8), "y")
    model = with_every_node(draft.model(), lambda node: _declare(node, BOOL))
    feeds = {"c": np.bool_(True), "x": np.bool_(False)}
    assert by_name(again(model, tmp_path), feeds)["y"] == by_name(model, feeds)["y"]


def test_a_parameter_without_input_is_zeros(tmp_path: Path) -> None:
    draft, then, otherwise, body = Draft(), Draft(), Draft(), Draft()
    condition, x = draft.parameter("c", BOOL, ()), draft.parameter("x", F32, (2,))
    alone, passed = then.parameter("p", F32, (2,)), otherwise.parameter("p", F32, (2,))
    branches = (
        branch("then", then, [], [then.result(alone)]),
        branch("else", otherwise, [(1, passed)], [otherwise.result(passed)]),
    )
    draft.result(draft.region("If", [condition, x], branches, 1, name="if", opset=8), "chosen")
    state, lonely = body.parameter("s", F32, (2,)), body.parameter("lonely", F32, (2,))
    added = body.result(body.op("Add", state, lonely))
    iterated = loop(
        draft,
        body,
        draft.const(3, I64),
        draft.const(True, BOOL),
        again=body.result(body.const(True, BOOL)),
        carried=[(x, state, added)],
        last=[added],
    )
    draft.result(iterated, "iterated")
    with pytest.raises(WriteError, match="output of the If is not known"):
        loopscope.write_model(draft.model(), tmp_path / "m.pb")
    model = with_every_node(draft.model(), _declare_f32)
    found = again(model, tmp_path)
    for choice in (True, False):
        feeds = {"c": np.bool_(choice), "x": np.array([1, 2], np.float32)}
        expected, written = by_name(model, feeds), by_name(found, feeds)
        for name in ("chosen", "iterated"):
            np.testing.assert_array_equal(written[name], expected[name])


def test_loops_and_branches_are_functions() -> None:
    message = graph_def(MODELS["a branch in a loop in a loop"]()[0])
    kinds = [node.op for function in message.library.function for node in function.node_def]
    assert [node.op for node in message.node if node.op.startswith("Stateless")] == [
        "StatelessWhile"
    ] * 2
    assert {"StatelessWhile", "StatelessIf"} <= set(kinds)
    names = [function.signature.name for function in message.library.function]
    assert len(set(names)) == len(names)


def test_what_openvinos_frontend_reads_otherwise_is_what_tensorflow_means() -> None:
    """TensorFlow 2.21 gives the outputs of these; OpenVINO's frontend takes TruncateDiv for
    FloorDiv, and knows no TensorScatterUpdate.
    """
    graph = builder.Graph("others")
    a, b = graph.parameter("a", "i32", [4]), graph.parameter("b", "i32", [4])
    rows = ops.scatter_update(a, [3, 0], b[:2], 0)
    made = graph_def(graph.model({"cut": ops.divide(a, b, m_pythondiv=False), "rows": rows}))
    assert {"TruncateDiv", "TensorScatterUpdate"} < {node.op for node in made.node}


def test_the_window_of_a_loop_is_kept() -> None:
    graph = builder.Graph("window")
    (last,) = builder.while_loop(lambda i: i < 3, lambda i: i + 1, [graph.constant(0)], None, 4)
    (loop,) = (
        node for node in graph_def(graph.model({"last": last})).node if node.op == "StatelessWhile"
    )
    assert loop.attr["parallel_iterations"].i == 4


def test_prints_and_their_order_are_kept(tmp_path: Path) -> None:
    graph = builder.Graph("prints")
    x = graph.parameter("x", "f32", [2])

    def body(i: Any, v: Any) -> Any:
        with builder.control_dependencies([builder.Print(v, [i], "i:", first_n=2, summarize=5)]):
            return i + 1, v * 2

    _, last = builder.while_loop(lambda i, v: i < 3, body, (graph.constant(0), x))
    model = graph.model({"last": last})
    message = graph_def(model)
    assert [node.op for node in message.node if node.op in ("While", "StatelessWhile")] == [
        "While"
    ], "it shows something"
    (function,) = (one for one in message.library.function if one.signature.name.endswith("body"))
    assert function.signature.is_stateful
    (shown,) = (node for node in function.node_def if node.op == "Print")
    assert (shown.attr["message"].s, shown.attr["first_n"].i, shown.attr["summarize"].i) == (
        b"i:",
        2,
        5,
    )
    assert any(f"^{shown.name}" in node.input for node in function.node_def)
    assert by_name(again(model, tmp_path), {"x": np.ones(2, np.float32)})["last"].tolist() == [8, 8]


def test_names_are_those_that_tensorflow_takes(tmp_path: Path) -> None:
    graph = builder.Graph("names")
    x = graph.parameter("the input [1]", "f32", [2])
    with graph.scope("layer"):
        y = ops.exp(x, name="_hidden:one")
    model = graph.model({"y": y, "x2": x * 2})
    names = [node.name for node in graph_def(model).node]
    assert names == ["the_input__1_", "layer/_hidden_one", "Const", "Multiply", "y", "x2"]
    given = by_name(again(model, tmp_path), {"the_input__1_": np.zeros(2, np.float32)})
    assert (given["y"].tolist(), given["x2"].tolist()) == ([1, 1], [0, 0])


def test_names_of_functions_are_plain_and_differ() -> None:
    graph = builder.Graph("functions")
    for name in ("für i", "f_r_i"):
        (last,) = builder.while_loop(
            lambda i: i < 3, lambda i: i + 1, [graph.constant(0)], name=name
        )
    message = graph_def(graph.model({"last": last}))
    assert [one.signature.name for one in message.library.function] == [
        "f_r_i_cond",
        "f_r_i_body",
        "f_r_i_cond_1",
        "f_r_i_body_1",
    ]


def openvino_loop(**cut: int) -> OpenvinoModel:
    """Doubles each part of x."""
    x, part = (
        op.parameter([4, 2], np.float32, name="x"),
        op.parameter([cut.get("part_size", 1), 2], np.float32),
    )
    iterator = op.tensor_iterator()
    doubled = op.add(part, part)
    iterator.set_body(OpenvinoModel([doubled], [part], "body"))
    start, stride, size, end = (
        cut.get(name, usual)
        for name, usual in (("start", 0), ("stride", 1), ("part_size", 1), ("end", -1))
    )
    iterator.set_sliced_input(part, x.output(0), start, stride, size, end, 0)
    return OpenvinoModel(
        [iterator.get_concatenated_slices(doubled.output(0), start, stride, size, end, 0)],
        [x],
        "parts",
    )


def of_openvino(model: OpenvinoModel, folder: Path) -> Model:
    save_model(model, str(folder / "source.xml"), compress_to_fp16=False)
    return loopscope.read_model(folder / "source.xml")


@pytest.mark.parametrize("cut", [{}, {"start": -1, "stride": -1, "end": 0}])
def test_parts_in_both_directions(cut: dict[str, int], tmp_path: Path) -> None:
    model = of_openvino(openvino_loop(**cut), tmp_path)
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = again(model, tmp_path)
    np.testing.assert_array_equal(
        loopscope.run(found, [x]).outputs[0], loopscope.run(model, [x]).outputs[0]
    )


def function_of(make: Callable[[builder.Tensor], Any], shape: Any = (2, 3)) -> Model:
    graph = builder.Graph("refused")
    return graph.model(make(graph.parameter("x", "f32", shape)))


def with_many_outputs(graph: builder.Graph) -> Model:
    """An operation that declares more outputs than it has."""
    model = graph.model(ops.tanh(graph.parameter("x", "f32", [2])))
    nodes = [
        replace(node, outputs=node.outputs * 3) if node.type == "Tanh" else node
        for node in model.graph.nodes
    ]
    return replace(model, graph=ModelGraph(tuple(nodes), model.graph.edges))


REFUSED: dict[str, tuple[Callable[[Path], Model], str]] = {
    "operation": (
        lambda _: function_of(lambda x: ops.gelu(x)),
        "main/Gelu.*: there is no translation of Gelu",
    ),
    "in a body": (
        lambda _: function_of(
            lambda x: builder.while_loop(
                lambda v: True, lambda v: ops.gelu(v), [x], maximum_iterations=2
            )
        ),
        (
            r"main/while/body/Gelu cannot be written as a TensorFlow graph: "
            r"there is no translation of Gelu$"
        ),
    ),
    "type": (
        lambda _: function_of(lambda x: ops.convert(x, destination_type="u4")),
        "TensorFlow does not have u4",
    ),
    "axis": (
        lambda _: function_of(lambda x: ops.softmax(x, axis=0)),
        "TensorFlow has SoftMax along the last axis only",
    ),
    "computed axes": (
        lambda _: function_of(lambda x: ops.squeeze(x, ops.shape_of(x)[:1] - 2)),
        "input 1 of Squeeze is computed, but it is an attribute in TensorFlow",
    ),
    "parts": (
        lambda folder: of_openvino(openvino_loop(part_size=2, stride=2), folder),
        "takes slices of several elements",
    ),
    "lengths": (
        lambda _: function_of(lambda x: builder.map_fn(lambda row: row + 1, x), [None, None]),
        (
            "an output of the loop has parts of f32.*: expected known lengths, "
            "because TensorFlow needs an initial value"
        ),
    ),
    "smallest": (
        lambda _: function_of(lambda x: ops.topk(x, 1, axis=1, mode="min", sort="value")),
        "TensorFlow has TopK of the largest elements",
    ),
    "outputs": (
        lambda _: with_many_outputs(builder.Graph("many")),
        "it declares 3 outputs, expected 1: see what the checks say",
    ),
    "columns": (
        lambda _: function_of(lambda x: ops.scatter_update(x, [0, 2], x[:, :2], 1)),
        "TensorFlow has ScatterUpdate of several parts along the first axis",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_tensorflow_has_not_is_told_with_its_place(case: str, tmp_path: Path) -> None:
    make, words = REFUSED[case]
    model = make(tmp_path)
    with pytest.raises(WriteError, match=words):
        loopscope.write_model(model, tmp_path / "m.pb")
    assert not (tmp_path / "m.pb").exists()


def test_bodies_that_lie_too_deep_are_told(tmp_path: Path) -> None:
    graph = builder.Graph("deep")
    model = graph.model(_nested_ifs(graph.parameter("x", "f32", []), 60))
    loopscope.write_model(model, tmp_path / "m.pb")
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        with pytest.raises(WriteError, match="lie too deep in each other"):
            loopscope.write_model(model, tmp_path / "n.pb")
    finally:
        sys.setrecursionlimit(usual)


def _nested_ifs(x: builder.Tensor, depth: int) -> Any:
    return builder.cond(x > 0, lambda: _nested_ifs(x, depth - 1), lambda: x) if depth else x * 2
