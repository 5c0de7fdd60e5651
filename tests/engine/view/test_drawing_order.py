"""Running order, and cycles among folded boxes: which lines lead upwards, and what is folded so
that few do.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscope import builder
from loopscope.builder import ops
from loopscope.view.build import graph_view
from loopscope.view.dot import dot_text
from loopscope.view.folding import default_folding
from loopscope.view.node_order import cycle_closing_arcs, levels, on_cycles
from tests.engine.view.models import chain

LAYERS = 2000
ARCS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40)


@given(ARCS)
def test_without_the_turned_arcs_there_are_no_cycles_and_levels_grow(
    arcs: list[tuple[int, int]],
) -> None:
    keys = range(10)
    closing = cycle_closing_arcs(keys, arcs)
    level = levels(keys, arcs)
    left = [arc for arc in arcs if arc not in closing and arc[0] != arc[1]]
    assert set(level) == set(keys)
    assert not on_cycles(keys, left)
    assert all(level[source] < level[target] for source, target in left)
    order = list(level)
    assert all(order.index(source) < order.index(target) for source, target in left)
    assert closing <= {(source, target) for source, target in arcs if source > target}


def test_few_cycles_among_scopes_are_drawn_as_lines_upwards() -> None:
    # Each scope of a pair is left once and entered again.
    model = chain(LAYERS, lambda id: f"{'ab'[id // 100 % 2]}{id // 400}/relu_{id}")
    folding = default_folding(model)
    assert {address for address in folding.folded if "~" in address} == set()
    view = graph_view(model, folding)
    name = {node.id: node.name or node.title for node in view.nodes}
    drawn = {(name[edge.source], name[edge.target]): edge for edge in view.edges}
    assert [ends for ends, edge in drawn.items() if edge.upwards] == [
        (f"b{k}", f"a{k}") for k in range(5)
    ]
    assert all((f"a{k}", f"b{k}") in drawn for k in range(5))
    assert [ends for ends in drawn if ends[0] == "b0"] == [("b0", "a0"), ("b0", "a1")]
    upwards = drawn["b0", "a0"]
    assert f"{upwards.target} -> {upwards.source} [id={upwards.id} " in dot_text(view)
    assert "dir=back" in next(
        line for line in dot_text(view).splitlines() if f"id={upwards.id} " in line
    )


def test_interleaved_scopes_give_way_to_stretches() -> None:
    model = chain(LAYERS, lambda id: f"s{id * id // 7 % 40}/relu_{id}")
    view = graph_view(model, default_folding(model))
    assert {node.title for node in view.nodes} == {"Parameter", "Relu"}
    assert not [edge for edge in view.edges if edge.upwards]
    assert len(view.edges) == len(view.nodes) - 1


def test_constants_do_not_count_where_scopes_are_chosen() -> None:
    graph = builder.Graph("constants")
    value = graph.parameter("x", "f32", [])
    for number in range(400):
        value = ops.add(value, float(number), name=f"layer.{number // 40}/add_{number}")
    folding = default_folding(graph.model(value))
    assert folding.folded == {f"main/layer.{number}%2F*" for number in range(10)}, (
        "what is alike is folded alike"
    )
