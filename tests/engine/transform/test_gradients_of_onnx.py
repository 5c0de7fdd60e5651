"""Gradients of native ONNX models: operations that are the same functions as OpenVINO's, in
loops, scans and branches too.
"""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope.explain import walks_of
from loopscope.finite_differences import in_double_precision
from tests.engine.read.documents import NESTED_WEIGHTS, nested_loops

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'
X = np.random.default_rng(0).uniform(0.2, 0.9, (2, 3)).astype(np.float32)
W = np.random.default_rng(1).uniform(0.2, 0.9, (3, 3)).astype(np.float32)


def read(text: str) -> loopscope.Model:
    return loopscope.read_model(parser.parse_model(f"{HEAD}\n{text}").SerializeToString())


@pytest.mark.parametrize(
    "body",
    [
        "y = Abs(x)", "y = Acos(x)", "y = Acosh(z)", "y = Add(x, x)", "y = Asin(x)", "y = Asinh(x)", "y = Atan(x)", "y = Atanh(x)",
        "y = Cos(x)", "y = Cosh(x)", "y = Div(x, z)", "y = Elu<alpha = 0.5>(n)", "y = Erf(x)", "y = Exp(x)", "y = HardSwish(n)",
        "f = Floor(n) y = Add(f, x)",
        "f = Ceil(n) y = Add(f, x)", "f = Sign(n) y = Add(f, x)",
        "y = Identity(x)", "y = LeakyRelu<alpha = 0.1>(n)", "y = Log(x)", "y = LogSoftmax<axis = 0>(x)", "y = Max(x, n)",
        "y = Mean(x, z, n)",
        "y = Min(x, n)", "y = Mish(x)", "y = Mul(x, z)", "y = Neg(x)", "y = Pow(x, z)", "y = Pow(x, k)", "y = Reciprocal(x)",
        "y = Relu(n)",
        "y = Sigmoid(x)", "y = Sin(x)", "y = Sinh(x)", "y = Softmax(x)", "y = Softplus(x)",
        "y = Softsign(x)", "y = Sqrt(x)", "y = Sub(z, x)",
        "y = Sum(x, z, n)", "y = Tan(x)", "y = Tanh(x)", "y = MatMul(x, w)", "y = Gemm<alpha = 0.5, beta = 2.0, transB = 1>(x, w, b)",
        "y = Gemm<transA = 1>(x, x)", "t = Transpose(x) y = MatMul(t, x)", "y = Transpose<perm = [1, 0]>(x)",
        "y = Concat<axis = 1>(x, z)", "y = Gather<axis = 1>(x, i)", "y = Slice(x, one, three, one)", "y = Slice(x, one, three, one, one)",
        "p, q = Split<axis = 0, num_outputs = 2>(x) y = Mul(p, q)", "y = Reshape(x, six)", "y = Unsqueeze(x, one)", "y = Flatten(x)",
        "y = Where(c, x, n)", "y = Expand(x, shape)", "y = ReduceSum<keepdims = 0>(x, one)", "y = ReduceMean(x, one)", "y = ReduceMax(x)",
        "y = ReduceMin(x, one)", "y = ReduceProd<keepdims = 0>(x)", "y = ReduceL1(x)", "y = ReduceL2<keepdims = 0>(x, one)",
        "d = Cast<to = 11>(x) e = Mul(d, d) y = Cast<to = 1>(e)",
    ],
)  # fmt: skip
def test_an_operation(body: str) -> None:
    """``z`` is more than 1, ``n`` around 0; what ONNX writes with attributes or with inputs is
    told apart.
    """
    constants = """
      two = Constant <value = float {2.0}> () half = Constant <value = float {0.55}> ()
      one = Constant <value = int64[1] {1}> () three = Constant <value = int64[1] {3}> () six = Constant <value = int64[1] {6}> ()
      i = Constant <value = int64[2] {2, 0}> () k = Constant <value = int64 {3}> () b = Constant <value = float[3] {0.1, 0.2, 0.3}> ()
      shape = Constant <value = int64[3] {4, 2, 3}> ()
      z = Add(x, two) n = Sub(x, half) c = Less(n, b)
    """
    model = read(
        f"g (float[2,3] x, float[3,3] w) => (float s) {{ {constants} {body} v = Mul(y, y) s = ReduceSum<keepdims = 0>(v) }}"
    )
    found = loopscope.check_gradient(model, [X, W], "s", ["x", "w"])
    assert found.ok, found


LOOP = """g (float[2,3] x, float[3,3] w, float[5,2,3] xs) => (float loss) {
  n = Constant <value = int64 {5}> () c = Constant <value = bool {1}> ()
  last, all = Loop (n, c, x) <body = b (int64 i, bool ci, float[2,3] h) => (bool co, float[2,3] hn, float[2,3] hs) {
    co = Identity(ci) m = MatMul(h, w) e = Gather(xs, i) a = Add(m, e) hn = Tanh(a) hs = Sigmoid(hn) }>
  s = Mul(last, last) one = ReduceSum <keepdims = 0> (s) two = ReduceSum <keepdims = 0> (all) loss = Add(one, two) }"""
SCAN = """g (float[2,3] x, float[3,3] w, float[5,2,3] xs) => (float loss) {
  last, all = Scan <num_scan_inputs = 1, scan_input_directions = [1],
    body = b (float[2,3] h, float[2,3] e) => (float[2,3] hn, float[2,3] hs) {
    m = MatMul(h, w) a = Add(m, e) hn = Tanh(a) hs = Mul(hn, e) }> (x, xs)
  s = Mul(last, last) one = ReduceSum <keepdims = 0> (s) two = ReduceSum <keepdims = 0> (all) loss = Add(one, two) }"""
WHILE = """g (float[2,3] x, float[3,3] w, float[5,2,3] xs) => (float loss) {
  n = Constant <value = int64 {100}> () c = Constant <value = bool {1}> () limit = Constant <value = float {30.0}> ()
  last = Loop (n, c, x) <body = b (int64 i, bool ci, float[2,3] h) => (bool co, float[2,3] hn) {
    hn = MatMul(h, w) t = ReduceSum <keepdims = 0> (hn) co = Less(t, limit) }>
  loss = ReduceSum <keepdims = 0> (last) }"""
IF = """g (float[2,3] x, float[3,3] w, float[5,2,3] xs) => (float loss) {
  t = ReduceSum <keepdims = 0> (x) limit = Constant <value = float {0.0}> () c = Greater(t, limit)
  y = If (c) <then_branch = a () => (float[2,3] p) { p = MatMul(x, w) }, else_branch = b () => (float[2,3] q) { q = Tanh(x) }>
  v = Mul(y, y) loss = ReduceSum <keepdims = 0> (v) }"""
XS = np.random.default_rng(2).uniform(-0.5, 0.5, (5, 2, 3)).astype(np.float32)


@pytest.mark.parametrize("text", [LOOP, SCAN, WHILE, IF], ids=["loop", "scan", "while", "if"])
def test_a_body(text: str) -> None:
    found = loopscope.check_gradient(read(text), [X, W, XS], "loss", ["x", "w", "xs"])
    assert found.ok, found


def test_the_way_back_through_an_onnx_loop_is_told() -> None:
    run = loopscope.Debugger(loopscope.gradients(read(LOOP), "loss", ["w", "xs"]), [X, W, XS])
    run.run()
    (walk,) = walks_of(run)
    assert [one.name for one in walk.adjoints] == ["h"]
    assert [one.name for one in walk.contributions] == ["w", "xs"]


def test_another_operation_is_named() -> None:
    model = read("g (float[2,3] x) => (float s) { y = Unique(x) s = ReduceSum<keepdims = 0>(y) }")
    with pytest.raises(
        loopscope.BuildError,
        match=r"Unique-11 'Unique_\d' cannot be differentiated: its operation has no derivative here",
    ):
        loopscope.gradients(model, "s", "x")


@pytest.mark.parametrize(
    ("of", "with_respect_to", "words"),
    [
        ("y", "s", "with_respect_to names 's', which is a sequence"),
        ("y", "SequenceConstruct_2", "with_respect_to names 'SequenceConstruct_2', which is a"),
        ("SequenceConstruct_2", "x", "of names 'SequenceConstruct_2', which is a sequence"),
    ],
)
def test_a_sequence_is_refused_before_anything_is_built(
    of: str, with_respect_to: str, words: str
) -> None:
    model = read("""g (float[2,3] x, seq(float[2,3]) s) => (float[2,3] y) {
      n = SequenceLength(s) f = Cast<to = 1>(n) q = SequenceConstruct(x, x) m = SequenceLength(q)
      g = Cast<to = 1>(m) h = Mul(f, g) y = Mul(x, h) }""")
    with pytest.raises(loopscope.BuildError, match=words):
        loopscope.gradients(model, of, with_respect_to)


def test_an_input_that_is_left_out_before_others_is_not_guessed() -> None:
    model = read("""g (float[2,3] x) => (float s) { one = Constant <value = int64[2] {1, 1}> ()
      three = Constant <value = int64[2] {3, 3}> ()
      y = Slice(x, one, three, , one) s = ReduceSum<keepdims = 0>(y) }""")
    with pytest.raises(loopscope.BuildError, match="it omits an input before the last one"):
        loopscope.gradients(model, "s", "x")


def test_a_convolution_whose_rank_only_its_filters_know() -> None:
    model = read("""g (float[1,2,5] x, float[2,2,3] f, int64[n] shape) => (float s) { y = Reshape(x, shape) w = Conv(y, f) v = Mul(w, w)
      s = ReduceSum<keepdims = 0>(v) }""")
    values = [
        np.linspace(-1, 1, 10, dtype=np.float32).reshape(1, 2, 5),
        np.linspace(0.2, 1, 12, dtype=np.float32).reshape(2, 2, 3),
    ]
    found = loopscope.check_gradient(model, [*values, np.array([1, 2, 5])], "s", ["x", "f"])
    assert found.ok, found


def test_a_function_that_bends_within_the_first_step_is_looked_at_more_closely() -> None:
    model = read("""g (float[3] x) => (float s) { tiny = Constant <value = float {0.00001}> () q = Mul(x, x) r = Add(q, tiny) y = Sqrt(r)
      s = ReduceSum<keepdims = 0>(y) }""")
    found = loopscope.check_gradient(model, [np.array([0.0005, -0.001, 0.3], np.float32)], "s", "x")
    assert found.ok, found


LARGE = """g (float[1] x, float[9223372036854775807,1] v) => (float[9223372036854775807,9223372036854775807] y, float s) {
  w = Transpose(v) z = Mul(v, w) y = Mul(z, x) s = ReduceSum<keepdims = 0>(y) }"""


@pytest.mark.parametrize("of", ["y", "s"])
def test_what_is_larger_than_any_array_is_refused(of: str) -> None:
    with pytest.raises(loopscope.BuildError, match="larger than any array"):
        loopscope.gradients(read(LARGE), of, "x")


def test_bodies_that_lie_too_deep_are_told() -> None:
    model = loopscope.read_model(nested_loops(60).encode(), NESTED_WEIGHTS)
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        with pytest.raises(loopscope.BuildError, match="are nested too deeply"):
            loopscope.gradients(model, "next", "a")
    finally:
        sys.setrecursionlimit(usual)


def test_ifs_inside_ifs_inside_ifs() -> None:
    """The way back copies what is inside: each of the copies is a node of its own to the check."""
    model = read("""g (float[2,3] x, float[3,3] w) => (float s) {
      t = ReduceSum<keepdims = 0>(x) limit = Constant <value = float {0.0}> () c = Greater(t, limit) d = Less(t, limit)
      y = If (c) <then_branch = a () => (float[2,3] p) {
            p = If (c) <then_branch = e () => (float[2,3] g) {
                  g = If (d) <then_branch = h () => (float[2,3] i) { i = Tanh(x) },
                             else_branch = j () => (float[2,3] k) { k = MatMul(x, w) }> },
                else_branch = m () => (float[2,3] n) { n = Sigmoid(x) }> },
          else_branch = b () => (float[2,3] q) { q = Exp(x) }>
      v = Mul(y, y) s = ReduceSum<keepdims = 0>(v) }""")
    found = loopscope.check_gradient(model, [X, W], "s", ["x", "w"])
    assert found.ok, found
    assert not loopscope.check(loopscope.gradients(model, "s", ["x", "w"])).errors


CAPTURED = {
    "outer products": ("a = Unsqueeze (k, one) b = Unsqueeze (k, zero) m = MatMul (a, b)", ""),
    "Constants around it": (
        "a = Unsqueeze (k, c1) b = Unsqueeze (k, c0) m = MatMul (a, b)",
        "c1 = Constant <value_ints = [1]> () c0 = Constant <value = int64[1] {0}> ()",
    ),
    "sums": (
        "a = Unsqueeze (k, one) e = Mul (a, s) t = ReduceSum <keepdims = 0> (e, one) r = Unsqueeze (t, zero) m = Mul (r, s)",
        "",
    ),
    "a new shape": ("a = Reshape (k, three_one) b = Reshape (k, one_three) m = MatMul (a, b)", ""),
    "expanded": (
        "a = Unsqueeze (k, one) e = Expand (a, three_three) t = Transpose (e) m = MatMul (e, t)",
        "",
    ),
    "in a branch": (
        (
            "p = ReduceMax <keepdims = 0> (k) z = Sub (p, p) g = GreaterOrEqual (p, z) "
            "m = If (g) <then_branch = yes () => (float[3, 3] u) { a = Unsqueeze (k, one) b = Unsqueeze (k, zero) u = MatMul (a, b) }, "
            "else_branch = no () => (float[3, 3] v) { a2 = Unsqueeze (k, one) v = Mul (a2, s) }>"
        ),
        "",
    ),
}
INITIALIZERS = {
    "zero": "1] zero = {0}",
    "one": "1] one = {1}",
    "three_one": "2] three_one = {3, 1}",
    "one_three": "2] one_three = {1, 3}",
}
INITIALIZERS |= {"three_three": "2] three_three = {3, 3}"}


def _scan(step: str, around: str) -> loopscope.Model:
    """A Scan whose axes and shapes are constants of the graph around it."""
    constants = f"<{', '.join(f'int64[{text}' for text in INITIALIZERS.values())}>"
    body = f"step (float[3, 3] s, float[3] k) => (float[3, 3] n) {{ {step} n = Add (s, m) }}"
    nodes = f"{around} y = Scan <num_scan_inputs = 1, body = {body}> (s0, x) v = Mul (y, y) loss = ReduceSum <keepdims = 0> (v)"
    return read(f"g (float[4, 3] x, float[3, 3] s0) => (float loss) {constants} {{ {nodes} }}")


@pytest.mark.parametrize(("step", "around"), CAPTURED.values(), ids=CAPTURED.keys())
def test_axes_of_the_graph_around_a_scan(step: str, around: str) -> None:
    inputs = [np.random.default_rng(2).uniform(0.2, 0.9, (4, 3)).astype(np.float32), W]
    found = loopscope.check_gradient(_scan(step, around), inputs, "loss", ["x", "s0"])
    assert found.ok, found


def test_finite_differences_compute_attention_in_f64() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 23]>
        g (float[1,1,3,4] q, float[1,1,3,4] k, float[1,1,3,4] v) => (float[1,1,3,4] y) {
            y = Attention<softmax_precision = 1>(q, k, v)
        }
    """
    model = loopscope.read_model(parser.parse_model(text).SerializeToString())
    random = np.random.default_rng(5)
    q, k, v = random.standard_normal((3, 1, 1, 3, 4))
    (found,) = loopscope.run(in_double_precision(model), {"q": q, "k": k, "v": v}).outputs
    weights = np.exp(q @ k.swapaxes(-1, -2) / 2)
    weights /= weights.sum(-1, keepdims=True)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, weights @ v, rtol=1e-14)
