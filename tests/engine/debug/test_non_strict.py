"""Only what is asked for runs, inside loops and branches too (tf.while_loop: "the final value of
the counter i does not depend on x").
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.ops import same
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import Operation
from tests.draws import draws
from tests.engine.drafts import F32, I64, Draft, Ref
from tests.engine.drawn.agreement import WITHOUT_SHRINKING, Agreement

OFF = loopscope.Optimise(prune=False, fold=False, cse=False)


class Counted:
    """An operation of our own that counts how often it has run, also for shape inference:
    ``during`` tells what a run adds.
    """

    def __init__(self, *, pure: bool = True) -> None:
        self.calls = 0
        row = Operation(
            name="Counted", version=1, opsets=(1, 17), opset="extension", page="", kernel=self._kernel, infer=same, pure=pure
        )  # fmt: skip
        self.catalogue: Catalogue = CATALOGUE.with_operations([row])

    def _kernel(self, value: Any, /) -> Any:
        self.calls += 1
        return value + value.dtype.type(1)

    def during(
        self, model: loopscope.Model, fetches: Any, **options: Any
    ) -> tuple[loopscope.Result, int]:
        """A run, and how often it ran here; the plan is there before."""
        loopscope.run(model, fetches=[], catalogue=self.catalogue, **options)
        before = self.calls
        return loopscope.run(
            model, fetches=fetches, catalogue=self.catalogue, **options
        ), self.calls - before

    def graph(self) -> builder.Graph:
        return builder.Graph("counted", catalogue=self.catalogue)

    def apply(self, value: builder.Tensor) -> builder.Tensor:
        return value.graph.apply("Counted", [value], {})[0]


def counter_and_x(counted: Counted, n: int) -> loopscope.Model:
    """Example 4 of the page of tf.while_loop, with an operation that counts in the place of its
    Print.
    """
    graph = counted.graph()
    x = graph.constant(np.arange(4, dtype=np.float32))
    i, out = builder.while_loop(
        lambda i, x: i < n,
        lambda i, x: (i + 1, ops.add(counted.apply(x), 0.5, name="x_next")),
        (graph.constant(0), x),
    )
    return graph.model({"i": i, "out": out})


def test_fetching_the_counter_does_not_compute_x() -> None:
    counted = Counted()
    model = counter_and_x(counted, 100)
    result, calls = counted.during(model, "i")
    assert result.outputs[0] == 100
    assert calls == 0
    result, calls = counted.during(model, "out")
    assert result.outputs[0].tolist() == [150, 151, 152, 153]
    assert 100 <= calls < 103
    _, calls = counted.during(model, "i", optimise=OFF)
    assert 100 <= calls < 103, "switched off"


@pytest.mark.parametrize("iteration", [0, 2, 7, 999])
def test_a_value_of_an_early_iteration_takes_no_later_one(iteration: int) -> None:
    counted = Counted()
    result, calls = counted.during(
        counter_and_x(counted, 1000), f"main/while[{iteration}]/body/x_next"
    )
    assert result.finished
    assert result.outputs[0][0] == 1.5 * (iteration + 1)
    assert iteration + 1 <= calls < iteration + 4, (
        "shape inference and the first generated iteration may ask once more"
    )
    assert result.machine.frames[-1].iteration == iteration


def test_the_iterations_of_loops_in_loops() -> None:
    counted = Counted()
    graph = counted.graph()

    def inner(i: Any, x: Any) -> Any:
        return (
            i + 1,
            builder.for_loop(20, lambda j, v: ops.add(counted.apply(v), 0.0, name="v_next"), x),
        )

    _, out = builder.while_loop(
        lambda i, x: i < 30, inner, (graph.constant(0), graph.constant(np.float32(0)))
    )
    model = graph.model({"out": out})
    address = next(
        one.address
        for one in loopscope.run(model, catalogue=counted.catalogue).control_flow
        if "[3]" in one.address
    )
    result, calls = counted.during(model, [f"{address}[5]/body/v_next"])
    assert result.outputs[0] == 3 * 20 + 6
    assert 3 * 20 + 6 <= calls < 3 * 20 + 12


def test_outputs_of_a_branch_that_nobody_needs() -> None:
    counted = Counted()
    graph = counted.graph()
    x = graph.parameter("x", "f32", [])
    low, high = builder.cond(x > 0, lambda: (counted.apply(x), x * 2), lambda: (x, x * 3))
    model = graph.model({"low": low, "high": high})
    assert loopscope.run(model, [5], "high", catalogue=counted.catalogue).outputs[0] == 10
    assert counted.calls == 0
    assert loopscope.run(model, [5], ["high", "low"], catalogue=counted.catalogue).named == {
        "high": 10,
        "low": 6,
    }


def test_what_a_loop_collects_for_nobody() -> None:
    counted = Counted()
    graph = counted.graph()
    kept = builder.Collected("kept")

    def body(i: Any) -> Any:
        kept.append(counted.apply(i))
        return i + 1

    (last,) = builder.while_loop(lambda i: i < 5, body, (graph.constant(0),))
    model = graph.model({"i": last, "kept": kept.tensor})
    result, calls = counted.during(model, ["i"])
    assert result.outputs[0] == 5
    assert calls == 0


def failing(draft: Draft, value: Ref) -> Ref:
    """Fails whenever it runs: there is no element 7."""
    return draft.op("Reshape", value, draft.const([7], I64), special_zero="false")


def test_what_no_output_needs_neither_runs_nor_fails() -> None:
    draft = Draft()
    x = draft.parameter("x", F32, (-1,))
    failing(draft, x)
    draft.result(draft.op("Negative", x))
    model = draft.model()
    assert loopscope.run(model, [np.ones(2, np.float32)]).outputs[0].tolist() == [-1, -1]
    assert loopscope.Session(model).run([np.ones(2, np.float32)]).outputs[0].tolist() == [-1, -1]
    with pytest.raises(loopscope.RunStopped):
        loopscope.run(model, [np.ones(2, np.float32)], optimise=OFF)
    debugger = loopscope.Debugger(model, [np.ones(2, np.float32)])
    debugger.run()
    assert debugger.state == "failed", "the debugger runs all that it shows"


def test_a_debugger_for_a_few_tensors_skips_the_others() -> None:
    counted = Counted()
    debugger = loopscope.Debugger(
        counter_and_x(counted, 6), fetches="i", catalogue=counted.catalogue
    )
    before = counted.calls
    debugger.run()
    assert (debugger.state, counted.calls) == ("finished", before)
    statuses = debugger.statuses()
    assert statuses["main/while/body/x_next"] == "skipped"
    assert statuses["main/while/body/Add"] == "done"
    assert debugger.value("main/while[3]/body/Add") == 4
    with pytest.raises(
        loopscope.ValueUnavailable,
        match=r"x_next is not needed for what is fetched, and so it did not run$",
    ):
        debugger.value("main/while[3]/body/x_next")


def variable_model() -> loopscope.Model:
    """y = variable + x, and the variable becomes y."""
    draft = Draft()
    x = draft.parameter("x", F32, ())
    read = draft.op(
        "ReadValue",
        draft.const(0.0),
        opset=6,
        variable_id="v",
        variable_type="f32",
        variable_shape="",
    )
    total = draft.op("Add", read, x, name="total")
    draft.op("Assign", total, opset=6, variable_id="v", name="assign")
    draft.result(draft.op("Negative", x), name="other")
    return draft.model()


def test_variables_are_assigned_where_the_model_runs_and_not_where_a_tensor_is_fetched() -> None:
    session = loopscope.Session(variable_model())
    assert session.run([2]).outputs[0] == -2
    assert session.variables["v"] == 2, "an Assign is an output, whoever needs it"
    assert session.run([3], "total").outputs[0] == 5
    assert session.variables["v"] == 2, "as in TensorFlow, where only what is fetched runs"
    assert session.run([3], ["total", "assign"]).named == {"total": 5, "assign": 5}
    assert session.variables["v"] == 5


FED = builder.Graph("fed")
_x = FED.parameter("x", "f32", [2])
_start = ops.add(_x, 1.0, name="start")
_low, _high = ops.split(_start, 0, num_splits=2, name="halves")
_sum = _low + _high
FED_MODEL = FED.model({"sum": _sum, "start": _start})

FEEDS: dict[str, tuple[dict[Any, Any], Any, Any]] = {
    "by name": ({"start": [10, 20]}, ["sum"], [[30]]),
    "by address": ({"main/start": [10, 20]}, ["sum"], [[30]]),
    "by tensor": ({_start: [10, 20]}, [_sum], [[30]]),
    "an input, as a tensor": ({_x: [1, 2]}, [_start, "sum"], [[2, 3], [5]]),
    "one of two outputs": ({"halves:1": [7], "x": [1, 2]}, ["sum"], [[9]]),
    "what is fetched": ({"start": [10, 20]}, ["start"], [[10, 20]]),
    "without fetches": ({"start": [10, 20]}, None, [[30], [10, 20]]),
}


@pytest.mark.parametrize("case", FEEDS)
@pytest.mark.parametrize("optimise", [loopscope.Optimise(), OFF])
def test_feeding_a_tensor_cuts_what_computes_it(case: str, optimise: loopscope.Optimise) -> None:
    inputs, fetches, expected = FEEDS[case]
    if optimise is OFF and "x" not in inputs and _x not in inputs:
        inputs = {**inputs, "x": [0, 0]}
    assert [
        one.tolist() for one in loopscope.run(FED_MODEL, inputs, fetches, optimise=optimise).outputs
    ] == expected


WRONG_FEEDS: dict[str, tuple[dict[str, Any], str]] = {
    "no tensor": ({"nope": 1}, "there is no input 'nope'"),
    "another shape": (
        {"start": [1, 2, 3]},
        r"the tensor 'start': expected shape \[2\], got \[3\]",
    ),
    "too few": ({"halves:1": [7]}, "no value is given for 'x'"),
}


@pytest.mark.parametrize("case", WRONG_FEEDS)
def test_what_cannot_be_fed(case: str) -> None:
    inputs, words = WRONG_FEEDS[case]
    with pytest.raises(loopscope.InputError, match=words):
        loopscope.run(FED_MODEL, inputs, ["sum"])


def test_a_value_in_a_body_is_no_feed() -> None:
    counted = Counted()
    with pytest.raises(
        loopscope.InputError, match=r"lies in a body: loopscope\.Debugger\(model, inputs, changes="
    ):
        loopscope.run(
            counter_and_x(counted, 3),
            {"main/while[1]/body/Add": 1},
            ["i"],
            catalogue=counted.catalogue,
        )


def test_a_tensor_of_a_body_is_fetched_in_the_last_iteration() -> None:
    seen: list[builder.Tensor] = []
    graph = builder.Graph("body")

    def body(i: Any) -> Any:
        seen.append(i * 10)
        return i + 1

    (last,) = builder.while_loop(lambda i: i < 4, body, (graph.constant(0),))
    assert loopscope.run(graph.model(last), fetches=[last, seen[-1]]).named == {
        "main/while": 4,
        "main/while/body/Multiply": 30,
    }


@settings(
    max_examples=draws(30),
    deadline=None,
    phases=WITHOUT_SHRINKING,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**40))
def test_a_run_for_a_few_values_gives_what_a_whole_run_gives(seed: int) -> None:
    agreement = Agreement.of(seed)
    if agreement.is_short:
        for feeds, expected in agreement.stepped:
            agreement.pruned(feeds, expected)
            agreement.fetch(feeds, expected)
