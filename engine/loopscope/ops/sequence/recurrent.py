"""Shared parts of recurrent operations: activations, steps over time, sequence lengths, shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from loopscope.ir import memory
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Known
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements

ACTIVATIONS = ("sigmoid", "tanh", "relu")
DIRECTIONS = ("forward", "reverse", "bidirectional")


def sigmoid(values: Array, out: Array) -> None:
    """Compute ``1 / (1 + exp(-x))``.

    x is negated by a multiplication, because numpy 2.4 negates wrongly into elements 16 bytes
    apart.
    """
    np.multiply(values, -1, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


def tanh(values: Array, out: Array) -> None:
    """Compute the hyperbolic tangent."""
    np.tanh(values, out=out)


def relu(values: Array, out: Array) -> None:
    """Compute the greater of x and 0."""
    np.maximum(values, 0, out=out)


Activation = Callable[[Array, Array], None]
"""Function that takes the values and an array for the result, which may be the same array."""
_FUNCTIONS: Mapping[str, Activation] = {"sigmoid": sigmoid, "tanh": tanh, "relu": relu}


def activations_of_direction(
    activations: Sequence[str], direction: str, defaults: Sequence[str]
) -> Sequence[str]:
    """Return the activations of one direction.

    Files converted from ONNX may name functions for both directions; OpenVINO uses the first half
    for both.
    """
    both = direction == "bidirectional" and len(activations) == 2 * len(defaults)
    return activations[: len(defaults)] if both else activations


def activation_functions(activations: Sequence[str], defaults: Sequence[str]) -> list[Activation]:
    """Return the functions of an ``activations`` attribute, with defaults for missing ones.

    Names may be in any case, as in models from ONNX.
    """
    if len(activations) > len(defaults):
        raise ValueError(
            f"activations names {len(activations)} functions, expected {len(defaults)}"
        )
    return [_FUNCTIONS[name.lower()] for name in (*activations, *defaults[len(activations) :])]


def clip_in_place(values: Array, clip: float) -> None:
    """Clip in place to ``[-clip, clip]``; 0 and infinity disable clipping."""
    if 0 < clip < float("inf"):
        np.clip(values, -clip, clip, out=values)


class RecurrentStep(Protocol):
    """One time step: computes the next hidden state into ``output`` from the projected input ``[B,
    K]`` and the state.

    All arrays may lack the batch axis. A cell state is replaced in place.
    """

    def __call__(
        self, projected: Array, hidden: Array, cell: Array | None, output: Array, /
    ) -> None: ...


Prepare = Callable[[Array, int], tuple[Array, RecurrentStep]]
"""Function from the data in the computation type and the index of a direction to its projected
inputs ``[T, B, K]`` and its step.
"""


def run_over_time(
    data: Array,
    states: Sequence[Array],
    lengths: Array,
    direction: str,
    weights: Sequence[Array],
    prepare: Prepare,
) -> list[Array]:
    """Run a cell over time, in one or both directions.

    ``states`` are the hidden state and, for an LSTM, the cell state before the first step, ``[B, D,
    H]``. Return the outputs ``[B, D, T, H]``, then each last state ``[B, D, H]``.
    """
    backwards = directions(direction)
    check_directions(len(backwards), states[0], *weights)
    batch, steps = data.shape[:2]
    wide = computable(data)
    counts = sequence_lengths(lengths, batch)
    output = np.empty((len(backwards), steps, batch, states[0].shape[-1]), wide.dtype)
    last = [np.array(computable(state).swapaxes(0, 1), order="C") for state in states]
    for index, reverse in enumerate(backwards):
        projected, step = prepare(wide, index)
        walk(
            step,
            projected,
            last[0][index],
            last[1][index] if len(last) > 1 else None,
            output[index],
            counts,
            reverse,
        )
    results = [output.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last)]
    return [rounded(np.ascontiguousarray(array), data.dtype) for array in results]


def walk(
    step: RecurrentStep,
    projected: Array,
    hidden: Array,
    cell: Array | None,
    output: Array,
    lengths: Array,
    reverse: bool,
) -> None:
    """Run all steps of one direction.

    ``projected`` is ``[T, B, K]``; ``hidden`` and ``cell``, ``[B, H]``, are updated in place;
    ``output`` is ``[T, B, H]``. An element of the batch takes part in its first ``lengths[b]`` time
    steps; its further outputs are 0. An element of length 0 ends with zeros, as in the runtime.
    """
    if bool((lengths >= len(output)).all()):
        _walk_whole(step, projected, hidden, cell, output, reverse)
        return
    current = hidden
    for time in reversed(range(len(output))) if reverse else range(len(output)):
        current = _masked_step(step, projected[time], current, cell, output[time], time >= lengths)
    hidden[...] = current
    hidden[lengths == 0] = 0
    if cell is not None:
        cell[lengths == 0] = 0


def _walk_whole(
    step: RecurrentStep,
    projected: Array,
    hidden: Array,
    cell: Array | None,
    output: Array,
    reverse: bool,
) -> None:
    """Run all steps for all elements; a batch of one drops its axis, which is faster."""
    if len(hidden) == 1:
        projected = projected[:, 0]
        output = output[:, 0]
        last = hidden[0]
        cell = None if cell is None else cell[0]
    else:
        last = hidden
    current = last
    for inputs, outputs in (
        zip(projected[::-1], output[::-1], strict=True)
        if reverse
        else zip(projected, output, strict=True)
    ):
        step(inputs, current, cell, outputs)
        current = outputs
    last[...] = current


def _masked_step(
    step: RecurrentStep,
    projected: Array,
    hidden: Array,
    cell: Array | None,
    output: Array,
    idle: Array,
) -> Array:
    """Run a step, then restore the state of the idle elements of the batch and set their output to
    0.
    """
    before = None if cell is None else cell.copy()
    step(projected, hidden, cell, output)
    after = np.where(idle[:, None], hidden, output)
    output[idle] = 0
    if cell is not None and before is not None:
        cell[idle] = before[idle]
    return after


def projected_inputs(data: Array, weights: Array, bias: Array | None) -> Array:
    """Compute ``[B, T, I] x [K, I] (+ [K]) -> [T, B, K]``: the part of the gates that is
    independent of the state.
    """
    batch, steps, size = data.shape
    check_elements(steps * batch * weights.shape[0], "the gates of the sequence")
    rows = np.ascontiguousarray(data.swapaxes(0, 1)).reshape(steps * batch, size)
    product = np.matmul(rows, weights.T)
    if bias is not None:
        product += bias
    return product.reshape(steps, batch, weights.shape[0])


def single_step(
    step: RecurrentStep,
    data: Array,
    hidden: Array,
    weights: Array,
    bias: Array | None,
    cell: Array | None = None,
) -> Array:
    """Return the hidden state after one step; the cell state ``[B, H]`` is updated in place.

    ``[B, I], [B, H], [K, I] (+ [K]) -> [B, H]``.
    """
    state = computable(hidden)
    output = np.empty_like(state if cell is None else cell)
    projected = projected_inputs(computable(data)[:, None], computable(weights), bias)[0]
    step(projected, state, cell, output)
    return rounded(output, data.dtype)


def aligned_transpose(matrix: Array) -> Array:
    """Return a contiguous transpose aligned to cache lines, for a product at every step.

    It is copied in blocks that stay in a processor's cache.
    """
    rows, columns = matrix.shape
    result = memory.empty((columns, rows), matrix.dtype)
    for start in range(0, rows, 64):
        result[:, start : start + 64] = matrix[start : start + 64].T
    return result


def sequence_lengths(lengths: Array, batch: int) -> Array:
    """Return the lengths as int64; raise ``ValueError`` unless each batch element has one that is
    not negative.
    """
    result = np.asarray(lengths).reshape(-1).astype(np.int64)
    if len(result) != batch or (result < 0).any():
        raise ValueError(
            f"sequence lengths {result[:8].tolist()} for a batch of {batch}: expected "
            "one length of at least 0 for each"
        )
    return result


def check_weights(
    data: Array, weights: Array, recurrence: Array, gates: int, hidden_size: int
) -> None:
    """Raise ``ValueError`` if the two weight matrices do not fit data and hidden size."""
    expected = [(gates * hidden_size, data.shape[-1]), (gates * hidden_size, hidden_size)]
    if [weights.shape[-2:], recurrence.shape[-2:]] != expected:
        raise ValueError(
            f"weights {list(weights.shape)} and recurrence {list(recurrence.shape)} "
            f"do not fit {gates} gates of hidden_size {hidden_size} "
            f"and data {list(data.shape)}"
        )


def directions(direction: str) -> tuple[bool, ...]:
    """Return for each direction True if it runs backwards."""
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]


def check_directions(count: int, *arrays: Array) -> None:
    """Raise ``ValueError`` unless states (second axis) and weights (first axis) have ``count``
    directions.
    """
    counts = [
        array.shape[1] if position == 0 else array.shape[0] for position, array in enumerate(arrays)
    ]
    if any(number != count for number in counts):
        raise ValueError(f"states and weights are for {counts} directions, expected {count}")


def infer_cell(states: int) -> Any:
    """Return the shape function of a cell: one output ``[batch, hidden_size]`` per state."""

    def rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
        known = Known(
            _float_type(inputs),
            PartialShape((_batch(inputs[: 1 + states]), static(attributes["hidden_size"]))),
        )
        return (known,) * states

    return rule


def infer_sequence(states: int) -> Any:
    """Return the shape function of a sequence.

    Its outputs are ``[batch, directions, time, hidden_size]``, then each last state ``[batch,
    directions, hidden_size]``.
    """

    def rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
        one_length_each = [
            known for known in inputs[1 + states : 2 + states] if known.shape.rank == 1
        ]
        batch = _batch([*inputs[: 1 + states], *one_length_each])
        hidden = static(attributes["hidden_size"])
        count = static(len(directions(attributes["direction"])))
        time = inputs[0].shape.at(1)
        element_type = _float_type(inputs)
        last = Known(element_type, PartialShape((batch, count, hidden)))
        return (Known(element_type, PartialShape((batch, count, time, hidden))), *(last,) * states)

    return rule


def _float_type(inputs: Sequence[Known]) -> ElementType | None:
    return common_type(
        [known for known in inputs if known.element_type is None or known.element_type.is_float]
    )


def _batch(inputs: Sequence[Known]) -> Dimension:
    batch: Dimension | None = UNKNOWN
    for known in inputs:
        batch = batch.intersect(known.shape.at(0)) if batch is not None else None
    if batch is None:
        raise ValueError(
            "inputs have the shapes "
            f"{', '.join(str(known.shape) for known in inputs)}: batches differ"
        )
    return batch
