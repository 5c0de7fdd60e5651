"""Notes about loops that a converter may have changed: where they are said, and where not."""

from __future__ import annotations

import pytest
from onnx import parser

import loopscope
from loopscope import builder
from loopscope.checks.diagnostic import Severity
from loopscope.ir.replace import replace


def _starting(called: str, start: float, trips: int | None) -> loopscope.Model:
    graph = builder.Graph(called)
    loop = builder.while_loop if called == "while_loop" else builder.do_while
    return graph.model(
        loop(
            lambda v: v < 20.0, lambda v: v * 2.0, [graph.constant(start)], maximum_iterations=trips
        )
    )


@pytest.mark.parametrize(
    ("called", "start", "trips", "is_noted"),
    [
        ("while_loop", 1.0, None, False),
        ("while_loop", 21.0, None, False),
        ("do_while", 1.0, None, False),
        ("do_while", 21.0, None, True),
        ("do_while", 21.0, 5, False),
    ],
)
def test_a_first_condition_that_is_computed_from_constants_is_asked(
    called: str, start: float, trips: int | None, is_noted: bool
) -> None:
    """Of ``1 < 20`` the check knows that it is true; the loop asks before its first iteration
    all the same.
    """
    assert (
        "LS931"
        in {one.code for one in loopscope.check(_starting(called, start, trips)).diagnostics}
    ) is is_noted


def _counting(initial: str, body: str, compared: str = "m", bound: str = "4") -> loopscope.Model:
    """An ONNX Loop over ``m`` that begins at ``initial``, a number or an input of the model."""
    weights = f"bool go = {{1}}, int64 one = {{1}}, int64 bound = {{{bound}}}" + (
        "" if initial == "n" else f", int64 z = {{{initial}}}"
    )
    start = "n" if initial == "n" else "z"
    step = f"b (int64 i, bool c, int64 p) => (bool k, int64 m) {{ {body} k = Less ({compared}, bound) }}"
    text = f'<ir_version: 8, opset_import: ["" : 17]>\nmain (int64 n) => (int64 y) <{weights}> {{ y = Loop (, go, {start}) <body = {step}> }}'
    return loopscope.read_model(parser.parse_model(text).SerializeToString())


@pytest.mark.parametrize(
    ("initial", "body", "compared", "severities"),
    [
        ("0", "m = Add (p, one)", "m", []),
        ("3", "m = Add (p, one)", "m", []),
        ("4", "m = Add (p, one)", "m", [Severity.WARNING]),
        ("9", "m = Add (p, one)", "m", [Severity.WARNING]),
        ("n", "m = Add (p, one)", "m", [Severity.NOTE]),
        ("0", "m = Add (p, one)", "p", []),
        ("9", "m = Add (p, one)", "p", [Severity.WARNING]),
        ("0", "m = Add (p, one) q = Mul (m, m)", "q", []),
        ("2", "m = Add (p, one) q = Mul (m, m)", "q", [Severity.WARNING]),
        ("2", "m = Add (p, i) q = Mul (m, i)", "q", [Severity.NOTE]),
    ],
)
def test_a_condition_that_is_known_before_the_first_iteration(
    initial: str, body: str, compared: str, severities: list[Severity]
) -> None:
    """It is computed on the initial values: nothing is said where it is true, and a warning
    where it is false.
    """
    report = loopscope.check(_counting(initial, body, compared))
    assert [one.severity for one in report.diagnostics if one.code == "LS931"] == severities


def test_a_loop_whose_condition_is_nowhere_is_checked() -> None:
    """A damaged file's Loop may have one input only."""
    model = _starting("do_while", 1.0, None)
    nodes = tuple(
        replace(one, inputs=one.inputs[:1]) if one.type == "Loop" else one
        for one in model.graph.nodes
    )
    cut = replace(model, graph=replace(model.graph, nodes=nodes))
    assert not loopscope.check(cut).ok


def test_a_recurrence_of_which_a_node_has_lost_its_inputs_is_checked() -> None:
    """The trip count is followed back to a shape, through nodes of a file that may be damaged."""
    model = loopscope.read_model("sample_models/linear_attention/model.xml")
    for lost in model.graph.nodes:
        nodes = tuple(replace(one, inputs=()) if one is lost else one for one in model.graph.nodes)
        assert loopscope.check(
            replace(model, graph=replace(model.graph, nodes=nodes))
        ).ok is not bool(lost.inputs)
