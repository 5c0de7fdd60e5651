"""Which loops, Ifs and functions of two models belong together: by structure and shapes before
names, across nesting.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope.comparison import Drift
from tests.engine.read.onnx_models import read

X = {"x": np.array([1, 2, 3], np.float32), "a": np.array(True), "b": np.array(False)}
HEAD = "(float[3] x, bool a, bool b) => (float[N] y)"
INNER = """[inner_If] p = If (b) <
  then_branch = t () => (float[3] q) { q = Mul (x, x) }, else_branch = e () => (float[3] r) { r = Add (x, x) }>"""
LOOP = """n = Constant <value_int = 3> () [loop] l = Loop (n, , x) <
  body = b (int64 i, bool c, float[3] s) => (bool c2, float[3] s2) { c2 = Identity (c) [step] s2 = Mul (s, x) }>"""

NESTED = {
    "an If in an If": (
        (
            f"[outer_If] y = If (a) < then_branch = u () => (float[3] v) {{ {INNER} v = Neg (p) }},"
            " else_branch = w () => (float[3] z) { z = Identity (x) }>"
        ),
        f"{INNER} y = Neg (p)",
        "main/outer_If",
    ),
    "a loop in an If": (
        (
            f"[around] y = If (a) < then_branch = u () => (float[3] v) {{ {LOOP} v = Neg (l) }},"
            " else_branch = w () => (float[3] z) { z = Identity (x) }>"
        ),
        f"{LOOP} y = Neg (l)",
        "main/around",
    ),
    "two Ifs around a value": (
        (
            "[one] y = If (a) < then_branch = u () => (float[3] v) { [two] v = If (b) <"
            " then_branch = k () => (float[3] v1) { v1 = Neg (x) },"
            " else_branch = m () => (float[3] v2) { [product] d = Mul (x, x) [last] v2 = Exp (d) }> },"
            " else_branch = w () => (float[3] z) { z = Identity (x) }>"
        ),
        "[product] d = Mul (x, x) [last] y = Exp (d)",
        "main/one",
    ),
}


def drifted(one: str, other: str) -> Drift:
    runs = [loopscope.Debugger(read(f"main {HEAD} {{ {text} }}"), X) for text in (one, other)]
    for run in runs:
        run.run()
        assert run.state == "finished", run.failure
    return loopscope.drift(runs[0], runs[1])


@pytest.mark.parametrize(("nested", "flat", "lacking"), NESTED.values(), ids=NESTED.keys())
@pytest.mark.parametrize("reverse", [False, True])
def test_an_if_that_one_model_lacks(nested: str, flat: str, lacking: str, reverse: bool) -> None:
    """What was in the branch that runs is compared with what is outside of any branch in the
    other model.
    """
    found = drifted(flat, nested) if reverse else drifted(nested, flat)
    assert found.first is None
    assert found.partings == ()
    assert found.unmatched[int(reverse)] == (lacking,)
    assert {"inner_If", "step", "last"} & {pair.one.rpartition("/")[2] for pair in found.pairs}


def test_a_function_that_one_model_lacks() -> None:
    call = "y = local.scale (x)"
    function = f"""
    main {HEAD} {{ {call} }}
    <domain: "local", opset_import: ["" : 17]>
    scale (v) => (w) {{ [square] square = Mul (v, v) [root] w = Sqrt (square) }}
    """
    one = loopscope.Debugger(read(function), X)
    other = loopscope.Debugger(
        read(f"main {HEAD} {{ [square] square = Mul (x, x) [root] y = Sqrt (square) }}"), X
    )
    one.run()
    other.run()
    found = loopscope.drift(one, other)
    assert found.first is None
    assert [place.count("/") for place in found.unmatched[0]] == [1], "the call alone"
    assert found.unmatched[1] == ()


def test_a_name_does_not_outweigh_shape() -> None:
    """A simplifier numbers Ifs anew: If_1 of the second model is If_2 of the first."""

    def branch(name: str, condition: str, given: str, operation: str) -> str:
        return (
            f"[{name}] {given} = If ({condition}) < then_branch = t () => (float[N] {given}t) {{ {given}t = {operation} }},"
            f" else_branch = e () => (float[N] {given}e) {{ {given}e = Neg (x) }}>"
        )

    long, short = "Mul (x, x)", "Mul (one, one)"
    first = "one = Constant <value_floats = [2.0]> ()"
    one = (
        f"{first} {branch('If_1', 'a', 'p', short)} {branch('If_2', 'a', 'q', long)} y = Add (p, q)"
    )
    other = (
        f"{first} {branch('If_2', 'a', 'p', short)} {branch('If_1', 'a', 'q', long)} y = Add (p, q)"
    )
    found = drifted(one, other)
    assert found.first is None
    assert {
        pair.one: pair.other
        for pair in found.pairs
        if "If" in pair.one and pair.one.count("/") == 1
    } == {
        "main/If_1": "main/If_2",
        "main/If_2": "main/If_1",
    }
