"""Derivatives of recurrent sequences by two loops.

The first computes the states before each step, the second differentiates the cells in reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value

_FIRST, _STEP = np.array(0), np.array([1])
_TIME_FIRST = np.array([1, 0, 2])


def through_cells(cell: str, rule: Gradient, states: int) -> Gradient:
    """Return the rule of a sequence of cells with one or two states.

    The inputs are data ``[B, T, I]``, states ``[B, D, H]``, lengths ``[B]`` and weights ``[D,
    ...]``.
    """

    def gradient(node: Reverse, /) -> Adjoints:
        weights = node.inputs[2 + states :]
        backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[
            node.attributes["direction"]
        ]
        directions = [
            _Direction(node, cell, rule, states, number, is_reverse).compute()
            for number, is_reverse in enumerate(backwards)
        ]
        of_data = (
            directions[0].of_data
            if len(directions) == 1
            else directions[0].of_data + directions[1].of_data
        )
        of_states = [
            _join_directions(node, [direction.of_states[index] for direction in directions], 1)
            for index in range(states)
        ]
        of_weights = [
            _join_directions(node, [direction.of_weights[index] for direction in directions], 0)
            for index in range(len(weights))
        ]
        return of_data, *of_states, None, *of_weights

    return gradient


@dataclass(frozen=True, slots=True)
class _DirectionAdjoints:
    """The adjoints of one direction."""

    of_data: Value
    of_states: Sequence[Value]
    of_weights: Sequence[Value]


@dataclass(frozen=True, slots=True)
class _Direction:
    """One direction of the sequence, with its steps in execution order."""

    node: Reverse
    cell: str
    rule: Gradient
    states: int
    index: int
    is_reversed: bool

    def compute(self) -> _DirectionAdjoints:
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
        return _DirectionAdjoints(
            of_data,
            [ops.gather(tensor, _FIRST, _FIRST, batch_dims=0) for tensor in of_states_all],
            rest[self.states :],
        )

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
