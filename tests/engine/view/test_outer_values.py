"""Many outer values handed into a body: one box instead of a bundle, whose lines are seen when
they are asked for.
"""

from __future__ import annotations

import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.explain.provenance import provenance
from loopscope.ir.model import Model
from loopscope.view.build import graph_view
from loopscope.view.dot import dot_text
from loopscope.view.folding import Folding, Unrolled, default_folding, reveal, toggle
from loopscope.view.graph import GraphView, ViewNode
from loopscope.view.origins import highlight

THEN = "main/cond/then/*~outer"


def captures(then: int, otherwise: int) -> Model:
    """An If whose branches use so many outer values, and a loop that uses as many as the first
    of them.
    """
    graph = builder.Graph("captures")
    outer = [graph.parameter(f"x{number}", "f32", []) for number in range(max(then, otherwise))]
    flag = graph.parameter("flag", "boolean", [])

    def product(count: int) -> builder.Tensor:
        made = outer[0]
        for one in outer[1:count]:
            made = made * one
        return made

    chosen = builder.cond(flag, lambda: product(then), lambda: product(otherwise))
    (grown,) = builder.while_loop(
        lambda value: ops.less(value, 100.0),
        lambda value: value + product(then),
        [chosen],
        name="grow",
    )
    return graph.model(grown)


def outer_boxes(view: GraphView) -> list[ViewNode]:
    return [node for node in view.nodes if node.title.endswith("outer values")]


@pytest.mark.parametrize(
    ("then", "otherwise", "titles"),
    [
        (6, 2, []),
        (7, 2, ["7 outer values"] * 2),
        (9, 8, ["9 outer values"] * 2 + ["8 outer values"]),
    ],
)
def test_more_than_a_handful_is_one_box(then: int, otherwise: int, titles: list[str]) -> None:
    model = captures(then, otherwise)
    view = graph_view(model, default_folding(model))
    assert sorted(node.title for node in outer_boxes(view)) == sorted(titles)
    latent = [edge for edge in view.edges if edge.latent]
    assert {edge.target for edge in latent} == {node.id for node in outer_boxes(view)}
    assert len(latent) == sum(int(title.split()[0]) for title in titles)
    # The layout hears of one of them at most, so that the box stands below what it holds.
    text = dot_text(view)
    told = [edge.target for edge in latent if f"id={edge.id} " in text]
    assert len(told) == len(set(told))
    assert bool(told) == bool(titles)
    assert all(f"id={edge.id} " in dot_text(view, standalone=True) for edge in latent)


def test_it_is_opened_closed_and_found() -> None:
    model = captures(9, 8)
    folded = default_folding(model)
    assert THEN in folded.folded
    parameter = graph_view(model, folded).showing("main/cond/then/x3")
    assert parameter is not None
    assert parameter.title == "9 outer values"
    for opened in (toggle(model, folded, THEN), reveal(model, folded, "main/cond/then/x3")):
        shown = graph_view(model, opened)
        assert shown.node_of["main/cond/then/x3"].kind == "parameter"
        assert [frame.title for frame in shown.clusters if frame.kind == "group"] == [
            "Outer values"
        ]
        assert toggle(model, opened, THEN) == folded


def test_in_copies_there_is_one_beside_them() -> None:
    model = captures(9, 8)
    folding = Folding(default_folding(model).folded, unrolled=(Unrolled("main/grow", 0, 3, 3),))
    view = graph_view(model, folding)
    inside = [node for node in outer_boxes(view) if node.address.startswith("main/grow")]
    assert len(inside) == 4
    beside = next(node for node in inside if view.by_id[node.cluster].kind == "loop")
    assert [edge.kind for edge in view.edges if edge.source == beside.id] == ["data"] * 3


def test_a_value_is_followed_through_the_box() -> None:
    model = captures(9, 8)
    debugger = loopscope.Debugger(model, [*[1.5] * 9, True])
    debugger.run()
    view = graph_view(model, default_folding(model))
    found = highlight(view, provenance(debugger, "main/cond"))
    lines = [view.by_id[id] for id in found.lines]
    assert sum(line.kind == "input_map" for line in lines) == 9
