"""The operations GRUCell, GRUSequence, AUGRUSequence, RNNCell and RNNSequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.kernel_arithmetic import computable
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

_DEFAULTS = ("sigmoid", "tanh")


def gru_cell(
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
    linear_before_reset: bool,
) -> Array:
    """Compute one step of a gated recurrent unit.

    ``[B, I], [B, H], [3*H, I], [3*H, H], [3*H] -> [B, H]``, gates in the order zrh. With
    ``linear_before_reset`` the bias is ``[4*H]``, with the recurrent bias of h at the end. relu,
    sigmoid and tanh have neither alpha nor beta. Spec: sequence/gru-cell-3.
    """
    check_weights(data, weights, recurrence, 3, hidden_size)
    inner, outer = _biases(bias, hidden_size, linear_before_reset)
    step = _step(computable(recurrence), outer, activations, clip, linear_before_reset)
    return single_step(step, data, hidden, weights, inner)


def gru_sequence(
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
    linear_before_reset: bool,
) -> tuple[Array, Array]:
    """Run GRU cells over time, in one or both directions.

    ``[B, T, I], [B, D, H], [B], [D, 3*H, I], [D, 3*H, H], [D, 3*H or 4*H] -> [B, D, T, H], [B, D,
    H]``. Spec: sequence/gru-sequence-5.
    """
    check_weights(data, weights, recurrence, 3, hidden_size)

    function_names = activations_of_direction(activations, direction, _DEFAULTS)

    def prepare(wide: Array, index: int) -> tuple[Array, RecurrentStep]:
        inner, outer = _biases(bias[index], hidden_size, linear_before_reset)
        step = _step(
            computable(recurrence[index]), outer, function_names, clip, linear_before_reset
        )
        return projected_inputs(wide, computable(weights[index]), inner), step

    output, last = run_over_time(
        data, (hidden,), lengths, direction, (weights, recurrence, bias), prepare
    )
    return output, last


def augru_sequence(
    data: Array,
    hidden: Array,
    lengths: Array,
    weights: Array,
    recurrence: Array,
    bias: Array,
    attention: Array,
    /,
    *,
    hidden_size: int,
    direction: str,
    activations: tuple[str, ...],
    activations_alpha: tuple[float, ...],
    activations_beta: tuple[float, ...],
    clip: float,
    linear_before_reset: bool,
) -> tuple[Array, Array]:
    """Run GRU cells over time, whose update gate each step weakens by an attention score.

    ``[B, T, I], [B, 1, H], [B], [1, 3*H, I], [1, 3*H, H], [1, 3*H], [B, T, 1] -> [B, 1, T, H], [B,
    1, H]``. The update gate is multiplied by 1 minus the score. An operation of OpenVINO's compiled
    models; source: ``ov_ops/augru_sequence.hpp``.
    """
    check_weights(data, weights, recurrence, 3, hidden_size)
    if linear_before_reset:
        raise ValueError("linear_before_reset is true, expected false in AUGRUSequence")
    if attention.shape != (*data.shape[:2], 1):
        raise ValueError(
            f"the attention has shape {list(attention.shape)}, expected {[*data.shape[:2], 1]}"
        )
    scores = computable(attention).swapaxes(0, 1)

    def prepare(wide: Array, index: int) -> tuple[Array, RecurrentStep]:
        inner, _ = _biases(bias[index], hidden_size, linear_before_reset=False)
        projected = projected_inputs(wide, computable(weights[index]), inner)
        step = _step(computable(recurrence[index]), None, activations, clip, False, attends=True)
        return np.concatenate([projected, scores], axis=2), step

    output, last = run_over_time(
        data, (hidden,), lengths, direction, (weights, recurrence, bias), prepare
    )
    return output, last


def _biases(
    bias: Array | None, size: int, linear_before_reset: bool
) -> tuple[Array | None, Array | None]:
    """Return the bias of the projected input ``[3*H]``, and that of the recurrent part of h
    ``[H]``.
    """
    if bias is None:
        return None, None
    expected = (4 if linear_before_reset else 3) * size
    if bias.size != expected:
        raise ValueError(f"the bias has {bias.size} elements, expected {expected}")
    wide = computable(bias).reshape(-1)
    return wide[: 3 * size], wide[3 * size :] if linear_before_reset else None


def _step(
    recurrence: Array,
    bias: Array | None,
    activations: Sequence[str],
    clip: float,
    linear_before_reset: bool,
    *,
    attends: bool = False,
) -> RecurrentStep:
    """Return a step with ``recurrence [3*H, H]``.

    ``attends``: the projected input has an attention score after its 3*H elements.
    """
    first, second = activation_functions(activations, _DEFAULTS)
    size = recurrence.shape[1]
    both = aligned_transpose(recurrence[: 2 * size])
    single = aligned_transpose(recurrence[2 * size :])

    def step(projected: Array, hidden: Array, cell: Array | None, output: Array, /) -> None:
        gates = np.matmul(hidden, both)
        gates += projected[..., : 2 * size]
        clip_in_place(gates, clip)
        first(gates, gates)
        update, reset = gates[..., :size], gates[..., size:]
        if linear_before_reset:
            candidate = np.matmul(hidden, single)
            if bias is not None:
                candidate += bias
            candidate *= reset
        else:
            reset *= hidden
            candidate = np.matmul(reset, single)
        candidate += projected[..., 2 * size : 3 * size]
        clip_in_place(candidate, clip)
        second(candidate, candidate)
        if attends:
            update *= 1 - projected[..., 3 * size :]
        # (1 - z) * h' + z * h, computed as h' + z * (h - h').
        np.subtract(hidden, candidate, out=output)
        np.multiply(output, update, out=output)
        np.add(output, candidate, out=output)

    return step


_RNN_DEFAULTS = ("tanh",)


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
    step = _rnn_step(computable(recurrence).T, activations, clip)
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

    function_names = activations_of_direction(activations, direction, _RNN_DEFAULTS)

    def prepare(wide: Array, index: int) -> tuple[Array, RecurrentStep]:
        step = _rnn_step(aligned_transpose(computable(recurrence[index])), function_names, clip)
        return projected_inputs(wide, computable(weights[index]), computable(bias[index])), step

    output, last = run_over_time(
        data, (hidden,), lengths, direction, (weights, recurrence, bias), prepare
    )
    return output, last


def _rnn_step(recurrence: Array, activations: Sequence[str], clip: float) -> RecurrentStep:
    """Return a step with ``recurrence [H, H]``."""
    function = activation_functions(activations, _RNN_DEFAULTS)[0]

    def step(projected: Array, hidden: Array, cell: Array | None, output: Array, /) -> None:
        np.matmul(hidden, recurrence, out=output)
        output += projected
        clip_in_place(output, clip)
        function(output, output)

    return step
