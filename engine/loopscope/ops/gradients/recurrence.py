"""Derivatives of recurrent cells, and of recurrent sequences by two loops.

The gates of a cell are computed again from its inputs. The first loop of a sequence computes the
states before each step, the second differentiates the cells in reverse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value
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


_FIRST, _STEP = np.array(0), np.array([1])
_TIME_FIRST = np.array([1, 0, 2])


def through_cells(cell: str, rule: Gradient, states: int) -> Gradient:
    """Return the rule of a sequence of cells with one or two states.

    The inputs are data ``[B, T, I]``, states ``[B, D, H]``, lengths ``[B]`` and weights ``[D,
    ...]``.
    """

    def gradient(node: Reverse, /) -> Adjoints:
        backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[
            node.attributes["direction"]
        ]
        all_data, all_states, all_weights = zip(
            *(
                _Direction(node, cell, rule, states, number, is_reverse).adjoints()
                for number, is_reverse in enumerate(backwards)
            ),
            strict=True,
        )
        of_data = all_data[0] if len(all_data) == 1 else all_data[0] + all_data[1]
        of_states = [_join_directions(node, parts, 1) for parts in zip(*all_states, strict=True)]
        of_weights = [_join_directions(node, parts, 0) for parts in zip(*all_weights, strict=True)]
        return of_data, *of_states, None, *of_weights

    return gradient


@dataclass(frozen=True, slots=True)
class _Direction:
    """One direction of the sequence, with its steps in execution order."""

    node: Reverse
    cell: str
    rule: Gradient
    states: int
    index: int
    is_reversed: bool

    def adjoints(self) -> tuple[Value, list[Value], list[Value]]:
        """Return the adjoints of the data, of the initial states and of the weights."""
        node, ops = self.node, self.node.ops
        lengths = ops.convert(node.inputs[1 + self.states], destination_type="i64")
        data = self._in_order(ops.transpose(node.inputs[0], _TIME_FIRST))
        of_output = self._in_order(
            ops.transpose(self._select_direction(node.adjoint_of(0), 1), _TIME_FIRST)
        )
        count = ops.gather(node.shape_of(data), _FIRST, _FIRST, batch_dims=0)
        numbers = ops.range(np.int64(0), count, np.int64(1), output_type="i64")
        active = ops.less(
            ops.unsqueeze(numbers, np.array([1, 2])), ops.unsqueeze(lengths, np.array([0, 2]))
        )
        active = self._in_order(active)
        weights = [self._select_direction(tensor, 0) for tensor in node.inputs[2 + self.states :]]
        before = self._states_before(data, active, weights)
        # The last state of a sequence without steps is 0, whatever the initial state is.
        is_nonempty = ops.unsqueeze(ops.greater(lengths, np.int64(0)), _STEP)
        last_adjoints = [
            node.where(is_nonempty, self._select_direction(node.adjoint_of(1 + index), 1))
            for index in range(self.states)
        ]

        def back(of_states: Sequence[Value], element: Sequence[Value]) -> tuple[Value, ...]:
            row, is_active, of_shown, *states = element
            adjoints = self._cell_back(row, states, weights, is_active, of_states, of_shown)[
                1 : 1 + self.states
            ]
            return tuple(
                node.reshaped(ops.select(is_active, new, old), old)
                for new, old in zip(_present(adjoints), of_states, strict=True)
            )

        of_before = node.scan(back, (data, active, of_output, *before), tuple(last_adjoints), True)
        of_states_all = [
            ops.concat(tensor, ops.unsqueeze(last, _FIRST), axis=0)
            for tensor, last in zip(of_before, last_adjoints, strict=True)
        ]
        after = [
            self._as_batch(ops.slice(tensor, _STEP, np.array([2**62]), _STEP, np.array([0])))
            for tensor in of_states_all
        ]
        rows = [self._as_batch(tensor) for tensor in (data, active, of_output, *before)]
        of_rows, *rest = _present(
            self._cell_back(rows[0], rows[3:], weights, rows[1], after, rows[2])
        )
        of_data = ops.transpose(self._in_order(node.reshaped(of_rows, data)), _TIME_FIRST)
        of_initial = [ops.gather(tensor, _FIRST, _FIRST, batch_dims=0) for tensor in of_states_all]
        return of_data, of_initial, rest[self.states :]

    def _states_before(self, data: Value, active: Value, weights: Sequence[Value]) -> list[Value]:
        """Return the states ``[T, B, H]`` before each step.

        An inactive sequence retains its state.
        """
        node, ops = self.node, self.node.ops
        initial = tuple(
            self._select_direction(tensor, 1) for tensor in node.inputs[1 : 1 + self.states]
        )

        def step(states: Sequence[Value], element: Sequence[Value]) -> tuple[Value, ...]:
            row, is_active = element
            after = node.several(self.cell, row, *states, *weights, **self._attributes())
            return tuple(
                node.reshaped(ops.select(is_active, new, old), old)
                for new, old in zip(after, states, strict=True)
            )

        after = node.scan(step, (data, active), initial)
        extended = [
            ops.concat(ops.unsqueeze(first, _FIRST), tensor, axis=0)
            for first, tensor in zip(initial, after, strict=True)
        ]
        return [
            ops.slice(tensor, np.array([0]), np.array([-1]), _STEP, np.array([0]))
            for tensor in extended
        ]

    def _cell_back(
        self,
        data: Value,
        states: Sequence[Value],
        weights: Sequence[Value],
        active: Value,
        of_states: Sequence[Value],
        of_shown: Value,
    ) -> Adjoints:
        """Apply the derivative of the cell, with zero adjoints for inactive sequences."""
        node = self.node
        inputs = (data, *states, *weights)
        outputs = node.several(self.cell, *inputs, **self._attributes())
        of_outputs = (of_states[0] + of_shown, *of_states[1:])
        adjoints = tuple(node.where(active, adjoint) for adjoint in of_outputs)
        return self.rule(
            replace(
                node,
                inputs=inputs,
                outputs=outputs,
                adjoints=adjoints,
                attributes=self._attributes(),
            )
        )

    def _attributes(self) -> dict[str, object]:
        return {name: value for name, value in self.node.attributes.items() if name != "direction"}

    def _select_direction(self, value: Value, axis: int) -> Value:
        """Return the slice of this direction from an axis of directions."""
        return self.node.ops.gather(value, np.array(self.index), np.array(axis), batch_dims=0)

    def _in_order(self, value: Value) -> Value:
        """Convert between time order and execution order, in either direction."""
        if not self.is_reversed:
            return value
        return self.node.ops.slice(
            value, np.array([-1]), np.array([-(2**62)]), np.array([-1]), np.array([0])
        )

    def _as_batch(self, value: Value) -> Value:
        """Reshape ``[T, B, K]`` to ``[T * B, K]``.

        All steps form one batch, so that one product sums the adjoints of the weights.
        """
        last = self.node.ops.slice(self.node.shape_of(value), np.array([2]), np.array([3]), _STEP)
        return self.node.ops.reshape(
            value, self.node.ops.concat(np.array([-1]), last, axis=0), special_zero=False
        )


def _present(adjoints: Adjoints) -> list[Value]:
    """Return the adjoints that are not None; the rule of a cell returns all of them."""
    return [adjoint for adjoint in adjoints if adjoint is not None]


def _join_directions(node: Reverse, parts: Sequence[Value], axis: int) -> Value:
    """Stack the tensors of all directions along a new axis."""
    expanded = [node.ops.unsqueeze(part, np.array([axis])) for part in parts]
    return expanded[0] if len(expanded) == 1 else node.ops.concat(*expanded, axis=axis)
