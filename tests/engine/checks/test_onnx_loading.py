"""Warnings about names and kinds of values agree with what ONNX Runtime refuses to open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper, parser

import loopscope
from loopscope.checks.diagnostic import Runtime

HEAD = '<ir_version: 8, opset_import: ["" : 17, "f" : 1]>\n'
FUNCTION = '<domain: "f", opset_import: ["" : 17]>\n'
W = "<float[2] w = {1, 2}>"
TWO_W = "<float[2] w = {1, 2}, float[2] w = {3, 4}>"
SEQ = "seq(float[2])"
OPTIONAL = "optional(float[2])"


def loop(
    body: str = "u = Add (v, v)",
    *,
    before: str = "",
    after: str = "y = Identity (r)",
    weights: str = "",
    inputs: str = "int64 i, bool c, float[2] v",
    outputs: str = "bool k, float[2] u",
    own: str = "",
    made: str = "r",
) -> str:
    step = f"body ({inputs}) => ({outputs}) {own} {{ k = Identity (c) {body} }}"
    nodes = f"{before} {made} = Loop (n, , s) <body = {step}> {after}"
    return f"{HEAD}main (int64 n, bool c0, float[2] x, float[2] s) => (float[2] y) {weights} {{ {nodes} }}"


def branches(
    then: str = "t = Add (s, s)",
    *,
    gives: str = "float[2] t",
    otherwise: str = "e = Identity (s)",
    gives_else: str = "float[2] e",
    before: str = "",
    weights: str = "",
    own: str = "",
) -> str:
    held = f"<then_branch = a () => ({gives}) {own} {{ {then} }}, else_branch = b () => ({gives_else}) {{ {otherwise} }}>"
    nodes = f"{before} r = If (c) {held} y = Identity (r)"
    return f"{HEAD}main (bool c, float[2] x, float[2] s) => (float[2] y) {weights} {{ {nodes} }}"


def nested(then: str, gives: str = "float[2] t", before: str = "") -> str:
    held = f"<then_branch = a () => ({gives}) {{ {then} }}, else_branch = b () => (float[2] e) {{ e = Add (v, v) }}>"
    return loop(f"{before} u = If (c) {held}")


def flat(
    nodes: str,
    *,
    inputs: str = "float[2] x, float[2] s",
    weights: str = "",
    outputs: str = "float[2] y",
    function: str = "",
) -> str:
    return f"{HEAD}main ({inputs}) => ({outputs}) {weights} {{ {nodes} }}\n{FUNCTION + function if function else ''}"


def scan(
    body: str, outputs: str = "float[2] u, float[2] o", inputs: str = "float[2] v, float[2] p"
) -> str:
    step = f"body ({inputs}) => ({outputs}) {{ {body} }}"
    nodes = f"y, z = Scan <num_scan_inputs = 1, body = {step}> (s, parts)"
    return f"{HEAD}main (float[2] s, float[3,2] parts, float[2] x) => (y, z) {{ {nodes} }}"


def carried(initial: str, inside: str, body: str, back: str, last: str) -> str:
    step = f"body (int64 i, bool c, {inside} v) => (bool k, {back} u) {{ k = Identity (c) {body} }}"
    return f"{HEAD}main (int64 n, {initial} s, float[2] x) => ({last} r) {{ r = Loop (n, , s) <body = {step}> }}"


def either(then: str, other: str, result: str, gives: tuple[str, str] = ("", "")) -> str:
    held = f"<then_branch = a () => ({gives[0]} t) {{ {then} }}, else_branch = b () => ({gives[1]} e) {{ {other} }}>"
    return f"{HEAD}main (bool c, float[2] x) => ({result} r) {{ r = If (c) {held} }}"


IF_IN_FUNCTION = "b = If (c) <then_branch = g () => ({}) {{ {} }}, else_branch = h () => (e) {{ e = Add (a, a) }}>"
CALL = {"nodes": "y = f.fn (c, x)", "inputs": "bool c, float[2] x"}

REFUSED: dict[str, tuple[str, str]] = {
    # what is wrong: the model, and the rule that says so
    "body node, outer input": (loop("x = Add (v, v) u = Add (x, v)"), "LS940"),
    "body node, outer input, unread": (loop("u = Add (v, v) x = Add (v, v)"), "LS940"),
    "body node, outer node": (
        loop("t = Add (v, v) u = Add (t, v)", before="t = Add (x, x)"),
        "LS940",
    ),
    "body node, outer initializer": (loop("w = Add (v, v) u = Add (w, v)", weights=W), "LS940"),
    "body constant, outer input": (
        loop("x = Constant <value = float[2] {1, 2}> () u = Add (v, x)"),
        "LS940",
    ),
    "body node, body initializer": (loop("w = Add (v, v) u = Add (w, v)", own=W), "LS940"),
    "body node, body input": (loop("v = Add (v, v) u = Add (v, v)"), "LS940"),
    "body node twice": (loop("t = Add (v, v) t = Add (v, v) u = Add (t, t)"), "LS940"),
    "body constant twice": (
        loop(
            "w = Constant <value_ints = [1]> () w = Constant <value_ints = [1]> () u = Add (v, v)"
        ),
        "LS940",
    ),
    "body input twice": (
        loop("u = Add (v, v) u2 = Add (v, v)", inputs="int64 i, bool c, float[2] v, float[2] v"),
        "LS940",
    ),
    "node twice": (flat("t = Add (x, s) t = Add (s, s) y = Add (t, t)"), "LS940"),
    "two outputs of a node": (flat("t, t = Split (x) y = Add (t, t)"), "LS940"),
    "node, input": (flat("x = Add (x, s) y = Add (x, s)"), "LS940"),
    "node, initializer": (flat("w = Add (x, s) y = Add (w, s)", weights=W), "LS940"),
    "node, constant": (
        flat("w = Constant <value = float[2] {1, 2}> () w = Add (x, s) y = Add (w, s)"),
        "LS940",
    ),
    "input twice": (flat("y = Add (s, s)", inputs="float[2] x, float[2] s, float[2] x"), "LS940"),
    "branch node, outer input": (branches("x = Add (s, s) t = Add (x, x)"), "LS940"),
    "branch node, outer node": (
        branches("q = Add (s, s) t = Add (q, q)", before="q = Add (x, x)"),
        "LS940",
    ),
    "nested branch node, model input": (nested("x = Add (v, v) t = Add (x, v)"), "LS940"),
    "nested branch node, body node": (
        nested("q = Add (v, v) t = Add (q, v)", before="q = Add (v, v)"),
        "LS940",
    ),
    "nested branch node, body input": (nested("v = Add (x, x) t = Add (v, v)"), "LS940"),
    "scan node, outer input": (scan("x = Add (v, p) u = Add (x, x) o = Identity (u)"), "LS940"),
    "scan node twice": (
        scan("t = Add (v, p) t = Add (v, v) u = Add (t, t) o = Identity (u)"),
        "LS940",
    ),
    "function node twice": (
        flat(
            "y = f.fn (x)",
            function="fn (a) => (b) { t = Add (a, a) t = Add (a, a) b = Add (t, t) }",
        ),
        "LS940",
    ),
    "function node, its input": (
        flat("y = f.fn (x)", function="fn (a) => (b) { a = Add (a, a) b = Add (a, a) }"),
        "LS940",
    ),
    "function output twice": (
        flat("y, z = f.fn (x)", function="fn (a) => (b, b) { b = Add (a, a) }"),
        "LS940",
    ),
    "branch in a function": (
        flat(
            **CALL,
            function=f"fn (c, a) => (b) {{ q = Add (a, a) {IF_IN_FUNCTION.format('t', 'q = Add (a, a) t = Add (q, q)')} }}",
        ),
        "LS940",
    ),
    "loop carries outer input": (loop("t = Add (v, v)", outputs="bool k, float[2] x"), "LS941"),
    "loop carries outer node": (
        loop("z = Add (v, v)", outputs="bool k, float[2] t", before="t = Add (x, x)"),
        "LS941",
    ),
    "loop carries outer initializer": (
        loop("z = Add (v, v)", outputs="bool k, float[2] w", weights=W),
        "LS941",
    ),
    "loop condition from outside": (loop(outputs="bool c0, float[2] u"), "LS941"),
    "loop collects outer input": (
        loop(outputs="bool k, float[2] u, float[2] x", made="r, r2"),
        "LS941",
    ),
    "then gives outer input": (branches(gives="float[2] x"), "LS941"),
    "then without nodes": (branches("", gives="float[2] x"), "LS941"),
    "else gives outer input": (
        branches(otherwise="q = Add (s, s)", gives_else="float[2] x"),
        "LS941",
    ),
    "then gives outer node": (branches(gives="float[2] q", before="q = Add (x, x)"), "LS941"),
    "then gives outer initializer": (branches(gives="float[2] w", weights=W), "LS941"),
    "nested branch gives model input": (nested("t = Add (v, v)", "float[2] x"), "LS941"),
    "nested branch gives body input": (nested("t = Add (v, v)", "float[2] v"), "LS941"),
    "nested branch gives body node": (
        nested("t = Add (v, v)", "float[2] q", before="q = Add (v, v)"),
        "LS941",
    ),
    "scan carries outer input": (scan("o = Add (v, p)", "float[2] x, float[2] o"), "LS941"),
    "scan collects outer input": (scan("u = Add (v, p)", "float[2] u, float[2] x"), "LS941"),
    "branch in a function gives its input": (
        flat(**CALL, function=f"fn (c, a) => (b) {{ {IF_IN_FUNCTION.format('a', '')} }}"),
        "LS941",
    ),
    "function gives its input": (
        flat("q = f.fn (x) y = Add (q, q)", function="fn (a) => (a) { b = Add (a, a) }"),
        "LS941",
    ),
    "sequence map gives outer input": (
        f"{HEAD}main ({SEQ} s, float[2] x) => ({SEQ} y) {{\n y = SequenceMap <body = b (float[2] v) => (float[2] x) {{ }}> (s) }}",
        "LS941",
    ),
    "body initializer twice": (loop("u = Add (v, w)", own=TWO_W), "LS942"),
    "body initializer twice, unread": (loop(own=TWO_W), "LS942"),
    "branch initializer twice": (branches("t = Add (s, w)", own=TWO_W), "LS942"),
    "sequence comes back as tensor": (
        carried(SEQ, SEQ, "u = Add (x, x)", "float[2]", SEQ),
        "LS943",
    ),
    "sequence comes back as declared tensor": (
        carried(SEQ, SEQ, "u = Add (x, x)", SEQ, SEQ),
        "LS943",
    ),
    "tensor comes back as sequence": (
        carried("float[2]", "float[2]", "u = SequenceConstruct (v)", SEQ, "float[2]"),
        "LS943",
    ),
    "tensor enters as sequence": (
        carried("float[2]", SEQ, "u = SequenceInsert (v, x)", SEQ, SEQ),
        "LS943",
    ),
    "sequence enters as tensor": (
        carried(SEQ, "float[2]", "u = Add (v, x)", "float[2]", "float[2]"),
        "LS943",
    ),
    "tensor enters as optional": (
        carried("float[2]", OPTIONAL, "u = Optional (x)", OPTIONAL, OPTIONAL),
        "LS943",
    ),
    "optional comes back as tensor": (
        carried(OPTIONAL, OPTIONAL, "u = Add (x, x)", "float[2]", OPTIONAL),
        "LS943",
    ),
    "sequences are collected": (
        loop(
            "u = Add (v, v) q = SequenceConstruct (v)",
            outputs=f"bool k, float[2] u, {SEQ} q",
            made="r, r2",
        ),
        "LS943",
    ),
    "tensor or sequence": (
        either("t = Add (x, x)", "e = SequenceConstruct (x)", "float[2]", ("float[2]", SEQ)),
        "LS943",
    ),
    "tensor or optional": (
        either("t = Add (x, x)", "e = Optional (x)", OPTIONAL, ("float[2]", OPTIONAL)),
        "LS943",
    ),
    "sequence or tensor, undeclared": (
        either("t = SequenceConstruct (x)", "e = Add (x, x)", ""),
        "LS943",
    ),
    "scan carries a sequence": (
        scan("u = SequenceConstruct (p) o = Add (v, p)", f"{SEQ} u, float[2] o"),
        "LS943",
    ),
    "scan collects a sequence": (
        scan("u = Add (v, p) o = SequenceConstruct (p)", f"float[2] u, {SEQ} o"),
        "LS943",
    ),
    "sequence is declared a tensor": (flat("y = SequenceConstruct (x, s)"), "LS943"),
    "tensor is declared a sequence": (flat("y = Add (x, s)", outputs=f"{SEQ} y"), "LS943"),
    "sequence is added": (flat("t = SequenceConstruct (x, s) y = Add (t, x)"), "LS943"),
    "tensor is indexed as sequence": (
        flat("y = SequenceAt (x, i)", inputs="float[2] x, int64 i"),
        "LS943",
    ),
}

OPENED: dict[str, str] = {
    # models that ONNX Runtime opens, and that are not warned of
    "body node, later outer node": loop(
        "t = Add (v, v) u = Add (t, v)", after="t = Add (r, r) y = Identity (t)"
    ),
    "body node, own output": loop("r = Add (v, v) u = Add (r, v)"),
    "body input, outer input": loop("u = Add (x, x)", inputs="int64 i, bool c, float[2] x"),
    "body input, outer node": loop(
        "u = Add (t, t)", inputs="int64 i, bool c, float[2] t", before="t = Add (x, x)"
    ),
    "iteration number, outer input": loop(inputs="int64 n, bool c, float[2] v"),
    "body initializer, outer input": loop("u = Add (v, x)", own="<float[2] x = {1, 2}>"),
    "body initializer, outer initializer": loop(
        "u = Add (v, w)", own=W, weights=W, after="y = Add (r, w)"
    ),
    "body output twice": loop(outputs="bool k, float[2] u, float[2] u", made="r, r2"),
    "initializer, input": flat("y = Add (x, w)", inputs="float[2] x, float[2] w", weights=W),
    "output twice": flat("y = Add (x, s)", outputs="float[2] y, float[2] y"),
    "output is input": flat("z = Add (x, s)", outputs="float[2] x, float[2] z"),
    "output is initializer": flat("z = Add (x, s)", outputs="float[2] w, float[2] z", weights=W),
    "nodes of two branches": branches(
        "q = Add (s, s) t = Add (q, q)", otherwise="q = Add (s, s) e = Add (q, q)"
    ),
    "outputs of two branches": branches(otherwise="t = Add (s, x)", gives_else="float[2] t"),
    "branch output, later output": branches("r = Add (s, s)", gives="float[2] r"),
    "branch output, model output": branches("y = Add (s, s)", gives="float[2] y"),
    "names of the caller": flat(
        "t = Add (x, x) y = f.fn (t)", function="fn (x) => (y) { t = Add (x, x) y = Add (t, t) }"
    ),
    "a function that is not called": flat(
        "y = Add (x, x)", function="fn (a) => (b) { t = Add (a, a) t = Add (a, a) b = Add (t, t) }"
    ),
    "scan inputs, outer inputs": scan(
        "u = Add (s, parts) o = Identity (u)", inputs="float[2] s, float[2] parts"
    ),
    "loop gives body initializer": loop("z = Add (v, v)", outputs="bool k, float[2] w", own=W),
    "loop gives body input": loop("z = Add (v, v)", outputs="bool k, float[2] v"),
    "then gives own initializer": branches("", gives="float[2] w", own=W),
    "sequence stays sequence": carried(SEQ, SEQ, "u = SequenceInsert (v, x)", SEQ, SEQ),
    "optional stays optional": carried(OPTIONAL, OPTIONAL, "u = Optional (x)", OPTIONAL, OPTIONAL),
    "both branches give sequences": either(
        "t = SequenceConstruct (x)", "e = SequenceConstruct (x, x)", SEQ, (SEQ, SEQ)
    ),
    "sequence in between": flat(
        "t = SequenceConstruct (x, s) y = ConcatFromSequence <axis = 0> (t)", outputs="float[4] y"
    ),
}

OPENED_WITH_A_WARNING: dict[str, tuple[str, str]] = {
    "initializer twice": (flat("y = Add (x, w)", weights=TWO_W), "LS942"),
    "constant, initializer": (
        flat("w = Constant <value = float[2] {3, 4}> () y = Add (x, w)", weights=W),
        "LS940",
    ),
    "constant, input": (flat("x = Constant <value = float[2] {3, 4}> () y = Add (x, s)"), "LS940"),
    "tensor comes back as optional": (
        carried("float[2]", "float[2]", "u = Optional (v)", OPTIONAL, OPTIONAL),
        "LS943",
    ),
}


def warnings(model: ModelProto) -> set[str]:
    report = loopscope.check(loopscope.read_model(model.SerializeToString()))
    return {
        one.code
        for one in report.diagnostics
        if one.code in ("LS922", "LS940", "LS941", "LS942", "LS943")
    }


def is_refused(model: ModelProto) -> bool:
    try:
        onnxruntime.InferenceSession(model.SerializeToString())
    except Exception:  # the runtime raises several exceptions without a common base
        return True
    return False


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_runtime_refuses_is_warned_of(text: str, code: str) -> None:
    model = parser.parse_model(text)
    assert is_refused(model)
    assert warnings(model) == {code}


@pytest.mark.parametrize("text", OPENED.values(), ids=OPENED.keys())
def test_what_the_runtime_opens_is_not_warned_of(text: str) -> None:
    model = parser.parse_model(text)
    assert not is_refused(model)
    assert warnings(model) == set()


@pytest.mark.parametrize(
    ("text", "code"), OPENED_WITH_A_WARNING.values(), ids=OPENED_WITH_A_WARNING.keys()
)
def test_a_warning_does_not_say_that_the_runtime_refuses_what_it_opens(
    text: str, code: str
) -> None:
    model = parser.parse_model(text)
    assert not is_refused(model)
    report = loopscope.check(loopscope.read_model(model.SerializeToString())).about(
        [Runtime.ONNXRUNTIME]
    )
    assert [one.code for one in report.warnings] == [code]
    assert "refuses to open the model" not in report.warnings[0].message


def _body(model: ModelProto) -> GraphProto:
    graph: GraphProto = next(
        one.g for node in model.graph.node for one in node.attribute if one.HasField("g")
    )
    return graph


def _outermost(model: ModelProto) -> GraphProto:
    return model.graph


SPARSE: dict[str, tuple[str, Callable[[ModelProto], GraphProto], int, set[str]]] = {
    # model without the sparse initializers w, the graph that gets them, how many, what is said
    "body, dense and sparse": (loop("u = Add (v, w)", own=W), _body, 1, {"LS942"}),
    "body, sparse twice": (loop("u = Add (v, w)"), _body, 2, {"LS942"}),
    "sparse twice": (flat("y = Add (x, w)"), _outermost, 2, {"LS942"}),
    "node, sparse": (flat("w = Add (x, x) y = Add (x, w)"), _outermost, 1, {"LS940"}),
    "body node, outer sparse": (loop("w = Add (v, v) u = Add (w, w)"), _outermost, 1, {"LS940"}),
    "branch gives outer sparse": (branches(gives="float[2] w"), _outermost, 1, {"LS941"}),
    "body sparse, outer dense": (loop("u = Add (v, w)", weights=W), _body, 1, set()),
    "sparse, input": (
        flat("y = Add (x, w)", inputs="float[2] x, float[2] w"),
        _outermost,
        1,
        set(),
    ),
}


@pytest.mark.parametrize(("text", "graph", "count", "codes"), SPARSE.values(), ids=SPARSE.keys())
def test_sparse_initializers_count(
    text: str, graph: Callable[[ModelProto], GraphProto], count: int, codes: set[str]
) -> None:
    model = parser.parse_model(text)
    values, places = (
        helper.make_tensor("w", TensorProto.FLOAT, [1], [7.0]),
        helper.make_tensor("", TensorProto.INT64, [1], [1]),
    )
    graph(model).sparse_initializer.extend([helper.make_sparse_tensor(values, places, [2])] * count)
    assert is_refused(model) is bool(codes)
    assert warnings(model) == codes


def test_the_last_initializer_counts_as_in_the_runtime() -> None:
    model = parser.parse_model(flat("y = Add (x, w)", weights=TWO_W)).SerializeToString()
    feeds = {"x": np.ones(2, np.float32), "s": np.ones(2, np.float32)}
    (expected,) = onnxruntime.InferenceSession(model).run(None, feeds)
    assert np.array_equal(loopscope.run(loopscope.read_model(model), feeds).outputs[0], expected)


@pytest.mark.parametrize("last_is_there", [True, False])
def test_the_data_of_an_initializer_that_is_replaced_is_not_asked_for(
    tmp_path: Path, last_is_there: bool
) -> None:
    model = parser.parse_model(loop("u = Add (v, w)"))
    (tmp_path / "there.data").write_bytes(np.array([1, 2], np.float32).tobytes())
    for name in ("gone.data", "there.data") if last_is_there else ("there.data", "gone.data"):
        weights = numpy_helper.from_array(np.array([1, 2], np.float32), "w")
        onnx.external_data_helper.set_external_data(weights, name)
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
        _body(model).initializer.append(weights)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    if last_is_there:
        assert "LS942" in {
            one.code for one in loopscope.check(loopscope.read_model(path)).diagnostics
        }
    else:
        with pytest.raises(
            loopscope.errors.ReadError,
            match=r"initializer 'w' \(its name is there several times in one graph.*gone.data",
        ):
            loopscope.read_model(path)


def test_an_unsorted_file_is_checked_in_the_order_of_its_values() -> None:
    """The runtime sorts the nodes first, so that q is made before the Loop that it feeds."""
    step = "b (int64 i, bool c, float[2] v) => (bool k, float[2] u) { k = Identity (c) q = Add (v, v) u = Add (q, q) }"
    nodes = f"r = Loop (n, , q) <body = {step}> q = Add (x, x) y = Add (r, q)"
    model = parser.parse_model(f"{HEAD}main (int64 n, float[2] x) => (float[2] y) {{ {nodes} }}")
    assert is_refused(model)
    assert warnings(model) == {"LS940"}


@pytest.mark.parametrize("lengths", ["", "lengths"])
def test_a_scan_of_opset_8_has_the_types_of_its_specification(lengths: str) -> None:
    """Its first input, the lengths, is moved behind the others when the file is read."""
    step = "body (float v, float p) => (float u, float o) { u = Add (v, p) o = Identity (u) }"
    nodes = f"y, z = Scan <num_scan_inputs = 1, body = {step}> ({lengths}, s, parts)"
    text = f'<ir_version: 3, opset_import: ["" : 8]>\nmain (int64[1] lengths, float[1] s, float[1,3] parts) => (y, z) {{ {nodes} }}'
    report = loopscope.check(
        loopscope.read_model(parser.parse_model(text).SerializeToString())
    ).about([Runtime.ONNXRUNTIME])
    assert [one.code for one in (*report.errors, *report.warnings)] == []
