"""Derivatives of recurrent cells: the gates are recomputed from the inputs, then differentiated."""

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
    """A gate, its pre-activation and its function; all tensors are ``[B, H]``."""

    value: Value
    before: Value
    function: str


def rnn_cell(node: Reverse, /) -> Adjoints:
    """Return the adjoints of a cell whose only gate is its new state."""
    data, hidden, weights, recurrence, *bias = node.inputs
    gate = _gate(
        node,
        _affine(node, data, weights, bias) + _affine(node, hidden, recurrence, ()),
        _functions(node, "tanh")[0],
    )
    adjoint = _preactivation_adjoint(node, gate, node.adjoint)
    of_hidden, of_recurrence = _of_product(node, adjoint, hidden, recurrence)
    of_data, of_weights = _of_product(node, adjoint, data, weights)
    return (
        of_data,
        of_hidden,
        of_weights,
        of_recurrence,
        *([_of_bias(node, adjoint, bias[0])] if bias else []),
    )


def lstm_cell(node: Reverse, /) -> Adjoints:
    """Return the adjoints for the hidden and the cell state; gates are in the order fico."""
    data, hidden, cell, weights, recurrence, *bias = node.inputs
    if len(bias) > 1 or node.attributes.get("input_forget", False):
        raise ValueError(
            "cells with peepholes or input_forget do not have a derivative here: "
            "write the model for opset4 or later"
        )
    first, second, third = _functions(node, "sigmoid", "tanh", "tanh")
    parts = node.several(
        "Split",
        _affine(node, data, weights, bias) + _affine(node, hidden, recurrence, ()),
        _COLUMNS,
        num_splits=4,
    )
    forget, input_gate, candidate, output = (
        _gate(node, part, name)
        for part, name in zip(parts, (first, first, second, first), strict=True)
    )
    activated = _activate(node, node.outputs[1], third)
    of_state = node.adjoint_of(1) + node.adjoint * output.value * _slope(node, activated, third)
    of_gates = (
        of_state * cell,
        of_state * candidate.value,
        of_state * input_gate.value,
        node.adjoint * activated,
    )
    of_preactivations = [
        _preactivation_adjoint(node, gate, adjoint)
        for gate, adjoint in zip((forget, input_gate, candidate, output), of_gates, strict=True)
    ]
    adjoint = node.ops.concat(*of_preactivations, axis=1)
    of_data, of_weights = _of_product(node, adjoint, data, weights)
    of_hidden, of_recurrence = _of_product(node, adjoint, hidden, recurrence)
    of_bias = [_of_bias(node, adjoint, bias[0])] if bias else []
    return of_data, of_hidden, of_state * forget.value, of_weights, of_recurrence, *of_bias


def gru_cell(node: Reverse, /) -> Adjoints:
    """Return the adjoints for the update, reset and candidate gates, in the order zrh."""
    data, hidden, weights, recurrence, *bias = node.inputs
    linear, size = node.attributes["linear_before_reset"], node.attributes["hidden_size"]
    flat = [node.ops.reshape(vector, np.array([-1]), special_zero=False) for vector in bias]
    inner, outer = _biases(node, flat, size, linear)
    first, second = _functions(node, "sigmoid", "tanh")
    gate_weights, candidate_weights = node.several(
        "VariadicSplit", recurrence, np.array(0), np.array([2 * size, size])
    )
    projected, of_candidate = node.several(
        "VariadicSplit", _affine(node, data, weights, inner), _COLUMNS, np.array([2 * size, size])
    )
    parts = node.several(
        "Split", projected + _affine(node, hidden, gate_weights, ()), _COLUMNS, num_splits=2
    )
    update, reset = (_gate(node, part, first) for part in parts)
    recurrent = _affine(node, hidden, candidate_weights, outer) if linear else reset.value * hidden
    recurrent_part = (
        reset.value * recurrent if linear else _affine(node, recurrent, candidate_weights, ())
    )
    candidate = _gate(node, of_candidate + recurrent_part, second)

    of_candidate_part = _preactivation_adjoint(node, candidate, node.adjoint * (1.0 - update.value))
    of_update = _preactivation_adjoint(node, update, node.adjoint * (hidden - candidate.value))
    if linear:
        of_recurrent = of_candidate_part * reset.value
        of_reset_hidden, of_candidate_weights = _of_product(
            node, of_recurrent, hidden, candidate_weights
        )
        of_reset = _preactivation_adjoint(node, reset, of_candidate_part * recurrent)
    else:
        of_recurrent, of_candidate_weights = _of_product(
            node, of_candidate_part, recurrent, candidate_weights
        )
        of_reset_hidden = of_recurrent * reset.value
        of_reset = _preactivation_adjoint(node, reset, of_recurrent * hidden)
    of_gates = node.ops.concat(of_update, of_reset, axis=1)
    of_hidden, of_gate_weights = _of_product(node, of_gates, hidden, gate_weights)
    adjoint = node.ops.concat(of_gates, of_candidate_part, axis=1)
    of_data, of_weights = _of_product(node, adjoint, data, weights)
    summed = node.ops.concat(adjoint, of_recurrent, axis=1) if linear else adjoint
    of_recurrence = node.ops.concat(of_gate_weights, of_candidate_weights, axis=0)
    of_bias = [_of_bias(node, summed, bias[0])] if bias else []
    return (
        of_data,
        of_hidden + of_reset_hidden + node.adjoint * update.value,
        of_weights,
        of_recurrence,
        *of_bias,
    )


def _biases(
    node: Reverse, bias: Sequence[Value], size: int, linear: bool
) -> tuple[Sequence[Value], Sequence[Value]]:
    """Return the biases of the projected inputs and of the recurrent candidate part.

    Only the linear form has the second bias.
    """
    if not linear or not bias:
        return bias, ()
    inner, outer = node.several("VariadicSplit", bias[0], np.array(0), np.array([3 * size, size]))
    return (inner,), (outer,)


def _functions(node: Reverse, *defaults: str) -> list[str]:
    names = [name.lower() for name in node.attributes["activations"]]
    return [*names, *defaults[len(names) :]][: len(defaults)]


def _affine(node: Reverse, rows: Value, matrix: Value, bias: Sequence[Value]) -> Value:
    """Compute ``[B, I] x [K, I] (+ [K]) -> [B, K]``."""
    product = node.ops.matmul(rows, matrix, transpose_a=False, transpose_b=True)
    return product + bias[0] if bias else product


def _of_product(node: Reverse, adjoint: Value, rows: Value, matrix: Value) -> tuple[Value, Value]:
    """Return the adjoints of the rows and the matrix of ``_affine``."""
    of_rows = product_with_turned(node, adjoint, matrix, transpose_right=False)
    return of_rows, node.ops.matmul(adjoint, rows, transpose_a=True, transpose_b=False)


def _of_bias(node: Reverse, adjoint: Value, bias: Value) -> Value:
    return node.reshaped(node.ops.reduce_sum(adjoint, np.array([0]), keep_dims=False), bias)


def _limit(node: Reverse) -> float | None:
    """Return the bound at which pre-activations are clipped; None without clipping."""
    clip = float(node.attributes["clip"])
    return clip if 0 < clip < math.inf else None


def _gate(node: Reverse, before: Value, function: str) -> _Gate:
    limit = _limit(node)
    inside = before if limit is None else node.ops.clamp(before, min=-limit, max=limit)
    return _Gate(_activate(node, inside, function), before, function)


def _activate(node: Reverse, value: Value, function: str) -> Value:
    match function:
        case "sigmoid":
            return node.ops.sigmoid(value)
        case "tanh":
            return node.ops.tanh(value)
    return node.ops.relu(value)


def _slope(node: Reverse, value: Value, function: str) -> Value:
    """Return the derivative of an activation, computed from its value."""
    match function:
        case "sigmoid":
            return value * (1.0 - value)
        case "tanh":
            return 1.0 - value * value
    return node.where(value > 0.0, node.filled(1, value))


def _preactivation_adjoint(node: Reverse, gate: _Gate, adjoint: Value) -> Value:
    """Return the adjoint of a pre-activation from that of its gate; 0 where it was clipped."""
    adjoint_before = adjoint * _slope(node, gate.value, gate.function)
    limit = _limit(node)
    if limit is None:
        return adjoint_before
    return node.where(
        node.ops.logical_and(gate.before >= -limit, gate.before <= limit), adjoint_before
    )
