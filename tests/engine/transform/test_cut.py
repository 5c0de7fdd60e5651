"""A part that is cut out of a model computes what the model computed there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope.cases import Case, recorded_case
from loopscope.errors import AddressError, EngineError, ValueUnavailable
from loopscope.ir.address import graphs, nodes
from loopscope.ir.model import Model, Node
from tests.engine.drawn.graph import Choices
from tests.engine.drawn.models import drawn_model

pytestmark = pytest.mark.filterwarnings("ignore")
CAPTURING = """<ir_version: 8, opset_import: ["" : 17]>
main (float[2] x, int64 n) => (float[2] y, float[2] z) <float[2] weight = {2, 3}> {
  shift = Neg (x)
  y = Loop (n, , x) <body = step (int64 i, bool go, float[2] v) => (bool again, float[2] w) {
    again = Identity (go)
    scaled = Mul (v, weight)
    w = Add (scaled, shift)
  }>
  z = Add (y, shift)
}"""
LIMITS = loopscope.Limits(iterations=2000)


def capturing() -> Model:
    return loopscope.read_model(parser.parse_model(CAPTURING).SerializeToString())


def finished(model: Model, inputs: Any) -> loopscope.Debugger:
    run = loopscope.Debugger(model, inputs, seed=1, limits=LIMITS)
    run.run()
    return run


def computes_again(case: Case) -> bool:
    """Return True if a case computes the expected outputs bit for bit."""
    outputs = loopscope.run(case.model, list(case.inputs.values()), limits=LIMITS).outputs
    return [np.asarray(value).tobytes() for value in outputs] == [
        np.asarray(value).tobytes() for value in case.expected.values()
    ]


def operations(model: Model) -> Iterator[tuple[str, Node]]:
    return (
        (address, node)
        for address, node in nodes(model)
        if node.type not in ("Parameter", "Result") and node.constant is None
    )


@pytest.mark.parametrize("seed", range(0, 400, 10))
def test_a_part_of_a_drawn_model_computes_what_was_recorded(seed: int) -> None:
    """Random numbers and variables in inner graphs are refused."""
    model, feeds = drawn_model(seed)
    run = finished(model, feeds[0])
    if run.state != "finished":
        return
    choices = Choices(seed)
    places = [(place.address, 0) for place in graphs(model)]
    places += [(address, choices.integer(3)) for address, _ in operations(model)]
    for address, around in [choices.pick(places) for _ in range(8)]:
        try:
            case = recorded_case(run, address, around=around)
        except ValueUnavailable:  # the branch did not run
            continue
        except EngineError as error:
            if "was not recorded" not in str(error):
                raise
            continue
        assert computes_again(case), address


def test_a_weight_stays_a_weight_and_a_captured_value_becomes_an_input() -> None:
    body = loopscope.cut(capturing(), "main/Loop_1/body")
    assert [port.name for port in body.inputs] == ["i", "go", "v", "shift"]
    assert [port.name for port in body.outputs] == ["again", "w"]
    weights = [node.name for node in body.graph.nodes if node.constant is not None]
    assert weights == ["weight"]
    assert [str(port.element_type) for port in body.inputs] == ["i64", "boolean", "f32", "f32"]


@pytest.mark.parametrize(
    ("part", "inputs", "outputs"),
    [
        ({"address": "main/Loop_1"}, ["n", "x", "shift"], ["y"]),
        ({"address": "main/Add_2", "around": 1}, ["n", "x"], ["y", "z"]),
        ({"address": "Loop_1/body/Mul_1"}, ["v"], ["scaled"]),
        ({"address": "Loop_1/body"}, ["i", "go", "v", "shift"], ["again", "w"]),
        ({"start": "main/Loop_1", "end": "main/Add_2"}, ["n", "x", "shift"], ["z"]),
        ({"start": "Mul_1", "end": "Loop_1/body/Add_2"}, ["v", "shift"], ["w"]),
        ({"address": "main"}, ["x", "n"], ["y", "z"]),
    ],
    ids=str,
)
def test_parts_have_the_inputs_that_they_read(
    part: dict[str, Any], inputs: list[str], outputs: list[str]
) -> None:
    model = loopscope.cut(capturing(), **part)
    assert sorted(port.name for port in model.inputs) == sorted(inputs)
    assert [port.name for port in model.outputs] == outputs


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({}, "expected one address, or the two ends of a path"),
        ({"address": "main", "start": "x"}, "expected one address, or the two ends of a path"),
        ({"start": "Mul_1"}, "expected one address, or the two ends of a path"),
        ({"address": "nothing"}, "no node or graph 'nothing'"),
        ({"address": "main/x"}, "is a Parameter: expected an operation or a graph"),
        ({"address": "main/Loop_1/body", "around": 1}, "a neighbourhood is that of a node"),
        ({"start": "main/Add_2", "end": "main/Loop_1"}, "no path leads from"),
        ({"start": "main/Neg_0", "end": "Mul_1"}, "are in different graphs"),
    ],
    ids=str,
)
def test_what_is_no_part_is_refused(part: dict[str, Any], message: str) -> None:
    with pytest.raises(AddressError, match=message):
        loopscope.cut(capturing(), **part)


def test_iterations_select_the_recorded_values() -> None:
    run = finished(capturing(), {"x": np.array([1, 1], np.float32), "n": 3})
    values = [
        recorded_case(run, "main/Loop_1/body", iteration=number).inputs["v"].tolist()
        for number in range(3)
    ]
    assert values == [[1, 1], [1, 2], [1, 5]]
    last = recorded_case(run, "Loop_1[1]/body/Mul_1")
    assert (last.place, last.inputs["v"].tolist()) == ("main/Loop_1[1]/body", [1, 2])
    with pytest.raises(ValueUnavailable, match="iteration 7"):
        recorded_case(run, "main/Loop_1/body", iteration=7)
    with pytest.raises(AddressError, match="names iteration 1, and iteration 2"):
        recorded_case(run, "main/Loop_1[1]/body", iteration=2)
    with pytest.raises(AddressError, match="not inside a loop"):
        recorded_case(run, "main/Add_2", iteration=2)


def test_random_numbers_become_inputs() -> None:
    graph = loopscope.builder.Graph("random")
    x = graph.parameter("x", "f32", [3])
    noise = loopscope.builder.ops.random_uniform(
        graph.constant([3]), graph.constant(0.0), graph.constant(1.0), output_type="f32"
    )
    run = finished(graph.model({"y": x + noise}), [np.zeros(3, np.float32)])
    case = recorded_case(run, "main")
    assert len(case.inputs) == 2
    assert computes_again(case)
