"""Others' data about nodes: what is read, what is refused, and the colours at a moment."""

from __future__ import annotations

import json

import onnx
import pytest

import loopscope
from loopscope.errors import ReadError
from loopscope.explain import how_often
from loopscope.view import (
    Marks,
    NodeData,
    default_folding,
    graph_view,
    overlay_at,
    read_node_data,
    unrolling,
    write_node_data,
)
from loopscope_samples import sample

LOOP = "main/while_not_one"
MOD = f"{LOOP}/body/floor_mod"


@pytest.fixture(scope="module")
def debugger() -> loopscope.Debugger:
    found = sample("collatz")
    assert found is not None
    debugger = loopscope.Debugger(loopscope.read_model(found.model), [3])
    debugger.run()
    return debugger


def read(debugger: loopscope.Debugger, data: object) -> NodeData:
    return read_node_data(json.dumps(data).encode(), debugger.model, "cost")


def shown(debugger: loopscope.Debugger, data: NodeData) -> dict[str, list[object]]:
    """By address."""
    view = graph_view(debugger.model, default_folding(debugger.model))
    tints = overlay_at(debugger, view, Marks(node_data=data)).tints
    return {node.address: tints[node.id] for node in view.nodes if node.id in tints}


@pytest.mark.parametrize(
    "data",
    [
        {MOD: 2, "start_at_all": 4.0},
        {MOD: {"value": 2, "bgColor": "red"}, "main/start_at_all": {"value": 4.0}},
        {
            "results": {"while_not_one/body/floor_mod": {"value": 2}, "start_at_all": {"value": 4}},
            "gradient": [],
        },
        {
            "main": {"results": {"floor_mod": {"value": 2}}},
            "other": {"results": {"start_at_all": {"value": 4}}},
        },
    ],
)
def test_all_forms_mean_the_same(debugger: loopscope.Debugger, data: object) -> None:
    found = read(debugger, data)
    assert found.everywhere == {MOD: 2.0, "main/start_at_all": 4.0}
    assert found.scale == ["cost", "number", "2", "4"]
    assert shown(debugger, found) == {
        MOD: ["number", 1, "2"],
        "main/start_at_all": ["number", 8, "4"],
    }


def test_texts_have_a_colour_each_and_rare_ones_one_together(debugger: loopscope.Debugger) -> None:
    addresses = list(how_often(debugger))
    found = read(debugger, {one: f"device {min(k, 10)}" for k, one in enumerate(addresses)})
    assert (len(found.kinds), found.kinds[0], found.kinds[-1]) == (8, "device 10", "others")
    assert found.level("device 10") == 1
    assert found.level("device 9") == 8


def test_numbers_beside_texts_are_texts(debugger: loopscope.Debugger) -> None:
    assert read(debugger, {"start_at_all": 1, "floor_mod": "fast"}).everywhere == {
        "main/start_at_all": "1",
        MOD: "fast",
    }


def test_a_value_of_one_iteration_is_shown_in_that_one(debugger: loopscope.Debugger) -> None:
    found = read(
        debugger, {f"{LOOP}[2]/body/floor_mod": 7, f"{LOOP}[3]/body/floor_mod": 9, "floor_mod": 8}
    )
    for iteration, words in ((1, "8"), (2, "7"), (3, "9")):
        for place in ("floor_mod", "equal"):  # before it runs, and behind
            debugger.seek(f"{LOOP}[{iteration}]/body/{place}")
            assert shown(debugger, found)[MOD][2] == words
    folding = unrolling.unroll(debugger.model, default_folding(debugger.model), LOOP, debugger)
    view = graph_view(debugger.model, folding)
    tints = overlay_at(debugger, view, Marks(node_data=found)).tints
    copies = {node.address: tints[node.id][2] for node in view.nodes if node.id in tints}
    assert {copies[f"{LOOP}[2]/body/floor_mod"], copies[f"{LOOP}[3]/body/floor_mod"]} == {
        "7",
        "9",
    }


def test_a_folded_box_has_the_largest_of_what_it_holds(debugger: loopscope.Debugger) -> None:
    found = read(debugger, {MOD: 2, f"{LOOP}/body/equal": 5})
    folding = loopscope.view.toggle(debugger.model, default_folding(debugger.model), LOOP)
    view = graph_view(debugger.model, folding)
    assert [
        tint[2] for tint in overlay_at(debugger, view, Marks(node_data=found)).tints.values()
    ] == ["5"]


def test_what_is_written_is_read_again(debugger: loopscope.Debugger) -> None:
    debugger.run()
    counts = how_often(debugger)
    assert (
        counts["main/start_at_all"],
        counts[MOD],
        counts[f"{LOOP}/body/if_even/else/multiply"],
    ) == (1, 7, 2)
    written = write_node_data(counts, debugger.model)
    by_graph = json.loads(written)
    assert set(by_graph["main"]) == {"results", "gradient"}
    assert by_graph["main"]["results"]["start_at_all"] == {"value": 1}
    assert by_graph[f"{LOOP}/body"]["results"]["floor_mod"] == {"value": 7}
    assert read_node_data(written.encode(), debugger.model, "runs").everywhere == counts


def test_an_onnx_model_is_written_with_the_names_that_model_explorer_has() -> None:
    model = loopscope.read_model(onnx_with_an_if().SerializeToString())
    debugger = loopscope.Debugger(model, {"x": 2.0, "go": True})
    debugger.run()
    written = write_node_data(how_often(debugger), model)
    by_graph = {
        name: {key: one["value"] for key, one in graph["results"].items()}
        for name, graph in json.loads(written).items()
    }
    assert by_graph["outer"] == {
        "choose": 1,
        "choose/then_branch/twice": 1,
        "choose/else_branch/half": 0,
    }
    assert read_node_data(written.encode(), model, "runs").everywhere == how_often(debugger)
    alone = json.dumps(
        {"outer": json.loads(written)["outer"]}
    ).encode()  # as a tool for Model Explorer would write it
    assert read_node_data(alone, model, "runs").everywhere == how_often(debugger)


def onnx_with_an_if() -> onnx.ModelProto:
    """Its branches call their results by one name."""
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    branches = {
        f"{branch}_branch": helper.make_graph(
            [helper.make_node(operation, ["x", "x"], ["same"], name)],
            branch,
            [],
            [helper.make_tensor_value_info("same", f32, [])],
        )
        for branch, operation, name in (("then", "Add", "twice"), ("else", "Sub", "half"))
    }
    graph = helper.make_graph(
        [helper.make_node("If", ["go"], ["y"], "choose", **branches)],
        "outer",
        [
            helper.make_tensor_value_info("x", f32, []),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", f32, [])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"floor_mod": NaN}', "'floor_mod' is neither a finite number nor a text"),
        (b'{"floor_mod": 1e999}', "neither a finite number"),
        (b'{"floor_mod": [1]}', "neither a finite number"),
        (b'{"results": {"floor_mod": {"value": {"value": 1}}}}', "neither a finite number"),
        (b'{"nothing": 1}', "the first is 'nothing'"),
        (b"{}", "no key of the node data"),
        (b'{"floor_mod": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_what_is_no_node_data_is_refused_in_one_sentence(
    debugger: loopscope.Debugger, content: bytes, words: str
) -> None:
    with pytest.raises(ReadError, match=words) as refused:
        read_node_data(content, debugger.model, "cost")
    assert len(str(refused.value)) < 400


def test_too_much_is_refused(debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopscope.view.node_data.MOST_ENTRIES", 1)
    with pytest.raises(ReadError, match="of 2 nodes: at most 1"):
        read(debugger, {"floor_mod": 1, "equal": 2})
    monkeypatch.setattr("loopscope.view.node_data.MOST_BYTES", 10)
    with pytest.raises(ReadError, match="at most"):
        read(debugger, {"floor_mod": 1})


def test_texts_that_turn_others_around_are_neutral(debugger: loopscope.Debugger) -> None:
    found = read(debugger, {"floor_mod": "a\u202eb" + "x" * 500})
    assert "\u202e" not in found.kinds[0]
    assert len(found.kinds[0]) <= 80
