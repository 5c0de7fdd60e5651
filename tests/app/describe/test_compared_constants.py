"""Inputs that are made up take a constant that the model compares them with."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope_app.describe.random_inputs import random_inputs, regenerate

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
IF = "y = If (e) <then_branch = a () => (float[2] t) {{ {} }}, else_branch = b () => (float[2] f) {{ f = Neg (x) }}>"
ALONE = IF.format("t = Abs (x)")
INSIDE = IF.format("c = Equal (sr, r) g = Cast <to = 1> (c) t = Add (x, g)")
CASES = {
    # model: the values that are taken with seeds 0, 1, 2; empty where numbers are drawn
    "scalar": (
        f"main (int64 sr, float[2] x) => (y) <int64 r = {{16000}}> {{ e = Equal (sr, r) {ALONE} }}",
        [16000] * 3,
    ),
    "other side": (
        f"main (int64 sr, float[2] x) => (y) <int64 r = {{16000}}> {{ e = Equal (r, sr) {ALONE} }}",
        [16000] * 3,
    ),
    "one element": (
        f"main (int64[1] sr, float[2] x) => (y) <int64[1] r = {{16000}}> {{ e = Equal (sr, r) {ALONE} }}",
        [16000] * 3,
    ),
    "cast": (
        f"main (int32 sr, float[2] x) => (y) <int64 r = {{48000}}> {{ w = Cast <to = 7> (sr) e = Equal (w, r) {ALONE} }}",
        [48000] * 3,
    ),
    "two constants": (
        f"main (int64 sr, float[2] x) => (y) <int64 r = {{16000}}, int64 q = {{8000}}> {{ p = Equal (sr, q) e = Equal (sr, r) {ALONE} }}",
        [8000, 16000, 8000],
    ),
    "in a branch": (
        f"main (int64 sr, bool e, float[2] x) => (y) <int64 r = {{16000}}> {{ {INSIDE} }}",
        [16000] * 3,
    ),
    "can be drawn": (
        f"main (int64 sr, float[2] x) => (y) <int64 r = {{3}}> {{ e = Equal (sr, r) {ALONE} }}",
        [],
    ),
    "does not fit": (
        f"main (int8 sr, float[2] x) => (y) <int64 r = {{300}}> {{ w = Cast <to = 7> (sr) e = Equal (w, r) {ALONE} }}",
        [],
    ),
    "less": (
        f"main (int64 sr, float[2] x) => (y) <int64 r = {{16000}}> {{ e = Less (sr, r) {ALONE} }}",
        [],
    ),
    "computed": (
        f"main (int64 sr, float[2] x) => (y) <int64 r = {{16000}}> {{ w = Add (sr, sr) e = Equal (w, r) {ALONE} }}",
        [],
    ),
}


@pytest.mark.parametrize(("text", "values"), CASES.values(), ids=CASES.keys())
def test_a_constant_that_an_input_is_compared_with_is_taken(text: str, values: list[int]) -> None:
    model = loopscope.read_model(parser.parse_model(HEAD + text).SerializeToString())
    for seed in range(3):
        made = random_inputs(model, seed)
        again = regenerate(model, made, seed)
        assert np.array_equal(made["sr"], again["sr"])
        number = int(made["sr"].reshape(-1)[0])
        assert number == values[seed] if values else 0 <= number <= 9
    assert loopscope.run(model, made).outputs[0].shape == (2,)
