"""Whom a finding concerns, and that what is no error does run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from onnx import parser
from openvino import opset15 as op

import loopscope
from loopscope.checks.check import check, own_runtimes
from loopscope.checks.diagnostic import Diagnostic, Report, Runtime, Severity
from loopscope.checks.rules import RULES
from loopscope.checks.text import render, render_each
from loopscope.errors import EngineError, Where
from loopscope.ir.model import Model
from loopscope.ops.catalogue import CATALOGUE
from loopscope.read import read_model
from loopscope_app.describe.random_inputs import lengths_by_trials, random_inputs
from loopscope_samples import samples
from tests.engine.checks.samples import SAMPLES

BOTH = frozenset(Runtime)
_IF = """<ir_version: 8, opset_import: ["" : 17]>
choose (bool[{shape}] c, float[3] x) => (float[3] y) {{
  y = If (c) <then_branch = a () => (float[3] p) {{ p = Add (x, x) }}, else_branch = b () => (float[3] q) {{ q = Neg (x) }}>
}}"""
_LOOP = """<ir_version: 8, opset_import: ["" : 17]>
count ({trips}[{shape}] m, float[3] x) => (float[3] y) {{
  y = Loop (m, , x) <body = step (int64 i, bool go, float[3] v) => (bool again, float[3] w) {{
    again = Identity (go)
    w = Add (v, v)
  }}>
}}"""
_RANKS = """<ir_version: 8, opset_import: ["" : 17]>
choose (bool c, float[3] x) => (y) {
  y = If (c) <then_branch = a () => (p) { p = Neg (x) }, else_branch = b () => (q) {
    axes = Constant <value_ints = [0]> ()
    q = Unsqueeze (x, axes)
  }>
}"""
_THREE = np.array([-1, 0, 1], np.float32)


def _onnx(text: str) -> Model:
    return read_model(parser.parse_model(text).SerializeToString())


def _codes(model: Model, runtimes: frozenset[Runtime] | None = None) -> set[str]:
    report = check(model, CATALOGUE).about(own_runtimes(model) if runtimes is None else runtimes)
    return {one.code for one in report.diagnostics}


@pytest.mark.parametrize(
    "code", [rule.code for rule in RULES if rule.severity is not Severity.ERROR]
)
def test_what_is_no_error_runs(code: str) -> None:
    """Also step by step, with the same outputs."""
    model = SAMPLES[code].model()
    assert check(model, CATALOGUE).ok
    inputs = list(random_inputs(model, 0, lengths_by_trials(model, 0)).values())
    if code == "LS925":
        inputs = [inputs[0], np.array(2, np.int32)]  # a generated index may lie outside of the data
    debugger = loopscope.Debugger(model, inputs)
    for _ in range(500):
        if debugger.step().kind == "finished":
            break
    if code == "LS801":
        with pytest.raises(loopscope.RunStopped, match="the limit of 50 iterations"):
            loopscope.run(model, inputs, limits=loopscope.Limits(iterations=50))
        return
    outputs = loopscope.run(model, inputs).outputs
    for one, other in zip(outputs, debugger.result.outputs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_each_runtime_hears_of_its_own() -> None:
    """LS607 is of OpenVINO: whoever runs an ONNX file in ONNX Runtime need not hear of it."""
    model = _onnx(_RANKS)
    assert _codes(model) == set()
    assert _codes(model, frozenset({Runtime.ONNXRUNTIME})) == set()
    assert _codes(model, frozenset({Runtime.OPENVINO})) == {"LS607"}
    assert "LS906" in _codes(SAMPLES["LS906"].model())
    assert "LS906" not in _codes(SAMPLES["LS906"].model(), frozenset({Runtime.ONNXRUNTIME}))


def test_samples_have_no_warnings() -> None:
    """But for that of which OpenVINO computes other numbers."""
    warned = {}
    for sample in samples():
        model = loopscope.read_model(sample.model)
        found = check(model, CATALOGUE).about(own_runtimes(model))
        warned[sample.name] = {one.code for one in (*found.errors, *found.warnings)}
    assert {name: codes for name, codes in warned.items() if codes} == {
        "row_or_best": {"LS607"},
        "swap": {"LS906"},
    }


@pytest.mark.parametrize("shape", ["", "1", "1,1", "N", "1,1,1"])
def test_one_element_of_any_shape_decides_in_onnx(shape: str) -> None:
    """ONNX Runtime is asked for the same."""
    lengths = [1 for _ in shape.split(",")] if shape else []
    for text, first in ((_IF, np.zeros(lengths, bool)), (_LOOP, np.full(lengths, 3))):
        proto = parser.parse_model(text.format(shape=shape, trips="int64").replace("[]", ""))
        model = read_model(proto.SerializeToString())
        assert _codes(model) == set()
        session = ort.InferenceSession(proto.SerializeToString())
        names = [one.name for one in session.get_inputs()]
        theirs = session.run(None, dict(zip(names, (np.asarray(first), _THREE), strict=True)))
        np.testing.assert_array_equal(loopscope.run(model, [first, _THREE]).outputs[0], theirs[0])


@pytest.mark.parametrize(("text", "code"), [(_IF, "LS604"), (_LOOP, "LS515")])
@pytest.mark.parametrize("shape", ["2", "0", "2,1"])
def test_several_elements_decide_nothing_in_onnx(text: str, code: str, shape: str) -> None:
    proto = parser.parse_model(text.format(shape=shape, trips="int64"))
    assert code in _codes(read_model(proto.SerializeToString()))
    session = ort.InferenceSession(proto.SerializeToString())
    first = np.ones([int(length) for length in shape.split(",")], bool if text is _IF else np.int64)
    with pytest.raises(Exception, match=r"one element|scalar"):
        session.run(
            None,
            dict(zip([one.name for one in session.get_inputs()], (first, _THREE), strict=True)),
        )


def test_a_trip_count_that_onnx_does_not_have_is_warned_of() -> None:
    """ONNX Runtime refuses it, OpenVINO would run it."""
    proto = parser.parse_model(_LOOP.format(shape="1", trips="int32"))
    assert _codes(read_model(proto.SerializeToString())) == {"LS704"}
    with pytest.raises(Exception, match="is invalid"):
        ort.InferenceSession(proto.SerializeToString())


@pytest.mark.parametrize(
    ("length", "condition"),
    [(2, [1, 0]), (2, [0, 1]), (-1, [1, 0]), (-1, [0, 1]), (-1, [1]), (-1, [0])],
)
def test_the_first_of_several_decides_in_ir(
    length: int, condition: list[int], tmp_path: Path
) -> None:
    given, x = op.parameter([length], bool), op.parameter([3], np.float32)
    node = op.if_op(given)
    bodies = []
    for operation in (op.relu, op.abs):
        inner = op.parameter([3], np.float32)
        result = op.result(operation(inner))
        bodies.append((ov.Model([result], [inner], "branch"), inner, result))
    node.set_then_body(bodies[0][0])
    node.set_else_body(bodies[1][0])
    node.set_input(x.output(0), bodies[0][1], bodies[1][1])
    whole = ov.Model([node.set_output(bodies[0][2], bodies[1][2])], [given, x], "choice")
    ov.serialize(whole, str(tmp_path / "model.xml"))
    inputs = [np.array(condition, bool), _THREE]
    request = ov.Core().compile_model(whole, "CPU").create_infer_request()
    request.infer(inputs)
    theirs = request.get_output_tensor(0).data
    np.testing.assert_array_equal(
        loopscope.run(loopscope.read_model(tmp_path / "model.xml"), inputs).outputs[0], theirs
    )


def test_the_first_of_several_decides_in_every_iteration(tmp_path: Path) -> None:
    """In generated code as well: the flags change places in every iteration."""
    flags, total = op.parameter([2], bool), op.parameter([1], np.float32)
    body = _alternating()
    loop = op.loop(op.constant(300), op.constant(True))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 2])
    for outer, parameter, result in zip(
        (flags, total), body.get_parameters(), body.get_results(), strict=False
    ):
        loop.set_merged_input(parameter, outer.output(0), result.output(0))
    whole = ov.Model(
        [loop.get_iter_value(body.get_results()[1].output(0))], [flags, total], "alternating"
    )
    ov.serialize(whole, str(tmp_path / "model.xml"))
    for begun in (False, True):
        inputs = [np.array([begun, not begun]), np.zeros(1, np.float32)]
        assert loopscope.run(loopscope.read_model(tmp_path / "model.xml"), inputs).outputs[
            0
        ].tolist() == [150 * 11]


def _alternating() -> ov.Model:
    """``(not flags, total + (10 if flags[0] else 1), true)``"""
    flags, total = op.parameter([2], bool), op.parameter([1], np.float32)
    node = op.if_op(flags)
    made = []
    for number, set_body in ((10, node.set_then_body), (1, node.set_else_body)):
        inner = op.parameter([1], np.float32)
        result = op.result(op.add(inner, op.constant(np.array([number], np.float32))))
        set_body(ov.Model([result], [inner], "branch"))
        made.append((inner, result))
    node.set_input(total.output(0), made[0][0], made[1][0])
    more = node.set_output(made[0][1], made[1][1])
    return ov.Model(
        [op.result(op.logical_not(flags)), op.result(more), op.result(op.constant(True))],
        [flags, total],
        "body",
    )


def test_findings_of_one_rule_make_one_line() -> None:
    found = [
        Diagnostic(
            "LS802",
            "state-never-changes",
            Severity.NOTE,
            Where("", 0, f"main/loop/body/v{number}"),
            f"v{number} stays.",
        )
        for number in range(12)
    ]
    text = render(Report(tuple(found)))
    assert (
        "note LS802 state-never-changes at 12 places: main/loop/body/v0, main/loop/body/v1, main/loop/body/v2 and 9 more"
        in text
    )
    assert text.count("LS802") == 1
    assert "the first: v0 stays." in text
    assert render_each(Report(tuple(found))).count("note LS802") == 12
    assert " at 2 places: main/loop/body/v0 and main/loop/body/v1\n" in render(
        Report(tuple(found[:2]))
    )


def test_numbers_have_no_truth_in_ir() -> None:
    """OpenVINO's reader refuses them too."""
    for name in ("logical_and", "logical_or", "logical_xor"):
        data = op.parameter([2], np.int32)
        with pytest.raises(RuntimeError, match="boolean"):
            getattr(op, name)(data, data)
    data = loopscope.builder.Graph("numbers").parameter("x", "i32", [2])
    with pytest.raises(EngineError, match="expected boolean"):
        loopscope.builder.ops.LogicalAnd(data, data)
