"""Each rule finds its fault in a sample, and says so in the same words as ever."""

from __future__ import annotations

import os
from pathlib import Path

import onnxruntime
import pytest
from onnx import parser

from loopscope.checks.check import check, checked
from loopscope.checks.diagnostic import InvalidModel
from loopscope.checks.rule import HEADINGS, Rule
from loopscope.checks.rules import BY_CODE, GROUPS, RULES, onnxruntime_results
from loopscope.checks.text import documented, explanation, render
from loopscope.ops.catalogue import CATALOGUE
from loopscope.read import read_model
from tests.engine.checks.documents import BASES, WEIGHTS
from tests.engine.checks.samples import SAMPLES

GOLDEN = Path(__file__).parent / "golden"
REWRITE = os.environ.get("LOOPSCOPE_REWRITE_GOLDEN") == "1"
"""The only way to write a golden report; a test that fails never does."""


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_sample(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime_results, "lacks_vnni", lambda: False)
    assert code in SAMPLES, "add a model with this fault to SAMPLES in samples.py"
    model = SAMPLES[code].model()
    report = check(model, CATALOGUE)
    assert code in {one.code for one in report.diagnostics}
    text = render(report) + "\n"
    golden = GOLDEN / f"{code}_{BY_CODE[code].name}.txt"
    if REWRITE:
        golden.write_text(text, encoding="utf-8")
    assert golden.exists(), "run this test with LOOPSCOPE_REWRITE_GOLDEN=1, and read the report"
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("code", sorted(rule.code for rule in RULES if rule.before_running))
def test_errors_keep_a_model_from_running(code: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        checked(SAMPLES[code].model(), CATALOGUE)
    assert code in {one.code for one in caught.value.report.errors}


@pytest.mark.parametrize("base", [name for name in BASES if name != "nested"])
def test_sound_models_have_no_problems(base: str) -> None:
    assert (
        render(check(read_model(BASES[base].encode(), WEIGHTS), CATALOGUE)) == "No problems found."
    )


def test_codes_and_names_are_unique_and_in_order() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert sum(len(group) for group in GROUPS.values()) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_rules_are_explained(rule: Rule) -> None:
    summary, parts = documented(rule)
    assert summary.endswith(".")
    assert tuple(parts) == HEADINGS
    assert all(parts.values())
    assert explanation(rule).startswith(rule.code)


def test_only_errors_are_asked_before_running() -> None:
    assert not [
        rule.code for rule in RULES if rule.before_running and rule.severity.value != "error"
    ]


def test_no_golden_report_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {
        f"{rule.code}_{rule.name}" for rule in RULES
    }


@pytest.mark.parametrize(
    ("declared", "call", "told"),
    [
        (
            "int32[2] x",
            "HardSwish(x)",
            "Input 0 of HardSwish-22 is i32, which its specification does not list.",
        ),
        (
            "float[2] x, float[2] c",
            "Where(c, x, x)",
            "Input 0 of Where-16 is f32, which its specification does not list.",
        ),
        (
            "int64[2] x, bool[2] c",
            "And(c, x)",
            "Input 1 of And-7 is i64, which its specification does not list.",
        ),
        (
            "seq(uint16[2]) x, float i",
            "SequenceAt(x, i)",
            "Input 1 of SequenceAt-11 is f32, which its specification does not list.",
        ),
        (
            "float[2] x, double[2] c",
            "Add(x, c)",
            "Inputs 0 and 1 of Add-14 are f32 and f64, but must have one type.",
        ),
        (
            "float[2] x, int64[2] p, double c",
            "Pad(x, p, c)",
            "Inputs 0 and 2 of Pad-21 are f32 and f64, but must have one type.",
        ),
        (
            "float[2] x, float[2] c, double[2] d",
            "Concat <axis = 0> (x, c, d)",
            "Inputs 0 and 2 of Concat-13 are f32 and f64",
        ),
        ("seq(float[2]) x, double[2] c", "SequenceInsert(x, c)", ""),
        ("float[2] x, int32[2] i", "Gather(x, i)", ""),
        ("float[2] x", "HardSwish(x)", ""),
        ("uint4[2] x", "Identity(x)", ""),
        ("bfloat16[2] x, float8e4m3fn[2] y", "CastLike(x, y)", ""),
        ("float16[2] x", "Optional(x)", ""),
    ],
)
def test_onnx_types(declared: str, call: str, told: str) -> None:
    text = f'<ir_version: 10, opset_import: ["" : 22]> one ({declared}) => (z) {{ z = {call} }}'
    report = check(read_model(parser.parse_model(text).SerializeToString()), CATALOGUE)
    found = [one.message for one in report.diagnostics if one.code == "LS704"]
    assert [one for one in found if told not in one] == []
    assert bool(found) is bool(told)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("ReduceMean <axes = [0], keepdims = 0> (x)", "ReduceMean-18 has no attribute 'axes'."),
        ("Softmax <axis = 0, spare = 1> (x)", "Softmax-13 has no attribute 'spare'."),
        ("ReduceMean <keepdims = 0> (x)", ""),
        ("Relu <__of_a_tool = 1> (x)", ""),
        ("Cast <to = 1, saturate = 1> (x)", ""),
    ],
)
def test_attributes_that_onnx_runtime_refuses(call: str, told: str) -> None:
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 22]> one (float[2] x) => (float[m] z) {{ z = {call} }}'
    )
    found = [
        one
        for one in check(read_model(model.SerializeToString()), CATALOGUE).diagnostics
        if one.code == "LS307"
    ]
    assert [one.message for one in found] == ([told] if told else [])
    assert [("ReduceMean-13 has it" in one.advice) for one in found] == (
        [told.startswith("ReduceMean")] if told else []
    )
    if told:
        with pytest.raises(Exception, match="Unrecognized attribute"):
            onnxruntime.InferenceSession(model.SerializeToString())
    else:
        onnxruntime.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize(
    ("nodes", "opens"),
    [
        ("[a] h = Neg(x) [a] y = Neg(h)", False),
        ("[a] h = Neg(x) [a] k = Neg(x) y = Neg(h)", False),
        ("[a] h = Neg(x) [b] y = Neg(h)", True),
        ("h = Neg(x) [Neg_0] y = Neg(h)", True),
        ("[a] h = Constant <value_floats = [1.0, 2.0]> () [a] y = Add(x, h)", True),
        ("[y] h = Neg(x) y = Neg(h)", True),
    ],
)
def test_node_names_that_onnx_runtime_refuses(nodes: str, opens: bool) -> None:
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> one (float[2] x) => (float[2] y) {{ {nodes} }}'
    )
    assert (
        "LS112"
        in {one.code for one in check(read_model(model.SerializeToString()), CATALOGUE).diagnostics}
    ) is not opens
    if opens:
        onnxruntime.InferenceSession(model.SerializeToString())
    else:
        with pytest.raises(Exception, match="two nodes with same node name"):
            onnxruntime.InferenceSession(model.SerializeToString())
