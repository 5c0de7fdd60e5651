"""A provenance on the picture: from box to box along the lines that are drawn, however the loops
are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

import loopscope
from loopscope.explain.provenance import ProvenanceLink, ProvenanceStep, provenance
from loopscope.ir.address import graphs, labels
from loopscope.ir.model import Model
from loopscope.view.build import graph_view
from loopscope.view.folding import Folding
from loopscope.view.graph import GraphView, ViewEdge, ViewNode
from loopscope.view.origins import FARTHEST, highlight
from loopscope.view.unrolling import unroll
from tests.engine.view.models import chain, graph, node
from tests.engine.view.test_playback import COLLATZ, debugger_of

YEARS = "main/for_each_year"


def finished(sample: str, inputs: str) -> loopscope.Debugger:
    debugger = debugger_of(sample, inputs)
    debugger.run()
    return debugger


def loops(debugger: loopscope.Debugger) -> list[str]:
    at = [(place, node) for place in graphs(debugger.model) for node in place.graph.nodes]
    return [
        f"{place.address}/{labels(place.graph)[node.id]}"
        for place, node in at
        if len(node.bodies) == 1
    ]


def unrolled(debugger: loopscope.Debugger) -> Folding:
    folding = Folding()
    for loop in loops(debugger):
        folding = unroll(debugger.model, folding, loop, debugger, 3)
    return folding


WAYS_TO_DRAW: dict[str, Callable[[loopscope.Debugger], Folding]] = {
    "open": lambda debugger: Folding(),
    "folded": lambda debugger: Folding(frozenset(loops(debugger))),
    "unrolled": unrolled,
}


def lines(view: GraphView, steps: tuple[ProvenanceStep, ...]) -> Counter[tuple[str, str, str]]:
    """Kinds and ends of the lines that light up."""
    found = highlight(view, steps)
    edges = [view.by_id[id] for id in found.lines]
    nodes = {node.id: node.address for node in view.nodes}
    return Counter(
        (edge.kind, nodes[edge.source], nodes[edge.target])
        for edge in edges
        if isinstance(edge, ViewEdge)
    )


@pytest.mark.parametrize("drawn", WAYS_TO_DRAW)
@pytest.mark.parametrize(
    ("sample", "inputs"),
    [
        ("collatz", "three"),
        ("for_loop", "three_years"),
        ("decoder", "sure_sentence"),
        ("count_primes", "up_to_10"),
        ("keras_gru", "five_steps"),
        ("slice_and_concatenate", "six_equal_rows"),
        ("walking_backwards", "prize_at_the_end"),
    ],
)
def test_each_line_that_lights_up_leads_to_what_it_made(
    sample: str, inputs: str, drawn: str
) -> None:
    debugger = finished(sample, inputs)
    view = graph_view(debugger.model, WAYS_TO_DRAW[drawn](debugger))
    nodes = {node.id: node for node in view.nodes}
    results = [node.id for node in debugger.model.graph.nodes if node.type == "Result"]
    for source in (debugger.model.graph.sources[layer][0] for layer in results):
        assert source is not None
        label = labels(debugger.model.graph)[source.layer]
        asked = f"main/{label}:{source.output}" if source.output else f"main/{label}"
        steps = provenance(debugger, asked)
        found = highlight(view, steps)
        assert found.lines or drawn == "folded", (
            "only a counter comes from nothing outside its loop"
        )
        for id, distance in found.lines.items():
            edge = view.by_id[id]
            assert isinstance(edge, ViewEdge)
            assert found.boxes[edge.target] <= distance <= FARTHEST
            assert edge.source in found.boxes
        # Nothing hangs in the air: a line leads on from each box but the value itself, headers that
        # decided, ends of cut lines, and conditions in copies of an unrolled body, between which no
        # line is drawn.
        deciding = [
            link.address
            for step in steps
            for link in step.links
            if link.role == "condition" and drawn == "unrolled"
        ]
        last = {view.node_of[address].id for address in deciding if address in view.node_of}
        made = {edge.source for edge in view.edges if edge.id in found.lines}
        loose = [
            nodes[id] for id, distance in found.boxes.items() if distance and id not in made | last
        ]
        assert all(node.kind in ("condition", "control", "more", "cut_end") for node in loose), (
            loose
        )


def test_back_edges_slices_and_branches() -> None:
    debugger = finished("for_loop", "three_years")
    view = graph_view(debugger.model, Folding())
    found = highlight(view, provenance(debugger, f"{YEARS}[2]/body/next_balance"))
    into = (f"{YEARS}/body/next_balance", f"{YEARS}/body/balance")
    distance = {
        edge.kind: found.lines[edge.id]
        for edge in view.edges
        for end in into
        if edge.target == view.node_of[end].id
    }
    assert distance["data"] < distance["back"] < distance["input_map"], (
        "the way of time: made now, handed on, begun with"
    )
    debugger = finished("collatz", "three")
    view = graph_view(debugger.model, Folding())
    chosen = lines(view, provenance(debugger, f"{COLLATZ}[1]/body/if_even"))
    assert ("condition", f"{COLLATZ}/body/equal", f"{COLLATZ}/body/if_even") in chosen
    merged = {source for kind, source, _ in chosen if kind == "merge"}
    assert merged == {
        f"{COLLATZ}/body/if_even/then/result",
        f"{COLLATZ}/body/if_even/else/result",
    }, "3 became 10 in the other"


def test_in_copies_each_iteration_lights_up_by_itself() -> None:
    debugger = finished("collatz", "three")
    view = graph_view(debugger.model, unroll(debugger.model, Folding(), COLLATZ, debugger, 3))
    found = lines(view, provenance(debugger, f"{COLLATZ}[1]/body/number"))
    carried = [ends for kind, *ends in found if kind == "carried"]
    assert carried == [[f"{COLLATZ}[0]/body/next_number_result", f"{COLLATZ}[1]/body/number"]]
    later = view.node_of[COLLATZ]
    assert isinstance(later, ViewNode)
    boxes = highlight(view, provenance(debugger, f"{COLLATZ}[6]/body/number", 40)).boxes
    more = next(node for node in view.nodes if node.kind == "more")
    assert boxes[more.id] == 0, "what is not in the window lights the box that stands for it"


def test_a_cut_line_lights_up_at_both_ends() -> None:
    view = graph_view(chain(40, reach=30), Folding())
    steps = (
        ProvenanceStep("main/relu_39", "Add", (ProvenanceLink("main/relu_9", "operand"),), 0),
        ProvenanceStep("main/relu_9", "Relu", (), 1),
    )
    found = highlight(view, steps)
    assert Counter(view.by_id[id].kind for id in found.lines) == {"cut_end": 1, "data": 1}
    assert sum(node.kind == "cut_end" and node.id in found.boxes for node in view.nodes) == 2


@pytest.mark.timeout(30)
def test_thousands_of_operands_light_up_in_linear_time() -> None:
    count = 3_000
    parts = [node(number, f"part_{number}", "Relu", 1) for number in range(count)]
    model = Model(
        graph(
            [*parts, node(count, "all", "Concat", count)],
            [(number, count, number) for number in range(count)],
        )
    )
    links = tuple(ProvenanceLink(f"main/part_{number}", "operand") for number in range(count))
    assert (
        len(
            highlight(
                graph_view(model, Folding()), (ProvenanceStep("main/all", "Concat", links, 0),)
            ).lines
        )
        == count
    )
