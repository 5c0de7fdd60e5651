"""Small ONNX models with every kind of control flow, in ONNX's own text form, each with inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, parser

import loopscope
from loopscope.ir.model import Model

HEADER = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>'


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A model as text, and the inputs that it runs with."""

    name: str
    text: str
    inputs: dict[str, np.ndarray]

    def model(self) -> ModelProto:
        return parser.parse_model(HEADER + self.text)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


I64 = np.int64
X = {"x": f32(1, 2, 3)}

NESTED_IFS = """
main (float[3] x, bool a, bool b) => (float[N] y) {
  two = Constant <value_floats = [2.0, 2.0, 2.0]> ()
  twice = Mul (x, two)
  y = If (a) <
    then_branch = first () => (float[N] t) {
      inner = If (b) <
        then_branch = deep () => (float[N] d) { d = Add (twice, x) },
        else_branch = other () => (float[N] e) { e = Sub (twice, two) }
      >
      t = Identity (inner)
    },
    else_branch = second () => (float[N] f) { f = Identity (x) }
  >
}
"""

LOOP = """
main (float[3] x, int64 trips, bool start) => (float[3] last, float[N, 3] all, int64[M] numbers) {
  one = Constant <value_float = 1.0> ()
  last, all, numbers = Loop (trips, start, x) <
    body = step (int64 i, bool go, float[3] v) => (bool again, float[3] w, float[3] out, int64 number) {
      w = Add (v, one)
      out = Mul (w, x)
      sum = ReduceSum <keepdims = 0> (w)
      limit = Constant <value_float = 30.0> ()
      again = Less (sum, limit)
      number = Identity (i)
    }
  >
}
"""

NO_LIMIT = """
main (float[3] x) => (float[3] last) {
  last = Loop (, , x) <
    body = step (int64 i, bool go, float[3] v) => (bool again, float[3] w) {
      w = Add (v, x)
      ten = Constant <value_int = 10> ()
      fewer = Less (i, ten)
      again = And (fewer, go)
    }
  >
}
"""

CAPTURE_TWO_UP = """
main (float[3] x, int64 trips) => (float[3] last) {
  start = Constant <value_float = 0.5> ()
  yes = Cast <to = 9> (start)
  last = Loop (trips, yes, x) <
    body = outer (int64 i, bool go, float[3] v) => (bool again, float[3] w) {
      again = Identity (go)
      inside = Loop (trips, , v) <
        body = inner (int64 j, bool ongoing, float[3] u) => (bool more, float[3] z) {
          more = Identity (ongoing)
          jf = Cast <to = 1> (j)
          if_ = Cast <to = 1> (i)
          sum = Add (jf, if_)
          part = Mul (sum, start)
          both = Add (part, x)
          z = Add (u, both)
        }
      >
      w = Mul (inside, start)
    }
  >
}
"""

SCAN = """
main (float[2] state, float[3, 2] forward, float[2, 3] sideways) => (float[2] last, float[2, 3] stacked, float[3, 2] reversed) {
  last, stacked, reversed = Scan (state, forward, sideways) <
    num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
    scan_output_axes = [1, 0], scan_output_directions = [0, 1],
    body = step (float[2] s, float[2] a, float[2] b) => (float[2] t, float[2] one, float[2] two) {
      sum = Add (s, a)
      t = Mul (sum, b)
      one = Identity (t)
      two = Sub (t, a)
    }
  >
}
"""

FUNCTION = """
main (float[3] x) => (float[3] y) {
  half = local.scaled <factor = 0.5> (x)
  y = local.twice (half)
}
<domain: "local", opset_import: ["" : 17, "local" : 1]>
scaled <factor> (v) => (w) {
  by = Constant <value_float: float = @factor> ()
  w = Mul (v, by)
}
<domain: "local", opset_import: ["" : 17, "local" : 1]>
twice (v) => (w) {
  once = local.scaled <factor = 3.0> (v)
  w = local.scaled <factor = 3.0> (once)
}
"""

SEQUENCE = """
main (float[3] x) => (float[N] joined, int64 length) {
  zero = Constant <value_int = 0> ()
  two = Mul (x, x)
  first = SequenceConstruct (x, two)
  grown = SequenceInsert (first, two, zero)
  mapped = SequenceMap (grown, x) <
    body = each (float[3] v, float[3] w) => (float[3] u) { u = Sub (v, w) }
  >
  joined = ConcatFromSequence <axis = 0> (mapped)
  length = SequenceLength (mapped)
}
"""

CARRIED_SEQUENCE = """
main (float[3] x) => (float[M, 3] joined) {
  trips = Constant <value_int = 12> ()
  start = SequenceConstruct (x)
  last = Loop (trips, , start) <
    body = step (int64 i, bool go, seq(float[3]) s) => (bool again, seq(float[3]) t) {
      again = Identity (go)
      kept = Identity (s)
      newest = SequenceAt (kept, i)
      more = Add (newest, x)
      t = SequenceInsert (kept, more)
    }
  >
  joined = ConcatFromSequence <axis = 0, new_axis = 1> (last)
}
"""

SAID_SHAPE = """
main (float[3] x, int64 trips, int64[2] lengths) => (float[K, M, N] all) {
  all = Loop (trips, "") <
    body = step (int64 i, bool go) => (bool again, float[2, 3] out) {
      out = If (go) <
        then_branch = then () => (float[A, B] t) { t = Expand (x, lengths) },
        else_branch = otherwise () => (float[C, D] e) { e = Expand (x, lengths) }
      >
      again = Identity (go)
    }
  >
}
"""
"""What the body gives has a shape that only the file says."""

CASES = (
    *(
        Case(f"nested ifs {a} {b}", NESTED_IFS, {**X, "a": np.array(a), "b": np.array(b)})
        for a, b in ((True, True), (True, False), (False, True))
    ),
    *(
        Case(
            f"loop {trips} {start}",
            LOOP,
            {**X, "trips": np.array(trips, I64), "start": np.array(start)},
        )
        for trips, start in ((5, True), (100, True), (0, True), (-1, True), (5, False), (1, True))
    ),
    *(
        Case(
            f"a shape that is only said, {n} trips",
            SAID_SHAPE,
            {**X, "trips": np.array(n, I64), "lengths": np.array([2, 3], I64)},
        )
        for n in (0, 2)
    ),
    Case("no limit, no condition", NO_LIMIT, X),
    Case("captured two levels up", CAPTURE_TWO_UP, {**X, "trips": np.array(4, I64)}),
    Case(
        "scan",
        SCAN,
        {
            "state": f32(1, 2),
            "forward": np.arange(6, dtype=np.float32).reshape(3, 2),
            "sideways": np.arange(6, dtype=np.float32).reshape(2, 3) + 1,
        },
    ),
    Case("functions", FUNCTION, X),
    Case("sequences", SEQUENCE, X),
    Case("a sequence that is carried", CARRIED_SEQUENCE, X),
)


def read(text: str) -> Model:
    """The Model of a graph in ONNX's own text."""
    return loopscope.read_model(parser.parse_model(HEADER + text).SerializeToString())
