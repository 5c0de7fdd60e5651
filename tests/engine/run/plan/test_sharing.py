"""Common subexpressions: computed once, shown everywhere, not shared where a person has set a value."""

from __future__ import annotations

import numpy as np

import engine
from engine import build
from engine.build import ops
from engine.run.plan.planner import plan_of


def twice(values: build.Tensor) -> build.Tensor:
    return ops.add(ops.add(values, 1.0), ops.add(values, 1.0))


def model_of_twos() -> engine.Model:
    graph = build.Graph("twos")
    x = graph.parameter("x", "f32", [3])
    (last,) = build.while_loop(lambda v: ops.reduce_sum(v, 0) < 1000.0, twice, [x])
    return graph.model({"last": last, "tanh": ops.tanh(x) * ops.tanh(x), "other": ops.sinh(x)})


def shared(model: engine.Model, optimise: engine.Optimise) -> list[str]:
    plan = plan_of(model, optimise=optimise)
    return [one.label for program in plan.programs for one in program.instructions if one.same_as]


X = np.array([1, 2, 3], np.float32)


def test_operations_that_compute_the_same_are_found_through_equal_constants() -> None:
    model = model_of_twos()
    assert shared(model, engine.Optimise()) == ["Tanh_1", "Add_1"]
    assert shared(model, engine.Optimise(cse=False)) == []


def test_each_still_has_its_value_and_a_changed_one_is_its_own() -> None:
    model = model_of_twos()
    debugger = engine.Debugger(model, [X])
    debugger.run()
    assert debugger.value("main/while[1]/body/Add").tolist() == debugger.value("main/while[1]/body/Add_1").tolist() == [5, 7, 9]
    changed = engine.Debugger(model, [X], changes={"main/while[1]/body/Add": np.zeros(3, np.float32)})
    changed.run()
    assert changed.value("main/while[1]/body/Add_1").tolist() == [5, 7, 9]
    assert changed.value("main/while[1]/body/Add_2").tolist() == [5, 7, 9]


def test_it_makes_no_difference_to_what_a_run_gives() -> None:
    model = model_of_twos()
    on, off = (engine.run(model, [X], optimise=one) for one in (engine.Optimise(), engine.Optimise(cse=False)))
    assert [one.tolist() for one in on.outputs] == [one.tolist() for one in off.outputs]
