"""What is said of the operations that a run leaves out."""

from __future__ import annotations

import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.executor.plan.analyses import left_out, left_out_for_outputs
from loopscope.executor.plan.planner import plan_of


def counter_of_a_pair() -> loopscope.Model:
    """Of a counter and a vector only the counter is an output; two operations compute the same."""
    graph = builder.Graph("pair")
    n, x = graph.parameter("n", "i64", []), graph.parameter("x", "f32", [3])
    i, _ = builder.while_loop(
        lambda i, x: i < n,
        lambda i, x: (ops.add(i, 1, name="count"), ops.sqrt(x, name="root")),
        (0, x),
    )
    return graph.model({"i": i, "twice": ops.tanh(x, name="one") + ops.tanh(x, name="other")})


def test_a_run_for_the_outputs_leaves_out_what_they_do_not_need() -> None:
    plan = plan_of(counter_of_a_pair())
    assert left_out(plan).sentences() == ("computed once: main/other with main/one",)
    assert left_out_for_outputs(plan).sentences() == (
        "removed as not needed: main/while/body/root",
        "computed once: main/other with main/one",
    )


def test_it_is_what_such_a_run_says_itself() -> None:
    model = counter_of_a_pair()
    assert left_out_for_outputs(plan_of(model)) == loopscope.run(model, [4, [1, 4, 9]]).left_out


@pytest.mark.parametrize(
    "optimise", [loopscope.Optimise(prune=False), loopscope.Optimise(prune=False, cse=False)]
)
def test_without_pruning_nothing_is_removed(optimise: loopscope.Optimise) -> None:
    assert left_out_for_outputs(plan_of(counter_of_a_pair(), optimise=optimise)).removed == ()
