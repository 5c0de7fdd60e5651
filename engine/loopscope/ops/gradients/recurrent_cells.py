"""Derivatives of recurrent cells: what the gates were is computed again from the inputs, and
walked back by the chain rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.matrix import product_with_turned

_COLUMNS = np.array(1)


@dataclass(frozen=True, slots=True)
class _Gate:
    """A gate, and what it was made of; everything is ``[B, H]``."""

    value: Value
    before: Value
    function: str


def rnn_cell(at: Reverse, /) -> Adjoints:
    """Of one gate, which is the new state."""
    data, hidden, weights, recurrence, *bias = at.inputs
    gate = _gate(
        at,
        _affine(at, data, weights, bias) + _affine(at, hidden, recurrence, ()),
        _functions(at, "tanh")[0],
    )
    adjoint = _before(at, gate, at.adjoint)
    of_hidden, of_recurrence = _of_product(at, adjoint, hidden, recurrence)
    of_data, of_weights = _of_product(at, adjoint, data, weights)
    return (
        of_data,
        of_hidden,
        of_weights,
        of_recurrence,
        *([_of_bias(at, adjoint, bias[0])] if bias else []),
    )


def lstm_cell(at: Reverse, /) -> Adjoints:
    """Of the hidden state and the cell state; gates in the order fico."""
    data, hidden, cell, weights, recurrence, *bias = at.inputs
    if len(bias) > 1 or at.attributes.get("input_forget", False):
        raise ValueError(
            "of cells with peepholes or input_forget there is no derivative here: write the model for opset4 or later"
        )
    first, second, third = _functions(at, "sigmoid", "tanh", "tanh")
    parts = at.several(
        "Split",
        _affine(at, data, weights, bias) + _affine(at, hidden, recurrence, ()),
        _COLUMNS,
        num_splits=4,
    )
    forget, enter, candidate, leave = (
        _gate(at, part, name)
        for part, name in zip(parts, (first, first, second, first), strict=True)
    )
    shown = _applied(at, at.outputs[1], third)
    of_state = at.adjoint_of(1) + at.adjoint * leave.value * _slope(at, shown, third)
    of_gates = (
        of_state * cell,
        of_state * candidate.value,
        of_state * enter.value,
        at.adjoint * shown,
    )
    each = [
        _before(at, gate, adjoint)
        for gate, adjoint in zip((forget, enter, candidate, leave), of_gates, strict=True)
    ]
    adjoint = at.ops.concat(*each, axis=1)
    of_data, of_weights = _of_product(at, adjoint, data, weights)
    of_hidden, of_recurrence = _of_product(at, adjoint, hidden, recurrence)
    of_bias = [_of_bias(at, adjoint, bias[0])] if bias else []
    return of_data, of_hidden, of_state * forget.value, of_weights, of_recurrence, *of_bias


def gru_cell(at: Reverse, /) -> Adjoints:
    """Of the update, reset and candidate gates, in the order zrh."""
    data, hidden, weights, recurrence, *bias = at.inputs
    linear, size = at.attributes["linear_before_reset"], at.attributes["hidden_size"]
    flat = [at.ops.reshape(one, np.array([-1]), special_zero=False) for one in bias]
    inner, outer = _biases(at, flat, size, linear)
    first, second = _functions(at, "sigmoid", "tanh")
    both, single = at.several("VariadicSplit", recurrence, np.array(0), np.array([2 * size, size]))
    projected, of_candidate = at.several(
        "VariadicSplit", _affine(at, data, weights, inner), _COLUMNS, np.array([2 * size, size])
    )
    parts = at.several("Split", projected + _affine(at, hidden, both, ()), _COLUMNS, num_splits=2)
    update, reset = (_gate(at, part, first) for part in parts)
    recurrent = _affine(at, hidden, single, outer) if linear else reset.value * hidden
    inside = reset.value * recurrent if linear else _affine(at, recurrent, single, ())
    candidate = _gate(at, of_candidate + inside, second)

    of_inside = _before(at, candidate, at.adjoint * (1.0 - update.value))
    of_update = _before(at, update, at.adjoint * (hidden - candidate.value))
    if linear:
        of_recurrent = of_inside * reset.value
        of_kept, of_single = _of_product(at, of_recurrent, hidden, single)
        of_reset = _before(at, reset, of_inside * recurrent)
    else:
        of_recurrent, of_single = _of_product(at, of_inside, recurrent, single)
        of_kept = of_recurrent * reset.value
        of_reset = _before(at, reset, of_recurrent * hidden)
    of_gates = at.ops.concat(of_update, of_reset, axis=1)
    of_hidden, of_both = _of_product(at, of_gates, hidden, both)
    adjoint = at.ops.concat(of_gates, of_inside, axis=1)
    of_data, of_weights = _of_product(at, adjoint, data, weights)
    summed = at.ops.concat(adjoint, of_recurrent, axis=1) if linear else adjoint
    of_recurrence = at.ops.concat(of_both, of_single, axis=0)
    of_bias = [_of_bias(at, summed, bias[0])] if bias else []
    return (
        of_data,
        of_hidden + of_kept + at.adjoint * update.value,
        of_weights,
        of_recurrence,
        *of_bias,
    )


def _biases(
    at: Reverse, bias: Sequence[Value], size: int, linear: bool
) -> tuple[Sequence[Value], Sequence[Value]]:
    """What is added to the projected inputs, and of the linear form to the recurrent part of the
    candidate.
    """
    if not linear or not bias:
        return bias, ()
    inner, outer = at.several("VariadicSplit", bias[0], np.array(0), np.array([3 * size, size]))
    return (inner,), (outer,)


def _functions(at: Reverse, *defaults: str) -> list[str]:
    given = [name.lower() for name in at.attributes["activations"]]
    return [*given, *defaults[len(given) :]][: len(defaults)]


def _affine(at: Reverse, rows: Value, matrix: Value, bias: Sequence[Value]) -> Value:
    """``[B, I] x [K, I] (+ [K]) -> [B, K]``."""
    product = at.ops.matmul(rows, matrix, transpose_a=False, transpose_b=True)
    return product + bias[0] if bias else product


def _of_product(at: Reverse, adjoint: Value, rows: Value, matrix: Value) -> tuple[Value, Value]:
    """Of the rows and of the matrix of ``_affine``."""
    of_rows = product_with_turned(at, adjoint, matrix, transpose_right=False)
    return of_rows, at.ops.matmul(adjoint, rows, transpose_a=True, transpose_b=False)


def _of_bias(at: Reverse, adjoint: Value, bias: Value) -> Value:
    return at.reshaped(at.ops.reduce_sum(adjoint, np.array([0]), keep_dims=False), bias)


def _limit(at: Reverse) -> float | None:
    """How far the gates are let go before their function; None where they are not clipped."""
    clip = float(at.attributes["clip"])
    return clip if 0 < clip < math.inf else None


def _gate(at: Reverse, before: Value, function: str) -> _Gate:
    limit = _limit(at)
    inside = before if limit is None else at.ops.clamp(before, min=-limit, max=limit)
    return _Gate(_applied(at, inside, function), before, function)


def _applied(at: Reverse, value: Value, function: str) -> Value:
    match function:
        case "sigmoid":
            return at.ops.sigmoid(value)
        case "tanh":
            return at.ops.tanh(value)
    return at.ops.relu(value)


def _slope(at: Reverse, value: Value, function: str) -> Value:
    """The derivative of an activation, at its value."""
    match function:
        case "sigmoid":
            return value * (1.0 - value)
        case "tanh":
            return 1.0 - value * value
    return at.where(value > 0.0, at.filled(1, value))


def _before(at: Reverse, gate: _Gate, adjoint: Value) -> Value:
    """From the adjoint of a gate to that of what went into it; 0 where that was clipped."""
    found = adjoint * _slope(at, gate.value, gate.function)
    limit = _limit(at)
    if limit is None:
        return found
    return at.where(at.ops.logical_and(gate.before >= -limit, gate.before <= limit), found)
