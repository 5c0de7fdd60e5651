"""Loops of recurrent layers: time steps, directions, lengths and layouts, for any cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.builder import ops
from loopscope.builder.loop import Entered, Iteration, Parts, build_loop
from loopscope.builder.tensor import Tensor
from loopscope.ir.element_type import ElementType
from loopscope.transform.recurrences.opening import (
    Length,
    Opening,
    converted,
    length,
    sized,
    variable,
)

Layout = Literal["time, direction, batch", "batch, time, direction", "batch, direction, time"]
"""Order of the axes of the outputs of all steps, before the axis of the units."""
Cell = Callable[[Tensor, Sequence[Tensor]], Sequence[Tensor]]
"""Function that builds one step: from the input ``[D, B, I]`` and the states ``[D, B, H]`` to the
next states. The first state is the output of the step.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentLayer:
    """A recurrent layer whose steps become the iterations of a loop."""

    data: Tensor
    """Input of all steps, ``[T, B, I]``, or ``[B, T, I]`` if the layout begins with the batch."""
    layout: Layout
    backwards: Sequence[bool]
    """True for each direction that runs backwards."""
    lengths: Tensor | None
    """Lengths of the sequences ``[B]``; None if all have all steps."""
    states: Sequence[tuple[str, Tensor]]
    """Names and initial values of the states, ``[D, B, H]``."""
    cell: Cell
    output_type: ElementType | None
    returned_states: int
    """Number of states that are outputs of the operator, from the first one on."""
    empty_ends_in_zeros: bool
    """True if the last states of a sequence of length 0 are zeros instead of the initial ones."""
    rests_at_zero: bool = False
    """True if the cell receives zeros as the hidden state of sequences that ended before the last
    step. That matters to a cell that quantizes the states of a batch together.
    """

    @property
    def batch_first(self) -> bool:
        return self.layout.startswith("batch")


def build_layer(opening: Opening, layer: RecurrentLayer) -> tuple[Tensor, ...]:
    """Build the loop of a layer; return the outputs of all steps and the last states.

    A layer in two directions runs both in one iteration: in iteration 0 the first step of each
    sequence forward, and its last step backward.
    """
    steps = _Steps(layer)
    step_length = None
    if layer.lengths is not None:
        counts = ops.convert(layer.lengths, destination_type="i64")
        step_length = ops.reshape(counts, [1, -1, 1], special_zero=False, name="lengths")
    batch = layer.data.shape.at(int(not layer.batch_first))
    variables = [
        variable(name, initial, (initial.shape.at(0), batch, initial.shape.at(2)))
        for name, initial in layer.states
    ]
    parts = [Parts("input", steps.data, steps.axis)]

    def trace(entered: Entered) -> Iteration:
        before = list(entered.variables)
        states = before
        if step_length is not None and layer.rests_at_zero:
            number = entered.body.iteration_number("step")
            is_awake = ops.less_equal(number, step_length, name="is_awake")
            states = [ops.select(is_awake, before[0], 0, name="awake_hidden"), *before[1:]]
        after = list(layer.cell(steps.of_iteration(entered.parts[0]), states))
        output = after[0]
        if step_length is not None:
            number = entered.body.iteration_number("step")
            is_active = ops.less(number, step_length, name="is_active")
            after = [
                ops.select(is_active, new, old, name=f"{name}_or_previous")
                for (name, _), new, old in zip(layer.states, after, before, strict=True)
            ]
            output = ops.select(is_active, output, 0, name="output_or_zero")
        return Iteration(after, [steps.part(converted(output, layer.output_type))])

    count = length(steps.data, steps.axis)
    plan = opening.plan(count, variables, parts, steps.joined_axis)
    last, (outputs,) = build_loop(opening.graph, plan, trace)
    returned = [_last_state(layer, state) for state in last[: layer.returned_states]]
    return (steps.restored(sized(outputs, steps.lengths(last[0]))), *returned)


def _last_state(layer: RecurrentLayer, state: Tensor) -> Tensor:
    if layer.empty_ends_in_zeros and layer.lengths is not None:
        # A layer without steps returns its initial states, also for sequences of length 0.
        fewest = ops.minimum(length(layer.data, int(layer.batch_first)), 1)
        lengths = ops.convert(layer.lengths, destination_type="i64")
        is_empty = ops.reshape(ops.less(lengths, fewest), [1, -1, 1], special_zero=False)
        state = ops.select(is_empty, 0, state)
    state = converted(state, layer.output_type)
    return ops.transpose(state, [1, 0, 2]) if layer.batch_first else state


class _Steps:
    """The inputs of a layer in the order of its iterations, and the way back for its outputs."""

    def __init__(self, layer: RecurrentLayer) -> None:
        self._layer = layer
        self._is_plain = not any(layer.backwards)
        """True if iteration i is time step i: the loop reads and writes in the layout as it is."""
        self.axis = int(layer.batch_first) if self._is_plain else 0
        self.data = layer.data if self._is_plain else self._in_order_of_iterations()

    @property
    def joined_axis(self) -> int:
        """Axis of the loop's output along which the steps lie."""
        if not self._is_plain:
            return 0
        return self._layer.layout.split(", ").index("time")

    def lengths(self, state: Tensor) -> list[Length]:
        """Return the lengths of the loop's output, given a state ``[D, B, H]``."""
        axes: dict[str, Length] = {
            "time": (self._layer.data, int(self._layer.batch_first)),
            "direction": (state, 0),
            "batch": (self._layer.data, int(not self._layer.batch_first)),
        }
        layout = self._layer.layout if self._is_plain else "time, direction, batch"
        return [*(axes[axis] for axis in layout.split(", ")), (state, 2)]

    def of_iteration(self, part: Tensor) -> Tensor:
        """Return the input of one iteration, [D, B, I]."""
        if len(self._layer.backwards) > 1:
            return ops.squeeze(part, [0])
        if self._is_plain and self._layer.batch_first:
            return ops.transpose(part, [1, 0, 2])
        return part

    def part(self, output: Tensor) -> Tensor:
        """Return the output of one iteration with an axis for the steps."""
        if self._is_plain and self._layer.batch_first:
            output = ops.transpose(output, [1, 0, 2])
        return ops.unsqueeze(output, [self.joined_axis], name="output")

    def restored(self, outputs: Tensor) -> Tensor:
        """Return the outputs of all iterations in the layout of the operator."""
        if self._is_plain:
            return outputs
        by_direction = [
            self._reversed(outputs[:, index]) if backwards else outputs[:, index]
            for index, backwards in enumerate(self._layer.backwards)
        ]
        joined = ops.concat([ops.unsqueeze(part, [1]) for part in by_direction], axis=1)
        names = ("time", "direction", "batch")
        order = [*(names.index(axis) for axis in self._layer.layout.split(", ")), 3]
        return joined if order == [0, 1, 2, 3] else ops.transpose(joined, order)

    def _in_order_of_iterations(self) -> Tensor:
        """Return the data [T, B, I], or [T, D, B, I] for two directions."""
        layer = self._layer
        data = ops.transpose(layer.data, [1, 0, 2]) if layer.batch_first else layer.data
        if len(layer.backwards) == 1:
            return self._reversed(data)
        both = [self._reversed(data) if backwards else data for backwards in layer.backwards]
        return ops.concat([ops.unsqueeze(part, [1]) for part in both], axis=1)

    def _reversed(self, data: Tensor) -> Tensor:
        """Return each sequence of [T, B, ...] from its end to its begin."""
        if self._layer.lengths is None:
            reverse: Tensor = data[::-1]
            return reverse
        return ops.reverse_sequence(data, self._layer.lengths, batch_axis=1, seq_axis=0)


def in_order_of_iterations(
    outputs: np.ndarray, layout: Layout, backwards: Sequence[bool], lengths: np.ndarray | None
) -> np.ndarray:
    """Return the outputs of an operator as its loop computes them, ``[T, D, B, H]``.

    ``outputs``: the outputs of all steps in the layout of the operator. A direction that runs
    backwards begins at the end of each sequence.
    """
    axes = layout.split(", ")
    ordered = outputs.transpose(*map(axes.index, ("time", "direction", "batch")), 3)
    steps, _, batch, _ = ordered.shape
    counts = np.full(batch, steps) if lengths is None else lengths.astype(np.int64)
    times = np.arange(steps)[:, None]
    reverse = np.where(times < counts, counts - 1 - times, times)
    return np.stack(
        [
            ordered[reverse, index, np.arange(batch)] if is_backward else ordered[:, index]
            for index, is_backward in enumerate(backwards)
        ],
        axis=1,
    )
