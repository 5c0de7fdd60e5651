"""What a body of ONNX gives back as it came is warned of where ONNX Runtime computes something
else, and only there.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import loopscope
from loopscope.checks.check import check
from loopscope.ops.catalogue import CATALOGUE

_HEAD = '<ir_version: 10, opset_import: ["" : 18]>\n'
_FEEDS = {
    "n": np.array(3),
    "a": np.ones(1, np.float32),
    "b": np.full(1, 5, np.float32),
    "x": np.arange(3, dtype=np.float32),
    "last": np.array(9),
}


def scan(outputs: str, body: str = "unused = Add (v, v)") -> str:
    step = f"step (float[1] p, float[1] q, float v) => ({outputs}) {{ {body} }}"
    return f"{_HEAD}main (float[1] a, float[1] b, float[3] x) => (y, z) {{ y, z = Scan <num_scan_inputs = 1, body = {step}> (a, b, x) }}"


def loop(outputs: str, body: str = "", made: str = "y") -> str:
    step = f"step (int64 i, bool going, int64 c) => (again, {outputs}) {{ again = Identity (going) {body} }}"
    start = "t = Constant <value = bool {1}> ()"
    return f"{_HEAD}main (int64 n, int64 last) => ({made}) {{ {start} {made} = Loop <body = {step}> (n, t, last) }}"


CASES = {
    # model: the rules that warn of it
    "states exchanged": (scan("q, p"), ["LS922", "LS922"]),
    "a state kept": (scan("p, next", "next = Add (q, v)"), ["LS922"]),
    "exchanged by nodes": (scan("s, r", "r = Identity (p) s = Identity (q)"), []),
    "the number carried": (loop("i"), ["LS923"]),
    "the number collected": (loop("c, i", made="y, z"), ["LS923"]),
    "the number by a node": (loop("number", "number = Identity (i)"), []),
    "a state of a loop kept": (loop("c"), []),
}


@pytest.mark.parametrize(("text", "codes"), CASES.values(), ids=CASES.keys())
def test_warned_of_where_the_runtime_differs(text: str, codes: list[str]) -> None:
    data = parser.parse_model(text).SerializeToString()
    names = [one.name for one in onnx.load_from_string(data).graph.input]
    feeds = {name: _FEEDS[name] for name in names}
    model = loopscope.read_model(data)
    found = [
        one.code for one in check(model, CATALOGUE).diagnostics if one.code in ("LS922", "LS923")
    ]
    mine, theirs = (
        loopscope.run(model, feeds).outputs,
        onnxruntime.InferenceSession(data).run(None, feeds),
    )
    same = all(np.array_equal(one, other) for one, other in zip(mine, theirs, strict=True))
    assert found == codes
    assert same is not bool(codes)
