"""Common subexpressions: computed once, shown everywhere, not shared where a person has set a
value.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx.parser import parse_model

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.executor.plan.planner import plan_of


def twice(values: builder.Tensor) -> builder.Tensor:
    return ops.add(ops.add(values, 1.0), ops.add(values, 1.0))


def model_of_twos() -> loopscope.Model:
    graph = builder.Graph("twos")
    x = graph.parameter("x", "f32", [3])
    (last,) = builder.while_loop(lambda v: ops.reduce_sum(v, 0) < 1000.0, twice, [x])
    return graph.model({"last": last, "tanh": ops.tanh(x) * ops.tanh(x), "other": ops.sinh(x)})


def shared(model: loopscope.Model, optimise: loopscope.Optimise) -> list[str]:
    plan = plan_of(model, optimise=optimise)
    return [one.label for program in plan.programs for one in program.instructions if one.same_as]


X = np.array([1, 2, 3], np.float32)


def test_operations_that_compute_the_same_are_found_through_equal_constants() -> None:
    model = model_of_twos()
    assert shared(model, loopscope.Optimise()) == ["Tanh_1", "Add_1"]
    assert shared(model, loopscope.Optimise(cse=False)) == []


def test_each_still_has_its_value_and_a_changed_one_is_its_own() -> None:
    model = model_of_twos()
    debugger = loopscope.Debugger(model, [X])
    debugger.run()
    assert (
        debugger.value("main/while[1]/body/Add").tolist()
        == debugger.value("main/while[1]/body/Add_1").tolist()
        == [5, 7, 9]
    )
    changed = loopscope.Debugger(
        model, [X], changes={"main/while[1]/body/Add": np.zeros(3, np.float32)}
    )
    changed.run()
    assert changed.value("main/while[1]/body/Add_1").tolist() == [5, 7, 9]
    assert changed.value("main/while[1]/body/Add_2").tolist() == [5, 7, 9]


def test_it_makes_no_difference_to_what_a_run_gives() -> None:
    model = model_of_twos()
    on, off = (
        loopscope.run(model, [X], optimise=one)
        for one in (loopscope.Optimise(), loopscope.Optimise(cse=False))
    )
    assert [one.tolist() for one in on.outputs] == [one.tolist() for one in off.outputs]


@pytest.mark.parametrize(
    ("attributes", "count"),
    [
        (("alpha: float = 0.5", "alpha: float = 0.5"), 1),
        (("alpha: float = 0.0", "alpha: float = -0.0"), 0),
        (("alpha: float = 0.5", "alpha: float = 0.25"), 0),
        (("", ""), 1),
    ],
)
def test_attributes_are_compared_exactly(attributes: tuple[str, str], count: int) -> None:
    one, other = (f"<{text}>" if text else "" for text in attributes)
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    main (float[3] x) => (float[3] y, float[3] z) {{ y = LeakyRelu {one} (x) z = LeakyRelu {other} (x) }}"""
    model = loopscope.read_model(parse_model(text).SerializeToString())
    assert len(shared(model, loopscope.Optimise())) == count


def test_operations_with_a_tensor_for_an_attribute_run() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    main (int64[1] x) => (float[N] y, float[N] z) {
      y = ConstantOfShape <value: tensor = float[1] {2}> (x)
      z = ConstantOfShape <value: tensor = float[1] {3}> (x)
    }"""
    result = loopscope.run(
        loopscope.read_model(parse_model(text).SerializeToString()), [np.array([2])]
    )
    assert [one.tolist() for one in result.outputs] == [[2, 2], [3, 3]]


@pytest.mark.parametrize(("length", "count"), [(64, 1), (65, 0)])
def test_long_lists_are_not_compared(length: int, count: int) -> None:
    """A forest has hundreds of thousands of nodes: comparing them took longer than running it."""
    scaler = f"ai.onnx.ml.Scaler <offset: floats = [{', '.join(['0.5'] * length)}], scale: floats = [2.0]> (x)"
    text = f"""<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
    main (float[N, {length}] x) => (float[N, {length}] y, float[N, {length}] z) {{ y = {scaler} z = {scaler} }}"""
    model = loopscope.read_model(parse_model(text).SerializeToString())
    assert len(shared(model, loopscope.Optimise())) == count
