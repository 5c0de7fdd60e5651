"""Inputs that are constants of the model are named beside those that are random."""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope_app.describe.input_words import generated_words
from loopscope_app.describe.random_inputs import random_inputs


def model_of(rate: int, *, alone: bool = False) -> loopscope.Model:
    graph = builder.Graph()
    sr = graph.parameter("sr", "i64", [])
    outputs = {"is_it": ops.equal(sr, np.int64(rate))}
    if not alone:
        outputs["double"] = graph.parameter("x", "f32", [3]) * 2.0
    return graph.model(outputs)


def test_a_rate_is_a_constant_of_the_model() -> None:
    model = model_of(16000)
    inputs = random_inputs(model, 0)
    assert int(inputs["sr"]) == 16000
    assert generated_words(model, inputs) == (
        "sr = 16000 is a constant that the model compares with; "
        "the others are random values, the same each time"
    )


def test_without_a_constant_all_are_random() -> None:
    model = model_of(16000)
    inputs = {**random_inputs(model, 0), "sr": np.array(8000)}
    assert generated_words(model, inputs) == "Random values, the same each time"


def test_a_constant_alone() -> None:
    model = model_of(8000, alone=True)
    assert generated_words(model, random_inputs(model, 0)) == (
        "sr = 8000 is a constant that the model compares with"
    )
