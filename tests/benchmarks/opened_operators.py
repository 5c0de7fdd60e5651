"""Time of an opened LSTM beside the same loop written by hand, and of the closed operator:
``python -m tests.benchmarks.opened_operators``.
"""

from __future__ import annotations

import time

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import ops

STEPS, INPUT, SIZE, REPEATS = 2000, 32, 64, 5


def closed(weights: tuple[np.ndarray, np.ndarray, np.ndarray]) -> loopscope.Model:
    """Return an LSTMSequence."""
    graph = builder.Graph("closed")
    data = graph.parameter("data", "f32", [1, STEPS, INPUT])
    state, inputs, recurrence, bias = np.zeros((1, 1, SIZE), np.float32), *weights
    sequence, _, _ = ops.lstm_sequence(
        data,
        state,
        state,
        np.array([STEPS]),
        inputs[None],
        recurrence[None],
        bias[None],
        hidden_size=SIZE,
        direction="forward",
        name="LSTM",
    )
    return graph.model(sequence)


def by_hand(weights: tuple[np.ndarray, np.ndarray, np.ndarray]) -> loopscope.Model:
    """Return the same LSTM as a loop that a person would write."""
    graph = builder.Graph("by hand")
    data = graph.parameter("data", "f32", [STEPS, 1, INPUT])
    inputs, recurrence, bias = weights

    def step(states: tuple[builder.Tensor, builder.Tensor], x: builder.Tensor) -> object:
        hidden, cell = states
        sums = ops.matmul(x, inputs, transpose_b=True)
        sums = sums + ops.matmul(hidden, recurrence, transpose_b=True) + bias
        forget, enter, candidate, leave = ops.split(sums, 1, num_splits=4)
        cell = ops.sigmoid(forget) * cell + ops.sigmoid(enter) * ops.tanh(candidate)
        return ops.sigmoid(leave) * ops.tanh(cell), cell

    zero = np.zeros((1, SIZE), np.float32)
    outputs, _ = builder.scan(step, data, (zero, zero))
    return graph.model(outputs)


def best_time(model: loopscope.Model, data: np.ndarray) -> float:
    """Return the shortest of several runs, in seconds."""
    session = loopscope.Session(model)
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        session.run([data])
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32) / 8

    weights = drawn(4 * SIZE, INPUT), drawn(4 * SIZE, SIZE), drawn(4 * SIZE)
    data = drawn(1, STEPS, INPUT)
    operator = closed(weights)
    loopscope.open_as_loop(operator)  # imports what opening needs
    begin = time.perf_counter()
    opened = loopscope.open_as_loop(operator)
    opening = time.perf_counter() - begin
    hand = best_time(by_hand(weights), data.swapaxes(0, 1))
    loop = best_time(opened, data)
    print(f"opening {opening * 1e3:.1f} ms")
    print(f"closed operator {best_time(operator, data) * 1e3:.1f} ms for {STEPS:,} steps")
    print(f"loop by hand {hand * 1e3:.1f} ms, opened {loop * 1e3:.1f} ms: {loop / hand:.2f} times")


if __name__ == "__main__":
    main()
