"""The operations LSTMCell and LSTMSequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.sequence.recurrent import (
    Activation,
    RecurrentStep,
    activation_functions,
    activations_of_direction,
    aligned_transpose,
    check_weights,
    clip_in_place,
    projected_inputs,
    run_over_time,
    sigmoid,
    single_step,
    tanh,
)

_DEFAULTS = ("sigmoid", "tanh", "tanh")


def lstm_cell(
    data: Array,
    hidden: Array,
    cell: Array,
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
) -> tuple[Array, Array]:
    """Compute one step of a long short-term memory.

    ``[B, I], [B, H], [B, H], [4*H, I], [4*H, H], [4*H] -> [B, H], [B, H]``, gates in the order
    fico. relu, sigmoid and tanh have neither alpha nor beta. Spec: sequence/lstm-cell-1.
    """
    check_weights(data, weights, recurrence, 4, hidden_size)
    state = np.array(computable(cell))
    step = lstm_step(computable(recurrence).T, activations, clip)
    wide_bias = None if bias is None else computable(bias)
    output = single_step(step, data, hidden, weights, wide_bias, state)
    return output, rounded(state, data.dtype)


def lstm_cell_with_peepholes(
    data: Array,
    hidden: Array,
    cell: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None = None,
    peepholes: Array | None = None,
    /,
    *,
    hidden_size: int,
    activations: tuple[str, ...],
    activations_alpha: tuple[float, ...],
    activations_beta: tuple[float, ...],
    clip: float,
    input_forget: bool,
    weights_format: str,
) -> tuple[Array, Array]:
    """Compute one step of an LSTM as files of opset1 define it, with peepholes ``[3*H]``.

    With ``input_forget`` the input gate is ``1 - f``. The peepholes are for f, i, o; the page omits
    them. Shapes as for LSTMCell-4. The gates are in the order fico, as on the page, and
    ``weights_format`` is ignored: OpenVINO's own files contain ``ifco``, which its CPU ignores.
    Spec: sequence/lstm-cell-1.
    """
    check_weights(data, weights, recurrence, 4, hidden_size)
    dtype, previous = data.dtype, computable(cell)
    gates = np.matmul(computable(data), computable(weights).T) + np.matmul(
        computable(hidden), computable(recurrence).T
    )
    if bias is not None:
        gates += computable(bias)
    gate_of = [
        np.ascontiguousarray(gates[:, position * hidden_size : (position + 1) * hidden_size])
        for position in range(4)
    ]
    peep = (
        np.zeros((3, hidden_size), previous.dtype)
        if peepholes is None
        else computable(peepholes).reshape(3, hidden_size)
    )
    first, second, third = activation_functions(activations, _DEFAULTS)
    forget, enter, candidate, leave = gate_of
    _activate(forget, first, clip, peep[0] * previous)
    _activate(enter, first, clip, peep[1] * previous)
    _activate(candidate, second, clip)
    state = forget * previous + (1 - forget if input_forget else enter) * candidate
    _activate(leave, first, clip, peep[2] * state)
    activated = np.empty_like(state)
    third(state, activated)
    return rounded(leave * activated, dtype), rounded(state, dtype)


def _activate(
    gate: np.ndarray, function: Activation, clip: float, peephole: np.ndarray | float = 0
) -> None:
    """Add the peephole's part to a gate, clip it and apply its function, all in place."""
    gate += peephole
    clip_in_place(gate, clip)
    function(gate, gate)


def lstm_sequence(
    data: Array,
    hidden: Array,
    cell: Array,
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
) -> tuple[Array, Array, Array]:
    """Run LSTM cells over time, in one or both directions.

    ``[B, T, I], [B, D, H], [B, D, H], [B], [D, 4*H, I], [D, 4*H, H], [D, 4*H] -> [B, D, T, H], [B,
    D, H], [B, D, H]``. Spec: sequence/lstm-sequence-5.
    """
    check_weights(data, weights, recurrence, 4, hidden_size)

    function_names = activations_of_direction(activations, direction, _DEFAULTS)

    def prepare(wide: Array, index: int) -> tuple[Array, RecurrentStep]:
        step = lstm_step(aligned_transpose(computable(recurrence[index])), function_names, clip)
        return projected_inputs(wide, computable(weights[index]), computable(bias[index])), step

    output, last_hidden, last_cell = run_over_time(
        data, (hidden, cell), lengths, direction, (weights, recurrence, bias), prepare
    )
    return output, last_hidden, last_cell


def lstm_step(recurrence: Array, activations: Sequence[str], clip: float) -> RecurrentStep:
    """Return a step with ``recurrence [H, 4*H]`` and buffers of its own."""
    first, second, third = activation_functions(activations, _DEFAULTS)
    size = recurrence.shape[0]
    # With the default functions all gates go through one tanh, because a sigmoid is a tanh of half
    # its argument, shifted and scaled.
    is_default = first is sigmoid and second is tanh
    half, shift = np.full(4 * size, 0.5, recurrence.dtype), np.full(4 * size, 0.5, recurrence.dtype)
    half[2 * size : 3 * size], shift[2 * size : 3 * size] = 1, 0
    is_clipped = 0 < clip < float("inf")
    buffers: list[Array] = []

    def step(projected: Array, hidden: Array, cell: Array | None, output: Array, /) -> None:
        assert cell is not None, "an LSTM has a cell state"
        if not buffers:
            fresh = np.empty_like(projected)
            buffers.extend(
                (
                    fresh,
                    *(fresh[..., place * size : (place + 1) * size] for place in range(4)),
                    np.empty_like(output),
                )
            )
        gates, forget, enter, candidate, leave, scratch = buffers
        np.dot(hidden, recurrence, out=gates)
        np.add(gates, projected, out=gates)
        if is_clipped:
            np.clip(gates, -clip, clip, out=gates)
        if is_default:
            np.multiply(gates, half, out=gates)
            np.tanh(gates, out=gates)
            np.multiply(gates, half, out=gates)
            np.add(gates, shift, out=gates)
        else:
            for part, function in (
                (gates[..., : 2 * size], first),
                (candidate, second),
                (leave, first),
            ):
                function(part, part)
        np.multiply(forget, cell, out=cell)
        np.multiply(enter, candidate, out=scratch)
        np.add(cell, scratch, out=cell)
        third(cell, scratch)
        np.multiply(leave, scratch, out=output)

    return step
