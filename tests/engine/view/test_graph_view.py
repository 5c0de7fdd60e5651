"""What is drawn of a model: boxes, frames, roles on lines, constants in boxes, cut edges."""

from __future__ import annotations

import pytest

from loopscope.view.build import graph_view
from loopscope.view.folding import Folding, default_folding
from loopscope.view.graph import GraphView
from loopscope.view.grouping import grouping
from tests.engine.drafts import F32, Draft
from tests.engine.read.onnx_models import CASES, read
from tests.engine.view.models import branches, chain, nested, summing_loop

ONNX_LOOPS = {"scan": "Scan", "sequences": "SequenceMap"}


@pytest.mark.parametrize("name", ONNX_LOOPS)
def test_loops_that_only_onnx_has_are_loops(name: str) -> None:
    view = graph_view(read(next(case for case in CASES if case.name == name).text), Folding())
    assert ONNX_LOOPS[name] in {
        cluster.title for cluster in view.clusters if cluster.kind == "tensor_iterator"
    }


def lines(view: GraphView) -> set[tuple[str, str, str, str]]:
    """(kind, from, to, label) with the boxes' addresses."""
    nodes = {node.id: node for node in view.nodes}
    return {
        (edge.kind, nodes[edge.source].address, nodes[edge.target].address, edge.label)
        for edge in view.edges
    }


def test_a_loop_is_a_frame_with_its_port_maps_back_edges_and_conditions() -> None:
    view = graph_view(summing_loop(), Folding())
    assert [(cluster.kind, cluster.address, cluster.body) for cluster in view.clusters] == [
        ("loop", "main/loop", "main/loop/body")
    ]
    assert lines(view) == {
        ("input_map", "main/zero", "main/loop/body/sum", "carried"),
        ("input_map", "main/x", "main/loop/body/part", "sliced axis 0"),
        ("data", "main/loop/body/sum", "main/loop/body/add", ""),
        ("data", "main/loop/body/part", "main/loop/body/add", ""),
        ("data", "main/loop/body/add", "main/loop/body/less", ""),
        ("data", "main/loop/body/add", "main/loop/body/next", ""),
        ("data", "main/loop/body/less", "main/loop/body/again", ""),
        ("output_map", "main/loop/body/next", "main/loop:0", "last value"),
        ("output_map", "main/loop/body/next", "main/loop:1", "concatenated axis 1"),
        ("back", "main/loop/body/next", "main/loop/body/sum", ""),
        ("again", "main/loop/body/again", "main/loop", "repeat?"),
        ("data", "main/loop:0", "main/total", ""),
    }
    back = next(edge for edge in view.edges if edge.kind == "back")
    assert (back.tensor, back.into) == ("main/loop/body/next", "main/loop/body/sum")
    sliced = next(edge for edge in view.edges if edge.label == "sliced axis 0")
    assert sliced.slices is not None
    assert sliced.slices.axis == 0


def test_constants_are_written_into_their_consumers() -> None:
    view = graph_view(summing_loop(), Folding())
    boxes = view.node_of
    assert boxes["main/loop"].kind == "control"
    assert boxes["main/loop"].constants == ("≤ 12",)
    assert boxes["main/loop/body/less"].constants == ("10",)
    assert boxes["main/loop/body/i"].badge == "iteration"
    shown = graph_view(summing_loop(), Folding(constants=True))
    assert {node.address for node in shown.nodes if node.kind == "constant"} == {
        "main/trips",
        "main/start",
        "main/loop/body/large",
    }
    assert ("trip_count", "main/trips", "main/loop", "trip count") in lines(shown)


def test_a_loop_that_never_starts_is_told_so_in_its_head() -> None:
    assert graph_view(summing_loop(starts=False), Folding()).node_of["main/loop"].constants == (
        "≤ 12",
        "never starts",
    )


def test_an_if_is_two_frames_side_by_side_that_merge() -> None:
    view = graph_view(branches(), Folding())
    assert [(cluster.kind, cluster.parent) for cluster in view.clusters] == [
        ("if", ""),
        ("then", "c0"),
        ("else", "c0"),
    ]
    assert {line for line in lines(view) if line[0] in ("condition", "branch", "merge")} == {
        ("condition", "main/c", "main/choose", "condition"),
        ("branch", "main/choose", "main/choose/then/a", ""),
        ("branch", "main/choose", "main/choose/else/b", ""),
        ("merge", "main/choose/then/r", "main/choose:0", ""),
        ("merge", "main/choose/else/r", "main/choose:0", ""),
    }


def test_folded_places_are_one_box() -> None:
    view = graph_view(branches(), Folding(frozenset({"main/choose/then"})))
    folded = view.node_of["main/choose/then"]
    assert (folded.kind, folded.badge, folded.body) == ("folded", "4 nodes", "main/choose/then")
    assert ("input_map", "main/x", "main/choose/then", "") in lines(view)
    view = graph_view(branches(), Folding(frozenset({"main/choose"})))
    assert not view.clusters
    assert view.hidden == 6
    assert ("data", "main/choose", "main/y", "") in lines(view)
    assert view.showing("main/choose/then/double") is view.node_of["main/choose"]


def test_a_body_can_be_the_canvas() -> None:
    view = graph_view(summing_loop(), Folding(), root="main/loop/body")
    assert not view.clusters
    assert "main/loop/body/add" in view.node_of
    with pytest.raises(KeyError):
        graph_view(summing_loop(), Folding(), root="main/loop/then")


def test_long_lines_become_numbered_stubs() -> None:
    assert not [node for node in graph_view(chain(14, reach=12)).nodes if node.kind == "cut_end"]
    view = graph_view(chain(20, reach=15))
    cut_ends = [node for node in view.nodes if node.kind == "cut_end"]
    assert [end.title for end in cut_ends] == ["1", "1"]
    assert [end.address for end in cut_ends] == ["main/relu_4", "main/relu_4"]
    assert [edge.kind for edge in view.edges if edge.source == cut_ends[1].id] == ["data"]


def test_a_value_that_goes_far_to_many_places_has_one_stub_at_its_beginning() -> None:
    draft = Draft()
    x = draft.parameter("x", F32, [])
    here = x
    for number in range(40):
        here = draft.op("Add", here, x, name=f"add_{number}", auto_broadcast="numpy")
    draft.result(here)
    view = graph_view(draft.model())
    begin, *ends = [node for node in view.nodes if node.kind == "cut_end"]
    assert {node.title for node in (begin, *ends)} == {"1"}
    assert [edge.target for edge in view.edges if edge.kind == "cut_end"] == [begin.id]
    fed = [edge.target for edge in view.edges if edge.source in {end.id for end in ends}]
    names = {node.id: node.name for node in view.nodes}
    assert [names[one] for one in fed] == [f"add_{number}" for number in range(12, 40)]
    assert begin.tooltip.startswith("continues at Add add_12, Add add_13")
    assert begin.tooltip.endswith("and 23 more")


def test_constants_belong_to_the_group_that_takes_them() -> None:
    draft = Draft()
    weights = [draft.const(float(number)) for number in range(400)]
    here = draft.parameter("x", F32, [])
    for weight in weights:
        here = draft.op("Multiply", here, weight, auto_broadcast="numpy")
    draft.result(here)
    model = draft.model()
    groups = grouping(model.graph, "main", default_folding(model).groups)
    assert len(groups.members) > 4
    for node in model.graph.nodes:
        for source in model.graph.sources[node.id]:
            if (
                source is not None
                and model.graph.by_id[source.layer].constant is not None
                and node.id in groups.group_of
            ):
                assert groups.group_of[source.layer] == groups.group_of[node.id]


def test_three_hundred_nested_bodies() -> None:
    model = nested(300)
    assert len(graph_view(model).nodes) < 80
    assert len(graph_view(model, Folding()).clusters) == 600
