"""Floats that only shapes, indices, trip counts and bounds of slices follow from: a rounding of
everything leaves them as they are.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from tests.engine.read.onnx_models import read

BODY = "<body = b (int64 i, bool c, float[3] s) => (bool c2, float[3] s2) { c2 = Identity (c) s2 = Mul (s, x) }>"


def graph(text: str) -> str:
    return f"main (float[3] x, float n) => (float[N] y) {{ {text} }}"


INDEX = {
    "a slice's end": "e = Constant <value_floats = [70000.0]> () m = Min (e, e) k = Cast <to = 7> (m) z = Constant <value_ints = [0]> ()"
    " y = Slice (x, z, k, z)",
    "a shape": "e = Constant <value_floats = [70001.0]> () t = Constant <value_floats = [69998.0]> () d = Sub (e, t)"
    " k = Cast <to = 7> (d) y = Reshape (x, k)",
    "an index": "e = Constant <value_floats = [2049.0]> () t = Constant <value_floats = [2048.0]> () d = Sub (e, t)"
    " k = Cast <to = 7> (d) y = Gather (x, k)",
    "a trip count": f"e = Constant <value_float = 2049.0> () t = Constant <value_float = 2047.0> () d = Sub (e, t) k = Cast <to = 7> (d)"
    f" yes = Constant <value = bool {{1}}> () y = Loop (k, yes, x) {BODY}",
    "a comparison of integers": "e = Constant <value_floats = [70000.0]> () k = Cast <to = 6> (e) l = Constant <value = int32[1] {70000}>"
    " () b = Equal (k, l) one = Constant <value_ints = [1]> () two = Constant <value_ints = [2]> () j = Where (b, one, two)"
    " y = Gather (x, j)",
    "the length of a range": "e = Constant <value_float = 2049.0> () k = Cast <to = 7> (e) a = Constant <value_int = 2047> ()"
    " d = Constant <value_int = 1> () r = Range (a, k, d) z = Sub (r, a) y = Gather (x, z)",
}


@pytest.mark.parametrize("text", INDEX.values(), ids=INDEX.keys())
@pytest.mark.parametrize("to", ["f16", "bf16", "int8"])
def test_index_arithmetic_stays(text: str, to: str) -> None:
    model = read(graph(text))
    inputs = {"x": np.array([1, 2, 4], np.float32), "n": np.float32(3)}
    one, other = (
        loopscope.Debugger(model, inputs),
        loopscope.Debugger(model, inputs, rounding={"*": to}),
    )
    one.run()
    other.run()
    assert other.state == "finished", other.failure
    assert other.unrounded
    assert loopscope.drift(one, other).outputs < 0.01
    assert (
        "unrounded: only shapes, indices, trip counts or bounds of slices follow"
        in loopscope.drift(one, other).sentence
    )


DATA = {
    "a number that is also data": "e = Constant <value_floats = [2.0]> () k = Cast <to = 7> (e) g = Gather (x, k) y = Mul (g, e)",
    "what is compared as a float": "t = Constant <value_floats = [1.0, 2.0, 3.0]> () b = Less (x, t) y = Where (b, x, t)",
    "what is chosen by its size": "t = Constant <value_floats = [1.0, 3.0, 2.0]> () z = Mul (t, t) a = ArgMax <axis = 0> (z)"
    " y = Gather (x, a)",
    "a range of floats": "o = Constant <value_float = 1.0> () z = Constant <value_float = 0.0> () y = Range (z, n, o)",
}


@pytest.mark.parametrize("text", DATA.values(), ids=DATA.keys())
def test_data_is_rounded(text: str) -> None:
    inputs = {"x": np.array([1, 2, 4], np.float32), "n": np.float32(3)}
    assert loopscope.Debugger(read(graph(text)), inputs, rounding={"*": "f16"}).unrounded == ()


def test_an_address_without_an_asterisk_is_rounded() -> None:
    """A person who names one value means it."""
    model = read(graph(INDEX["an index"]))
    inputs = {"x": np.array([1, 2, 4], np.float32), "n": np.float32(3)}
    address = loopscope.Debugger(model, inputs, rounding={"*": "f16"}).unrounded[0]
    assert loopscope.Debugger(model, inputs, rounding={address: "f16"}).unrounded == ()
