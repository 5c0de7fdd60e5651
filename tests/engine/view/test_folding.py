"""What is folded at first, and how folding answers to clicks."""

from __future__ import annotations

import pytest

from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId, Model, ModelGraph, Node, Port
from loopscope.ir.shape import PartialShape
from loopscope.view.build import graph_view
from loopscope.view.folding import Folding, default_folding, reveal, toggle
from tests.engine.view.models import branches, chain, constant, graph, nested, node, summing_loop


def test_small_models_are_shown_whole() -> None:
    for model in (summing_loop(), branches(), chain(50)):
        assert default_folding(model) == Folding()


@pytest.mark.parametrize(
    ("model", "first"),
    [
        (chain(2000), "main/*~1..59"),
        (
            chain(2000, lambda id: f"net/layer{id // 100}/block{id // 10 % 10}/op{id}"),
            "main/net%2Flayer0%2F*",
        ),
        (chain(2000, lambda id: f"net.layer{id // 100}.op{id}"), "main/net.layer0.*"),
    ],
)
def test_large_graphs_fold_by_scope_or_stretch(model: Model, first: str) -> None:
    folding = default_folding(model)
    assert first in folding.folded
    view = graph_view(model, folding)
    assert len(view.nodes) <= 40
    opened = toggle(model, folding, first)
    assert first in opened.opened
    assert any(cluster.address == first for cluster in graph_view(model, opened).clusters)
    assert toggle(model, opened, first) == folding


def test_a_large_graph_whose_nodes_stand_in_the_file_twice_is_drawn() -> None:
    """The check says so; what is drawn is one of each."""
    nodes = [*chain(300).graph.nodes, node(300, "y", "Result", 1, 0)]
    sound = graph(nodes, [(id - 1, id, 0) for id in range(1, 301)])
    twice = Model(ModelGraph((*sound.nodes, *sound.nodes), sound.edges), "twice", 11)
    assert len(graph_view(twice, default_folding(twice)).nodes) <= 40


def test_scopes_that_hold_too_many_fold_inside_when_opened() -> None:
    model = chain(2000, lambda id: f"all/part{id // 500}/n{id}")
    folding = default_folding(model)
    first = "main/all%2Fpart0%2F*"
    opened = toggle(model, folding, first)
    assert f"{first}~0..55" in opened.folded
    assert len(graph_view(model, opened).nodes) <= 40
    assert toggle(model, opened, first) == folding


def test_bodies_fold_when_they_do_not_fit() -> None:
    model = nested(60)
    folding = default_folding(model)
    assert len(folding.folded) == 1
    (closed,) = folding.folded
    unfolded = toggle(model, folding, closed)
    assert closed not in unfolded.folded
    assert len(unfolded.folded) == 1
    assert toggle(model, Folding(), "main/if") == Folding(frozenset({"main/if"}))


def test_reveal_opens_everything_round_a_node() -> None:
    model = chain(2000, lambda id: f"net/layer{id // 100}/op{id}")
    address = "main/net%2Flayer7%2Fop777"
    folding = reveal(model, default_folding(model), address)
    found = graph_view(model, folding).node_of[address]
    assert found.kind == "operation"
    deep = "main" + "/if/then" * 20 + "/p"
    model = nested(30)
    assert (
        graph_view(model, reveal(model, default_folding(model), deep)).node_of[deep].kind
        == "parameter"
    )


def small(id: int, name: str, type: str, inputs: int = 1) -> Node:
    """An operation on a few integers."""
    made = node(id, name, type, inputs, shape=(2,))
    return Node(
        made.id,
        name,
        type,
        "opset1",
        inputs=made.inputs,
        outputs=(Port(inputs, ElementType.I64, PartialShape.of([2])),),
    )


def test_shape_arithmetic_folds_into_one_box() -> None:
    nodes = [
        node(0, "x", "Parameter"),
        small(1, "shape", "ShapeOf"),
        small(2, "twice", "Multiply", 2),
        constant(3, "two", [2, 2]),
        small(4, "one", "Gather"),
        node(5, "reshape", "Reshape", 2),
        node(6, "y", "Result", 1, 0),
    ]
    model = Model(
        graph(nodes, [(0, 1, 0), (1, 2, 0), (3, 2, 1), (2, 4, 0), (0, 5, 0), (4, 5, 1), (5, 6, 0)])
    )
    folding = default_folding(model)
    assert folding.folded == {"main/one~shape"}
    folded = graph_view(model, folding).node_of["main/twice"]
    assert (folded.title, folded.badge) == ("Shape arithmetic", "3 operations")
    assert default_folding(model, chains=False) == Folding()
    assert LayerId(1) in model.graph.by_id
    assert toggle(model, folding, "main/one~shape").opened == {"main/one~shape"}


def test_shape_arithmetic_that_would_feed_itself_stays_open() -> None:
    nodes = [
        node(0, "x", "Parameter"),
        small(1, "shape", "ShapeOf"),
        small(2, "first", "Gather"),
        node(3, "reshape", "Reshape", 2),
        small(4, "again", "ShapeOf"),
        small(5, "both", "Concat", 2),
        node(6, "reshape_2", "Reshape", 2),
    ]
    wires = [
        (0, 1, 0),
        (1, 2, 0),
        (0, 3, 0),
        (2, 3, 1),
        (3, 4, 0),
        (2, 5, 0),
        (4, 5, 1),
        (3, 6, 0),
        (5, 6, 1),
    ]
    assert default_folding(Model(graph(nodes, wires))) == Folding()
