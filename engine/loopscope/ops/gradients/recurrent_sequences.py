"""Derivatives of recurrent sequences: one loop finds the states before each step, another walks
the cells back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value

_FIRST, _ONE = np.array(0), np.array([1])
_TIME_FIRST = np.array([1, 0, 2])


def through_cells(cell: str, rule: Gradient, states: int) -> Gradient:
    """The rule of a sequence of cells that have one state or two.

    Its inputs are data ``[B, T, I]``, states ``[B, D, H]``, lengths ``[B]`` and weights ``[D,
    ...]``.
    """

    def gradient(at: Reverse, /) -> Adjoints:
        weights = at.inputs[2 + states :]
        backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[
            at.attributes["direction"]
        ]
        found = [
            _Direction(at, cell, rule, states, index, turned).walked()
            for index, turned in enumerate(backwards)
        ]
        of_data = found[0].of_data if len(found) == 1 else found[0].of_data + found[1].of_data
        of_states = [
            _joined(at, [one.of_states[place] for one in found], 1) for place in range(states)
        ]
        of_weights = [
            _joined(at, [one.of_weights[place] for one in found], 0)
            for place in range(len(weights))
        ]
        return of_data, *of_states, None, *of_weights

    return gradient


@dataclass(frozen=True, slots=True)
class _Found:
    """Of one direction."""

    of_data: Value
    of_states: Sequence[Value]
    of_weights: Sequence[Value]


@dataclass(frozen=True, slots=True)
class _Direction:
    """One direction, its steps in the order in which they are taken."""

    at: Reverse
    cell: str
    rule: Gradient
    states: int
    index: int
    turned: bool

    def walked(self) -> _Found:
        at, ops = self.at, self.at.ops
        lengths = ops.convert(at.inputs[1 + self.states], destination_type="i64")
        data = self._in_order(ops.transpose(at.inputs[0], _TIME_FIRST))
        of_output = self._in_order(ops.transpose(self._mine(at.adjoint_of(0), 1), _TIME_FIRST))
        count = ops.gather(at.shape_of(data), _FIRST, _FIRST, batch_dims=0)
        numbers = ops.range(np.int64(0), count, np.int64(1), output_type="i64")
        active = ops.less(
            ops.unsqueeze(numbers, np.array([1, 2])), ops.unsqueeze(lengths, np.array([0, 2]))
        )
        active = self._in_order(active)
        weights = [self._mine(one, 0) for one in at.inputs[2 + self.states :]]
        before = self._states_before(data, active, weights)
        # Of a sequence without steps the last state is 0, whatever the first one was.
        some = ops.unsqueeze(ops.greater(lengths, np.int64(0)), _ONE)
        lasts = [
            at.where(some, self._mine(at.adjoint_of(1 + place), 1)) for place in range(self.states)
        ]

        def back(of_states: Sequence[Value], element: Sequence[Value]) -> tuple[Value, ...]:
            here, on, of_shown, *given = element
            found = self._cell_back(here, given, weights, on, of_states, of_shown)[
                1 : 1 + self.states
            ]
            return tuple(
                at.reshaped(ops.select(on, new, old), old)
                for new, old in zip(_there(found), of_states, strict=True)
            )

        of_before = at.scan(back, (data, active, of_output, *before), tuple(lasts), True)
        each = [
            ops.concat(one, ops.unsqueeze(last, _FIRST), axis=0)
            for one, last in zip(of_before, lasts, strict=True)
        ]
        after = [
            self._rows(ops.slice(one, _ONE, np.array([2**62]), _ONE, np.array([0]))) for one in each
        ]
        rows = [self._rows(one) for one in (data, active, of_output, *before)]
        of_rows, *rest = _there(
            self._cell_back(rows[0], rows[3:], weights, rows[1], after, rows[2])
        )
        of_data = ops.transpose(self._in_order(at.reshaped(of_rows, data)), _TIME_FIRST)
        return _Found(
            of_data,
            [ops.gather(one, _FIRST, _FIRST, batch_dims=0) for one in each],
            rest[self.states :],
        )

    def _states_before(self, data: Value, active: Value, weights: Sequence[Value]) -> list[Value]:
        """``[T, B, H]`` of each state; what is idle keeps its own."""
        at, ops = self.at, self.at.ops
        initial = tuple(self._mine(one, 1) for one in at.inputs[1 : 1 + self.states])

        def step(given: Sequence[Value], element: Sequence[Value]) -> tuple[Value, ...]:
            here, on = element
            after = at.several(self.cell, here, *given, *weights, **self._attributes())
            return tuple(
                at.reshaped(ops.select(on, new, old), old)
                for new, old in zip(after, given, strict=True)
            )

        after = at.scan(step, (data, active), initial)
        each = [
            ops.concat(ops.unsqueeze(first, _FIRST), one, axis=0)
            for first, one in zip(initial, after, strict=True)
        ]
        return [ops.slice(one, np.array([0]), np.array([-1]), _ONE, np.array([0])) for one in each]

    def _cell_back(
        self,
        data: Value,
        given: Sequence[Value],
        weights: Sequence[Value],
        active: Value,
        of_states: Sequence[Value],
        of_shown: Value,
    ) -> Adjoints:
        """The cell's own rule; what is idle has no part in it."""
        at = self.at
        inputs = (data, *given, *weights)
        outputs = at.several(self.cell, *inputs, **self._attributes())
        of_outputs = (of_states[0] + of_shown, *of_states[1:])
        adjoints = tuple(at.where(active, one) for one in of_outputs)
        return self.rule(
            replace(
                at, inputs=inputs, outputs=outputs, adjoints=adjoints, attributes=self._attributes()
            )
        )

    def _attributes(self) -> dict[str, object]:
        return {name: value for name, value in self.at.attributes.items() if name != "direction"}

    def _mine(self, value: Value, axis: int) -> Value:
        """Of a tensor with an axis of directions what is of this one."""
        return self.at.ops.gather(value, np.array(self.index), np.array(axis), batch_dims=0)

    def _in_order(self, value: Value) -> Value:
        """From the order of time to that of the steps, and back."""
        if not self.turned:
            return value
        return self.at.ops.slice(
            value, np.array([-1]), np.array([-(2**62)]), np.array([-1]), np.array([0])
        )

    def _rows(self, value: Value) -> Value:
        """``[T, B, K] -> [T * B, K]``: all steps as one batch, so that weights sum over them in
        one product.
        """
        last = self.at.ops.slice(self.at.shape_of(value), np.array([2]), np.array([3]), _ONE)
        return self.at.ops.reshape(
            value, self.at.ops.concat(np.array([-1]), last, axis=0), special_zero=False
        )


def _there(found: Adjoints) -> list[Value]:
    """A cell's rule leaves none of its inputs out."""
    return [one for one in found if one is not None]


def _joined(at: Reverse, parts: Sequence[Value], axis: int) -> Value:
    """Of each direction, along a new axis."""
    each = [at.ops.unsqueeze(one, np.array([axis])) for one in parts]
    return each[0] if len(each) == 1 else at.ops.concat(*each, axis=axis)
