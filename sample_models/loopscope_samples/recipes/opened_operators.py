"""An LSTM as its operator is defined, opened as the loop over time that it is.

Its weights are set by hand: the cell adds up what it receives, until the forget gate closes.
"""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope_samples.recipes.recipe import InputSet, Recipe

OPEN, SLOPE, RESET = 6.0, 0.25, -12.0
"""Bias that holds a gate open, the weight of the signal, and the weight of a reset."""


def recipes() -> list[Recipe]:
    return [
        Recipe(
            "inside_an_lstm",
            model(),
            {
                "two_resets": inputs(24, resets=(8, 17)),
                "no_reset": inputs(24, resets=()),
                "four_steps": inputs(4, resets=(2,)),
            },
        )
    ]


def inputs(steps: int, *, resets: tuple[int, ...]) -> InputSet:
    """Return a signal of ones with resets at some steps."""
    signal = np.ones((1, steps, 2), np.float32)
    signal[0, :, 1] = [step in resets for step in range(steps)]
    return {"signal": signal}


def model() -> loopscope.Model:
    """Return the opened LSTMSequence, whose gates are in the order forget, input, cell, output."""
    graph = builder.Graph("inside_an_lstm")
    signal = graph.parameter("signal", "f32", [1, None, 2])
    zero = np.zeros((1, 1, 1), np.float32)
    weights = np.array([[0, RESET], [0, 0], [SLOPE, 0], [0, 0]], np.float32)[None]
    bias = np.array([OPEN, OPEN, 0, OPEN], np.float32)[None]
    steps = ops.gather(ops.shape_of(signal), [1], 0, name="steps")
    outputs, hidden, cell = ops.lstm_sequence(
        signal,
        zero,
        zero,
        steps,
        weights,
        np.zeros((1, 4, 1), np.float32),
        bias,
        hidden_size=1,
        direction="forward",
        name="LSTM",
    )
    closed = graph.model({"outputs": outputs, "hidden": hidden, "cell": cell})
    return loopscope.open_as_loop(closed, "main/LSTM")
