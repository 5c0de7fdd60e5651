"""Notes about loops that a converter may have changed: where they are said, and where not."""

from __future__ import annotations

import pytest

import engine
from engine import build
from engine.ir.replace import replace


def _starting(called: str, start: float, trips: int | None) -> engine.Model:
    graph = build.Graph(called)
    loop = build.while_loop if called == "while_loop" else build.do_while
    return graph.model(loop(lambda v: v < 20.0, lambda v: v * 2.0, [graph.constant(start)], maximum_iterations=trips))


@pytest.mark.parametrize(
    ("called", "start", "trips", "is_noted"),
    [("while_loop", 1.0, None, False), ("while_loop", 21.0, None, False), ("do_while", 1.0, None, True), ("do_while", 1.0, 5, False)],
)
def test_a_first_condition_that_is_computed_from_constants_is_asked(called: str, start: float, trips: int | None, is_noted: bool) -> None:
    """Of ``1 < 20`` the check knows that it is true; the loop asks before its first iteration all the same."""
    assert ("LS931" in {one.code for one in engine.check(_starting(called, start, trips)).diagnostics}) is is_noted


def test_a_loop_whose_condition_is_nowhere_is_checked() -> None:
    """A damaged file's Loop may have one input only."""
    model = _starting("do_while", 1.0, None)
    nodes = tuple(replace(one, inputs=one.inputs[:1]) if one.type == "Loop" else one for one in model.graph.nodes)
    cut = replace(model, graph=replace(model.graph, nodes=nodes))
    assert not engine.check(cut).ok


def test_a_recurrence_of_which_a_node_has_lost_its_inputs_is_checked() -> None:
    """The trip count is followed back to a shape, through nodes of a file that may be damaged."""
    model = engine.read_model("sample_models/linear_attention/model.xml")
    for lost in model.graph.nodes:
        nodes = tuple(replace(one, inputs=()) if one is lost else one for one in model.graph.nodes)
        assert engine.check(replace(model, graph=replace(model.graph, nodes=nodes))).ok is not bool(lost.inputs)
