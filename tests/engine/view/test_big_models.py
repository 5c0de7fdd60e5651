"""Big models in their own structure: what their groups are called, and that every node is in one
of at most about forty boxes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopscope
from loopscope.ir.model import Model
from loopscope.ir.replace import replace
from loopscope.view.build import graph_view
from loopscope.view.folding import VISIBLE_NODES, default_folding, reveal, toggle
from loopscope.view.overlay import overlay_at
from loopscope.view.overlay_data import Marks
from tests.draws import draws
from tests.engine.view.big_models import blocks, linear_attention, transformer
from tests.engine.view.models import chain, constant, graph, node

FIRST_SIGHT = VISIBLE_NODES * 1.5
OPS = ("Relu", "Tanh", "Exp", "Sqrt", "MatMul")


def names(model: Model) -> list[str]:
    """What the groups of a first picture are called."""
    boxes = [one for one in graph_view(model, default_folding(model)).nodes if one.kind == "folded"]
    return [f"{one.title} {one.name}".strip() for one in boxes]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda: transformer(24), [f"Block A {number} of 24" for number in range(1, 25)]),
        (
            lambda: transformer(24, "net/layers.{}/".format),
            [f"Scope net/layers.{number}" for number in sorted(range(24), key=str)],
        ),
        (
            lambda: transformer(6, "h.{}/".format),
            [f"Scope h.{layer}/{part}" for layer in range(6) for part in ("attn", "mlp")],
        ),
        (lambda: transformer(96), ["Block A × 96"]),
        (lambda: transformer(96, "net/layers.{}/".format), ["Scope net/layers"]),
        (lambda: linear_attention(18), [f"Block A {number} of 18" for number in range(1, 19)]),
        (lambda: chain(130), ["Relu × 43"] * 3),
        (
            lambda: blocks(["Tanh", "Exp", "Sqrt"], 30),
            [f"Block A {number} of 30" for number in range(1, 31)],
        ),
        (lambda: blocks(["Tanh", "Exp"], 30), ["Block A × 30"]),
        (
            lambda: blocks(["Relu", "Tanh", "Tanh", "Relu", "Tanh", "Relu", "Relu"], 9),
            [f"Block A {number} of 9" for number in range(1, 10)],
        ),
        (lambda: blocks(["Tanh"], 40, 70), ["Block A × 40", "Relu × 35", "Relu × 35"]),
    ],
    ids=lambda given: "" if callable(given) else given[0],
)
def test_groups_are_named_by_what_they_are(model: Callable[[], Model], expected: list[str]) -> None:
    assert sorted(names(model())) == sorted(expected)


def test_what_converters_add_belongs_to_the_scope_that_takes_it() -> None:
    """Weights are converted by nodes that have other names or none, and a scope is written in
    two ways: ``l.0/add`` and ``l.0.mlp/up``.
    """
    nodes, wires, last = [node(0, "x", "Parameter")], [], 0
    for layer in range(30):
        for part in (".mlp/up", ".mlp/down", "/add"):
            weight = len(nodes)
            nodes += [
                constant(weight, f"c{weight}", [1.0]),
                node(weight + 1, f"Constant_{weight}", "Convert", 1),
            ]
            nodes.append(node(weight + 2, f"net.l.{layer}{part}", "Add", 2))
            wires += [(weight, weight + 1, 0), (last, weight + 2, 0), (weight + 1, weight + 2, 1)]
            last = weight + 2
    model = Model(graph(nodes, wires))
    assert names(model) == [f"Scope net.l.{layer}" for layer in range(30)]
    boxes = [box for box in graph_view(model).nodes if box.kind == "folded"]
    assert {box.badge for box in boxes} == {"6 operations"}


def test_one_scope_round_everything_says_nothing() -> None:
    model = blocks(["Tanh", "Exp", "Sqrt"], 30)
    inside = tuple(replace(one, name=f"net/{one.name}") for one in model.graph.nodes)
    assert names(replace(model, graph=replace(model.graph, nodes=inside))) == [
        f"Block A {number} of 30" for number in range(1, 31)
    ]


def test_a_block_says_in_what_it_is_unlike_the_others() -> None:
    view = graph_view(transformer(24, odd=3))
    details = {box.name: box.detail for box in view.nodes if box.title == "Block A"}
    assert Counter(details.values()) == {"MatMul, Add, Gelu": 23, "unlike others: MatMul, Gelu": 1}
    assert details["4 of 24"] == "unlike others: MatMul, Gelu"
    told = next(box.tooltip for box in view.nodes if box.name == "4 of 24").splitlines()
    assert told[0].endswith(
        "makes f32 [4,64], elsewhere f32 [4,16]; constant 1 f32 [8,64], elsewhere f32 [8,16]"
    )


def test_one_block_opens_and_folds_again() -> None:
    model = transformer(24)
    folding = default_folding(model)
    third = next(box.address for box in graph_view(model, folding).nodes if box.name == "3 of 24")
    opened = graph_view(model, toggle(model, folding, third))
    (frame,) = opened.clusters
    assert (frame.title, frame.name) == ("Block A", "3 of 24")
    assert [box.title for box in opened.nodes if box.cluster == frame.id].count("MatMul") == 8
    assert toggle(model, toggle(model, folding, third), third) == folding


def test_very_many_blocks_open_in_steps() -> None:
    model = blocks(["Relu", "Tanh", "Exp"], 1000)
    folding = default_folding(model)
    for expected in ("× 1000", "1 to 25 of 1000", "1 of 1000"):
        box = next(one for one in graph_view(model, folding).nodes if one.kind == "folded")
        assert box.name == expected
        folding = toggle(model, folding, box.address)
    assert [one.title for one in graph_view(model, folding).nodes][:5] == [
        "Parameter",
        "Relu",
        "Tanh",
        "Exp",
        "Add",
    ]
    deep = next(one.name for one in model.graph.nodes[3000:] if one.type == "Exp")
    found = graph_view(model, reveal(model, default_folding(model), f"main/{deep}"))
    assert found.node_of[f"main/{deep}"].kind == "operation"
    assert len(found.nodes) < 4 * VISIBLE_NODES


def test_loops_in_a_fold_are_told_with_what_they_are_at() -> None:
    model = linear_attention(18)
    view = graph_view(model)
    boxes = [box for box in view.nodes if box.kind == "folded"]
    assert {box.badge for box in boxes} == {"9 operations, 1 loop"}
    debugger = loopscope.Debugger(model, {"x": [[0.5] * 8] * 5})
    debugger.run()
    (loop,) = boxes[2].loops
    assert overlay_at(debugger, view, Marks(verdicts={loop: "5 times"})).headers == {
        boxes[2].id: "loop: 5 times"
    }
    opened = toggle(model, default_folding(model), boxes[2].address)
    shown = graph_view(model, opened).node_of[loop]
    assert (shown.kind, shown.title) == ("folded", "Loop")


Part = tuple[list[tuple[str, int]], int]
"""A row of operations, each with where its second input comes from, and how many copies of the
row there are.
"""
PARTS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 2)), min_size=1, max_size=9),
        st.integers(1, 30),
    ),
    max_size=6,
)


def _model(parts: list[Part], scoped: bool) -> Model:
    """Rows, branches and repeats of operations, with constants, with names in scopes or without."""
    nodes, wires, last = [node(0, "x", "Parameter")], [], 0
    for number, (row, copies) in enumerate(parts):
        for copy in range(copies):
            begin = last
            for type, other in row:
                here = len(nodes)
                name = f"part{number}.{copy}/{type}{here}" if scoped else f"n{here}"
                nodes.append(node(here, name, type, 2))
                wires += [(last, here, 0), ((begin, 0, last)[other], here, 1)]
                last = here
                if type == "MatMul":
                    nodes.append(constant(here + 1, f"{name}_c", [1.0]))
                    wires[-1] = (here + 1, here, 1)
    nodes.append(node(len(nodes), "y", "Result", 1, 0))
    wires.append((last, len(nodes) - 1, 0))
    return Model(graph(nodes, wires))


@settings(max_examples=draws(25), deadline=None)
@given(PARTS, st.booleans(), st.data())
def test_every_node_is_in_one_box_however_it_is_folded(
    parts: list[Part], scoped: bool, data: st.DataObject
) -> None:
    model = _model(parts, scoped)
    folding = default_folding(model)
    assert (
        len([box for box in graph_view(model, folding).nodes if box.kind != "cut_end"])
        <= FIRST_SIGHT
    )
    drawn = {one.name for one in model.graph.nodes if one.constant is None}
    for _ in range(4):
        view = graph_view(model, folding)
        shown = Counter(
            place
            for box in view.nodes
            if box.kind != "cut_end"
            for place in box.members or (box.address,)
        )
        assert {place.removeprefix("main/").replace("%2F", "/") for place in shown} == drawn
        assert set(shown.values()) == {1}
        assert not [
            edge for edge in view.edges if edge.upwards and "%2F" not in "".join(folding.groups)
        ]
        foldable = [one.address for one in view.nodes if one.kind == "folded"] + [
            one.address for one in view.clusters
        ]
        if foldable:
            folding = toggle(model, folding, data.draw(st.sampled_from(foldable)))


@pytest.mark.slow
@pytest.mark.measured
def test_a_hundred_thousand_nodes_open() -> None:
    model = blocks(["Relu", "Tanh", "Exp", "Sqrt"], 16_000, 3_000)
    assert len(model.graph.nodes) > 99_000
    begun = time.process_time()
    assert len(graph_view(model, default_folding(model)).nodes) <= VISIBLE_NODES
    assert time.process_time() - begun < 15, "seconds; it takes 3 on a quiet machine"
