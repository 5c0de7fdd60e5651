"""Drift from a runtime of operators that are opened as loops here."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.peers import RuntimeDrift, drift_of_opened
from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.recurrence_nodes import linear_attention

STEPS, WRONG_FROM = 8, 5


Direction = Literal["forward", "reverse", "bidirectional"]


def layer(direction: Direction, lengths: list[int] | None = None) -> loopscope.Model:
    """Return an LSTMSequence of OpenVINO whose outputs are read by other operations."""
    random = np.random.default_rng(3)
    directions, size = 1 + (direction == "bidirectional"), 2
    graph = builder.Graph("layer")
    data = graph.parameter("data", "f32", [2, STEPS, 3])

    def weights(*shape: int) -> np.ndarray:
        return random.standard_normal((directions, *shape)).astype(np.float32) / 2

    sequence, hidden, _ = ops.lstm_sequence(
        data,
        np.zeros((2, directions, size), np.float32),
        np.zeros((2, directions, size), np.float32),
        np.array(lengths or [STEPS] * 2),
        weights(8, 3),
        weights(8, size),
        weights(8),
        hidden_size=size,
        direction=direction,
        name="lstm",
    )
    return graph.model({"sequence": sequence * 2, "last": hidden + 1})


def finished(model: loopscope.Model, values: np.ndarray) -> loopscope.Debugger:
    run = loopscope.Debugger(model, {"data": values})
    run.run()
    return run


def drifted(model: loopscope.Model, own: np.ndarray, theirs: np.ndarray) -> RuntimeDrift:
    """Compare our loop on some values with the runtime's operator on others."""
    opened = loopscope.open_as_loop(model)
    return drift_of_opened(finished(opened, own), finished(model, theirs), {"data": theirs})


VALUES = np.random.default_rng(5).standard_normal((2, STEPS, 3)).astype(np.float32)


@pytest.mark.oracle
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, [STEPS, 4]])
def test_each_step_of_the_operator_is_compared(
    direction: Direction, lengths: list[int] | None
) -> None:
    result = drifted(layer(direction, lengths), VALUES, VALUES)
    # OpenVINO 2026.4 leaves the outputs after the end of a sequence undefined in a compiled model.
    assert lengths or result.sentence.startswith("All ")
    (steps,) = [pair for pair in result.drift.pairs if pair.one.startswith("main/lstm/body/")]
    assert steps.rows.iteration.tolist() == list(range(STEPS))
    assert steps.deviations.relative.max() < 1e-5


@pytest.mark.oracle
def test_the_step_at_which_the_error_begins() -> None:
    changed = VALUES.copy()
    changed[:, WRONG_FROM:] += 0.5
    result = drifted(layer("forward"), VALUES, changed)
    (steps,) = [pair for pair in result.drift.pairs if pair.one.startswith("main/lstm/body/")]
    over = np.flatnonzero(steps.deviations.relative > 1e-3)
    assert over[0] == WRONG_FROM
    assert f"iteration {WRONG_FROM}" in result.sentence


@pytest.mark.oracle
def test_an_operator_of_onnx_runtime() -> None:
    case: Case = linear_attention(2, 2, 2, past=True)
    model = loopscope.read_model(case.model)
    opened = loopscope.open_as_loop(model)
    runs = [loopscope.Debugger(each, case.feeds) for each in (opened, model)]
    for run in runs:
        run.run()
    result = drift_of_opened(runs[0], runs[1], case.feeds, document=case.model)
    assert result.sentence.startswith("All ")
    assert any("/body/" in pair.one for pair in result.drift.pairs)
