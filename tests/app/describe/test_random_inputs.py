"""Inputs that are made up: a model that somebody opens should run at first sight, if any of a few lengths lets it."""

from __future__ import annotations

import pytest
from onnx.parser import parse_model

import engine
from app.describe.random_inputs import random_inputs
from app.describe.signatures import bindings

MODELS = {
    "any length": ("float[n]", "y = Relu (x)", 3, True),
    "a window of 50": ("float[1,1,n]", "s = Constant <value_ints = [1,1,50]> () w = ConstantOfShape (s) y = Conv (x, w)", 64, True),
    "8 alone": ("float[n]", "s = Constant <value_ints = [8]> () y = Reshape (x, s)", 8, True),
    "none": ("float[n]", "s = Constant <value_ints = [77]> () y = Reshape (x, s)", 3, False),
    "no choice": ("float[5]", "s = Constant <value_ints = [5]> () y = Reshape (x, s)", 5, True),
}
"""The input's type, what is made of it, the length that is chosen, and whether the model runs with it."""


@pytest.mark.parametrize(("given", "nodes", "length", "runs"), MODELS.values(), ids=MODELS.keys())
def test_open_lengths_are_such_that_the_model_runs(given: str, nodes: str, length: int, runs: bool) -> None:
    result = given.replace("n", "m").replace("5", "m")
    text = f'<ir_version: 8, opset_import: ["" : 17]> main ({given} x) => ({result} y) {{ {nodes} }}'
    model = engine.read_model(parse_model(text).SerializeToString())
    made = random_inputs(model, 0)
    assert made["x"].shape[-1] == length
    debugger = engine.Debugger(model, bindings(model, made))
    debugger.run()
    assert (debugger.state == "finished") == runs
