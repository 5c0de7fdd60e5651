"""The operations RNNCell and RNNSequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.precision import computable
from loopscope.ops.sequence.recurrent import (
    RecurrentStep,
    activation_functions,
    activations_of_direction,
    aligned_transpose,
    check_weights,
    clip_in_place,
    projected_inputs,
    run_over_time,
    single_step,
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
    """Compute one step of a plain recurrent network.

    ``[B, I], [B, H], [H, I], [H, H], [H] -> [B, H]``. relu, sigmoid and tanh have neither alpha nor
    beta. Spec: sequence/rnn-cell-3.
    """
    check_weights(data, weights, recurrence, 1, hidden_size)
    step = _step(computable(recurrence).T, activations, clip)
    return single_step(step, data, hidden, weights, None if bias is None else computable(bias))


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
    """Run RNN cells over time, in one or both directions.

    ``[B, T, I], [B, D, H], [B], [D, H, I], [D, H, H], [D, H] -> [B, D, T, H], [B, D, H]``. Spec:
    sequence/rnn-sequence-5.
    """
    check_weights(data, weights, recurrence, 1, hidden_size)

    function_names = activations_of_direction(activations, direction, _DEFAULTS)

    def prepare(wide: Array, index: int) -> tuple[Array, RecurrentStep]:
        step = _step(aligned_transpose(computable(recurrence[index])), function_names, clip)
        return projected_inputs(wide, computable(weights[index]), computable(bias[index])), step

    output, last = run_over_time(
        data, (hidden,), lengths, direction, (weights, recurrence, bias), prepare
    )
    return output, last


def _step(recurrence: Array, activations: Sequence[str], clip: float) -> RecurrentStep:
    """Return a step with ``recurrence [H, H]``."""
    function = activation_functions(activations, _DEFAULTS)[0]

    def step(projected: Array, hidden: Array, cell: Array | None, output: Array, /) -> None:
        np.matmul(hidden, recurrence, out=output)
        output += projected
        clip_in_place(output, clip)
        function(output, output)

    return step
