"""Warnings about conversion agree with what OpenVINO's ONNX frontend reads."""

from __future__ import annotations

from pathlib import Path

import openvino
import pytest
from onnx import GraphProto, ModelProto, TensorProto, defs, helper, parser

import loopscope
from loopscope.checks.diagnostic import Runtime
from loopscope.checks.rules.onnx_conversion import NOT_CONVERTED
from loopscope_app.cli import main

HEAD = '<ir_version: 8, opset_import: ["" : 17, "f" : 1, "com.microsoft" : 1]>\n'
FUNCTION = '<domain: "f", opset_import: ["" : 17]>\ncalled (a) => (b) { b = Add (a, a) }'
CORE = openvino.Core()


def is_converted(model: bytes) -> bool:
    try:
        CORE.read_model(model)
    except RuntimeError:
        return False
    return True


def has_rule(model: bytes) -> bool:
    """True unless the frontend says that it has no rule; without sound inputs it may fail for
    other reasons.
    """
    try:
        CORE.read_model(model)
    except RuntimeError as error:
        return "No conversion rule found for operations" not in str(error)
    return True


def warnings(model: bytes) -> list[str]:
    return [
        one.message
        for one in loopscope.check(loopscope.read_model(model)).diagnostics
        if one.code == "LS950"
    ]


def _unnamed(values: int) -> GraphProto:
    names = [f"a{number}" for number in range(values)]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    return helper.make_graph(
        [helper.make_node("Identity", ["a0"], ["b"])],
        "body",
        infos,
        [helper.make_tensor_value_info("b", 1, None)],
    )


def _call(schema: defs.OpSchema) -> ModelProto:
    """A model of one node, whose inputs and attributes have a form but no meaning."""
    values = {
        "INT": 1,
        "FLOAT": 1.0,
        "STRING": "a",
        "INTS": [1],
        "FLOATS": [1.0],
        "STRINGS": ["a"],
        "GRAPH": _unnamed(1),
    }
    given = {
        one.name: str(one.type).rpartition(".")[2]
        for one in schema.attributes.values()
        if one.required
    }
    attributes = {
        name: values.get(kind, helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0]))
        for name, kind in given.items()
    }
    inputs = [f"i{number}" for number in range(schema.min_input or min(1, schema.max_input))]
    outputs = [f"o{number}" for number in range(max(1, schema.min_output))]
    node = helper.make_node(schema.name, inputs, outputs)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    taken, given_back = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
        for names in (inputs, outputs)
    )
    opset = [helper.make_opsetid("", schema.since_version)]
    return helper.make_model(
        helper.make_graph([node], "main", taken, given_back), opset_imports=opset, ir_version=8
    )


def test_the_operations_without_a_rule_are_those_of_the_runtime() -> None:
    """Sequence operations have rules of another kind: whether they are converted depends on what
    is around them.
    """
    schemas = [
        one
        for one in defs.get_all_schemas_with_history()
        if not one.domain and "Sequence" not in one.name
    ]
    schemas += [one for one in defs.get_all_schemas_with_history() if one.name == "SequenceMap"]
    assert {
        one.name for one in schemas if not has_rule(_call(one).SerializeToString())
    } == NOT_CONVERTED


def looped(
    initial: str,
    body: str,
    after: str = "y = ConcatFromSequence <axis = 0> (s)",
    made: str = "float[m] y",
) -> str:
    step = f"b (int64 i, bool c, seq(float[2]) v) => (bool k, seq(float[2]) u) {{ k = Identity (c) {body} }}"
    return f"main (int64 n, float[2] x) => ({made}) {{ {initial} s = Loop (n, , e) <body = {step}> {after} }}"


EMPTY, APPENDED = "e = SequenceEmpty ()", "t = Add (x, x) u = SequenceInsert (v, t)"
JOINED = "y = ConcatFromSequence <axis = 0> (s)"
OF_MATRICES = "b (int64 i, bool c, float[2,2] v) => (bool k, float[2,2] u) { k = Identity (c) d = Det (v) u = Add (v, d) }"
ONE = "b () => (seq(float[2]) p) { p = SequenceConstruct (x) }"

CONVERTED = {
    "joined": f"main (float[2] x) => (float[m] y) {{ s = SequenceConstruct (x, x) {JOINED} }}",
    "indexed": "main (float[2] x, int64 i) => (float[2] y) { s = SequenceConstruct (x, x) y = SequenceAt (s, i) }",
    "split": "main (float[4] x, int64 i) => (float[1] y) { s = SplitToSequence <axis = 0> (x) y = SequenceAt (s, i) }",
    "erased": "main (float[2] x, int64 i) => (float[2] y) { q = SequenceConstruct (x, x) s = SequenceErase (q) y = SequenceAt (s, i) }",
    "appended": looped(EMPTY, APPENDED),
    "appended, stacked": looped(
        EMPTY, APPENDED, "y = ConcatFromSequence <axis = 0, new_axis = 1> (s)", "float[m,2] y"
    ),
    "elements from outside": looped(
        f"{EMPTY} o = SequenceConstruct (x, x)", "t = SequenceAt (o, i) u = SequenceInsert (v, t)"
    ),
    "unused": "main (float[2,2] x) => (float[2,2] y) { d = Det (x) y = Add (x, x) }",
    "of another domain": "main (float[2] x) => (float[2] y) { y = com.microsoft.Gelu (x) }",
}
REFUSED = {
    "operation": ("main (float[2,2] x) => (float y) { y = Det (x) }", "Det"),
    "in a body": (
        f"main (int64 n, float[2,2] x) => (y) {{ y = Loop (n, , x) <body = {OF_MATRICES}> }}",
        "Det",
    ),
    "optional": (
        "main (float[2] x) => (float[2] y) { o = Optional (x) y = OptionalGetElement (o) }",
        "Optional",
    ),
    "another domain": (
        "main (float[2] x) => (float[2] y) { y = com.microsoft.CDist (x, x) }",
        "com.microsoft.CDist",
    ),
    "function": (
        f"main (float[2] x) => (float[2] y) {{ y = f.called (x) }}\n{FUNCTION}",
        "the function f.called",
    ),
    "sequence given": (
        "main (float[2] x) => (seq(float[2]) s) { s = SequenceConstruct (x, x) }",
        "a sequence as output of the model, 's'",
    ),
    "sequence taken": (
        f"main (seq(float[2]) s) => (float[m] y) {{ {JOINED} }}",
        "a sequence as input of the model, 's'",
    ),
    "sequence handed on": (
        f"main (float[2] x) => (float[m] y) {{ q = SequenceConstruct (x, x) s = Identity (q) {JOINED} }}",
        "an Identity of a sequence",
    ),
    "sequence of an If": (
        f"main (bool c, float[2] x) => (float[m] y) {{ s = If (c) <then_branch = {ONE}, else_branch = {ONE}> {JOINED} }}",
        "an If with a sequence as output",
    ),
    "carried, inserted elsewhere": (
        looped(EMPTY, "z = Sub (i, i) u = SequenceInsert (v, x, z)"),
        "a Loop that carries a sequence",
    ),
    "carried, erased": (
        looped("e = SequenceConstruct (x, x, x)", "u = SequenceErase (v)"),
        "a Loop that carries a sequence",
    ),
    "carried, read": (
        looped("e = SequenceConstruct (x)", "t = SequenceAt (v, i) u = SequenceInsert (v, t)"),
        "a Loop that carries a sequence",
    ),
    "carried, indexed": (
        looped(EMPTY, APPENDED, "y = SequenceAt (s, n)", "float[2] y"),
        "a Loop that carries a sequence",
    ),
}
OTHER_NUMBERS = {
    # OpenVINO reads these, and gives other numbers than ONNX says
    "carried, not empty": looped("e = SequenceConstruct (x)", APPENDED),
    "carried, two at once": looped(EMPTY, "w = SequenceInsert (v, x) u = SequenceInsert (w, x)"),
    "carried, counted": looped(EMPTY, APPENDED, "y = SequenceLength (s)", "int64 y"),
}


@pytest.mark.parametrize("text", CONVERTED.values(), ids=CONVERTED.keys())
def test_what_is_converted_is_not_warned_of(text: str) -> None:
    model = parser.parse_model(HEAD + text).SerializeToString()
    assert is_converted(model)
    assert warnings(model) == []


@pytest.mark.parametrize(("text", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_converted_is_named(text: str, named: str) -> None:
    model = parser.parse_model(HEAD + text).SerializeToString()
    assert not is_converted(model)
    assert warnings(model)[0].startswith(f"OpenVINO's ONNX frontend does not convert {named}")


@pytest.mark.parametrize("text", OTHER_NUMBERS.values(), ids=OTHER_NUMBERS.keys())
def test_what_is_converted_into_something_else_is_named(text: str) -> None:
    model = parser.parse_model(HEAD + text).SerializeToString()
    assert is_converted(model)
    assert len(warnings(model)) == 1


def test_nothing_is_said_of_how_a_model_would_run_that_is_not_converted() -> None:
    """Without the Optional, LS914 says what the CPU does with the state that nothing reads."""
    step = "b (int64 i, bool c, float[2] v) => (bool k, float[2] u) { k = Identity (c) u = Add (x, x) }"
    for more, codes in (
        ("", {"LS914"}),
        ("o = Optional (x) z = OptionalHasElement (o)", {"LS950"}),
    ):
        outputs = "float[2] y, bool z" if more else "float[2] y"
        text = f"{HEAD}main (int64 n, float[2] x) => ({outputs}) {{ y = Loop (n, , x) <body = {step}> {more} }}"
        report = loopscope.check(loopscope.read_model(parser.parse_model(text).SerializeToString()))
        assert {one.code for one in report.about([Runtime.OPENVINO]).warnings} == codes


def test_the_command_names_it_where_it_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(parser.parse_model(f"{HEAD}{REFUSED['operation'][0]}").SerializeToString())
    assert main(["check", str(file)]) == 0
    assert capsys.readouterr().out == "No problems found.\n"
    assert main(["check", str(file), "--for", "openvino"]) == 0
    assert "warning LS950 not-converted" in capsys.readouterr().out
