"""The check knows the element types that ONNX's operations give, whatever the file says; ONNX
Runtime opens what it does not warn of.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnxruntime
import pytest
from onnx import parser
from onnx.backend.test.case.node import collect_testcases

import loopscope
from loopscope.checks.propagate import propagate
from loopscope.ir.element_type import ElementType
from loopscope.ops.onnx_catalogue import ELEMENT_TYPES, ONNX
from tests.draws import share

HEADER = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]> g '
REGRESSOR = "ai.onnx.ml.LinearRegressor <coefficients: floats = [1.0, 2.0]> (x)"
MODELS: dict[str, tuple[str, list[str]]] = {
    "of an input": (
        "(double[N, 2] x) => (float[N, 2] y) { y = Neg (x) }",
        ["Output 0 is declared f32, but it is f64."],
    ),
    "of the second input": (
        "(float[N, 2] x, double[1] t) => (float[N, 2] y) { y = CastLike (x, t) }",
        ["Output 0 is declared f32, but it is f64."],
    ),
    "of an attribute": (
        "(float[N, 2] x) => (float[N, 2] y) { y = Cast <to: int = 10> (x) }",
        ["Output 0 is declared f32, but it is f16."],
    ),
    "of no type": ("(float[N, 2] x) => (float[N, 2] y) { y = Cast <to: int = 99> (x) }", []),
    "always one": (
        f"(double[N, 2] x) => (double[N, 1] y) {{ y = {REGRESSOR} }}",
        ["Output 0 is declared f64, but it is f32."],
    ),
    "of a later one": (
        "(float[N, 2] x) => (float[N, 1] y, float[N, 1] z) { y, z = Split <axis: int = 1, num_outputs: int = 2> (x) }",
        [],
    ),
    "of the later one": (
        "(float[N, 2] x) => (float[N, 1] y, double[N, 1] z) { y, z = Split <axis: int = 1, num_outputs: int = 2> (x) }",
        ["Output 1 is declared f64, but it is f32."],
    ),
    "passed on": (
        f"(double[N, 2] x) => (float[N, 1] z) {{ y = {REGRESSOR} z = Mul (y, x) }}",
        ["Inputs 0 and 1 of Mul-14 are f32 and f64, but must have one type."],
    ),
    "settled by nothing": (
        "(float[N, 2] x) => (int32[N, 2] y) { y = QuantizeLinear <output_dtype: int = 6> (x, x) }",
        [],
    ),
}


@pytest.mark.parametrize(("text", "told"), MODELS.values(), ids=MODELS.keys())
def test_a_declared_type_that_the_operation_does_not_give(text: str, told: list[str]) -> None:
    data = parser.parse_model(HEADER + text).SerializeToString()
    report = loopscope.check(loopscope.read_model(data))
    assert [one.message for one in report.warnings if one.code in ("LS704", "LS705")] == told
    if told:
        with pytest.raises(Exception, match="Type Error"):
            onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


MIXED = {
    "product": "y = Mul ({}, {})",
    "quotient": "y = Div ({}, {})",
    "remainder": "y = Mod <fmod: int = 1> ({}, {})",
    "greatest": "y = Max ({}, {})",
    "sum of three": "y = Sum ({0}, {1}, {0})",
    "joined": "y = Concat <axis: int = 0> ({}, {})",
    "chosen": "c = Less (x, x) y = Where (c, {}, {})",
    "matrices": "y = MatMul ({}, {})",
    "gated": "y = PRelu ({}, {})",
    "scattered": "i = Sub (j, j) y = ScatterElements ({0}, i, {1})",
}


@pytest.mark.parametrize(
    "types",
    [("int64", "float"), ("float", "double"), ("float16", "float"), ("int8", "float16")],
    ids="-".join,
)
@pytest.mark.parametrize("order", ["x k", "k x"])
@pytest.mark.parametrize("node", MIXED.values(), ids=MIXED.keys())
def test_mixed_operands_have_one_type_in_check_and_run(
    node: str, order: str, types: tuple[str, str]
) -> None:
    text = f"({types[0]}[2] x, {types[1]}[2] k, int64[2] j) => (float[N] y) {{ {node.format(*order.split())} }}"
    model = loopscope.read_model(parser.parse_model(HEADER + text).SerializeToString())
    propagated = propagate(model, ONNX)
    expected = propagated.output("main", model.graph.results[0].id).element_type
    arrays = [np.ones(2, ELEMENT_TYPES[name].dtype) for name in (*types, "int64")]
    result = loopscope.run(model, dict(zip("xkj", arrays, strict=True)))
    assert expected is ElementType.of(np.empty(0, np.result_type(*arrays[:2])))
    assert ElementType.of(np.asarray(result.outputs[0])) is expected


@pytest.mark.parametrize("order", ["x, k", "k, x"])
@pytest.mark.parametrize(
    ("carried", "other"), [("int64", "float"), ("float", "double"), ("float16", "float")]
)
@pytest.mark.parametrize("operation", ["Mul", "Max", "Sum"])
def test_carried_value_that_changes_its_type(
    operation: str, carried: str, other: str, order: str
) -> None:
    body = f"body (int64 i, bool go, {carried}[2] x) => (bool next, {carried}[2] out) {{ next = Identity (go) out = {operation} ({order}) }}"
    text = f"({carried}[2] x0, {other}[2] k, int64 n) => ({carried}[2] y) {{ y = Loop (n, , x0) <body: graph = {body}> }}"
    report = loopscope.check(
        loopscope.read_model(parser.parse_model(HEADER + text).SerializeToString())
    )
    named = {name: str(ELEMENT_TYPES[name]) for name in (carried, other)}
    wide = "f64" if "f64" in named.values() or carried == "int64" else "f32"
    messages = [one.message for one in report.errors if one.code == "LS502"]
    assert messages == [
        f"The carried value starts as {named[carried]} and becomes {wide} in the body."
    ]
    assert [one.code for one in report.warnings if one.code == "LS704"] == ["LS704"]


@pytest.mark.parametrize("order", ["s, k", "k, s"])
def test_state_of_a_scan_that_changes_its_type(order: str) -> None:
    body = f"step (float[2] s, float[2] e) => (float[2] n) {{ n = Add ({order}) }}"
    text = f"(float[2] s0, double[2] k, float[3, 2] x) => (float[2] y) {{ y = Scan <num_scan_inputs = 1, body = {body}> (s0, x) }}"
    report = loopscope.check(
        loopscope.read_model(parser.parse_model(HEADER + text).SerializeToString())
    )
    assert [one.message for one in report.errors] == [
        "The carried value starts as f32 and becomes f64 in the body."
    ]


def _healthy() -> Iterator[tuple[str, bytes]]:
    """ONNX's own tests of its operations, of each the first."""
    seen = set()
    for case in collect_testcases(None):
        if (
            case.model is not None
            and (kinds := tuple(node.op_type for node in case.model.graph.node)) not in seen
        ):
            seen.add(kinds)
            yield case.name, case.model.SerializeToString()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_said_of_models_that_agree_with_themselves() -> None:
    warned = {
        name
        for name, data in share(list(_healthy()), parts=4)
        if any(
            one.code == "LS705" for one in loopscope.check(loopscope.read_model(data)).diagnostics
        )
    }
    assert not warned
