"""RNNCell and RNNSequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.ops.declare import Array
from engine.ops.precision import computable, rounded
from engine.ops.sequence.recurrent import (
    Step,
    check_directions,
    check_weights,
    chosen,
    clipped,
    directions,
    projected_inputs,
    sequence_lengths,
    turned,
    walk,
)

_DEFAULTS = ("tanh",)


def rnn_cell(
    data: Array,
    hidden: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None = None,
    /,
    *,
    hidden_size: int,
    activations: tuple[str, ...],
    activations_alpha: tuple[float, ...],
    activations_beta: tuple[float, ...],
    clip: float,
) -> Array:
    """One step of a plain recurrent network; relu, sigmoid and tanh have no alpha and beta.

    ``[B, I], [B, H], [H, I], [H, H], [H] -> [B, H]``. Spec: sequence/rnn-cell-3.
    """
    check_weights(data, weights, recurrence, 1, hidden_size)
    state = computable(hidden)
    projected = projected_inputs(computable(data)[:, None], computable(weights), None if bias is None else computable(bias))
    output = np.empty_like(state)
    _step(computable(recurrence).T, activations, clip)(projected[0], state, None, output)
    return rounded(output, data.dtype)


def rnn_sequence(
    data: Array,
    hidden: Array,
    lengths: Array,
    weights: Array,
    recurrence: Array,
    bias: Array,
    /,
    *,
    hidden_size: int,
    direction: str,
    activations: tuple[str, ...],
    activations_alpha: tuple[float, ...],
    activations_beta: tuple[float, ...],
    clip: float,
) -> tuple[Array, Array]:
    """RNN cells over time, in one or both directions.

    ``[B, T, I], [B, D, H], [B], [D, H, I], [D, H, H], [D, H] -> [B, D, T, H], [B, D, H]``. Spec: sequence/rnn-sequence-5.
    """
    check_weights(data, weights, recurrence, 1, hidden_size)
    backwards = directions(direction)
    check_directions(len(backwards), hidden, weights, recurrence, bias)
    batch, steps = data.shape[:2]
    wide = computable(data)
    counts = sequence_lengths(lengths, batch)
    output = np.empty((len(backwards), steps, batch, hidden_size), wide.dtype)
    last = np.array(computable(hidden).swapaxes(0, 1), order="C")
    for index, reverse in enumerate(backwards):
        projected = projected_inputs(wide, computable(weights[index]), computable(bias[index]))
        step = _step(turned(computable(recurrence[index])), activations, clip)
        walk(step, projected, last[index], None, output[index], counts, reverse)
    shown = np.ascontiguousarray(output.transpose(2, 0, 1, 3))
    return rounded(shown, data.dtype), rounded(np.ascontiguousarray(last.swapaxes(0, 1)), data.dtype)


def _step(recurrence: Array, activations: Sequence[str], clip: float) -> Step:
    """A step with ``recurrence [H, H]``."""
    function = chosen(activations, _DEFAULTS)[0]

    def step(projected: Array, hidden: Array, cell: Array | None, output: Array, /) -> None:
        np.matmul(hidden, recurrence, out=output)
        output += projected
        clipped(output, clip)
        function(output, output)

    return step
