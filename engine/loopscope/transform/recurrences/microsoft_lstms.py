"""AttnLSTM and DynamicQuantizeLSTM as loops over time.

AttnLSTM is an LSTM that reads a memory after each step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.transform.recurrences.cells import CellPlan, Product
from loopscope.transform.recurrences.opening import Length, Opening, length, zeros
from loopscope.transform.recurrences.recurrent_layers import (
    ONNX_INPUTS,
    both_weights,
    cell_plan,
    initial_states,
    onnx_functions,
    onnx_layer,
    onnx_lstm_cell,
    summed_bias,
)

ATTENTION_INPUTS = (
    *ONNX_INPUTS,
    "query_weights",
    "memory_weights",
    "attention_vector",
    "memory",
    "memory_lengths",
    "attention_weights",
)


def attention_lstm(opening: Opening) -> tuple[Tensor, ...]:
    """Build AttnLSTM as a loop with the states ``hidden``, ``cell`` and ``attention``: what the
    step before read of the memory.
    """
    weights, recurrence = both_weights(opening)
    cell = onnx_lstm_cell(
        opening, cell_plan(opening, ("Sigmoid", "Tanh", "Tanh"), weights, recurrence)
    )
    reader = _MemoryReader(opening)

    def step(data: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        hidden, state, read = states
        after = cell(ops.concat([data, read], axis=2, name="input_and_read"), [hidden, state])
        return [*after, reader.read(after[0])]

    data = opening.required("input")
    lengths: list[Length] = [(recurrence, 0), (data, 1), reader.width]
    states = [
        *initial_states(opening, ("hidden", "cell"), recurrence),
        ("attention", zeros(opening.graph, lengths, data.element_type)),
    ]
    return onnx_layer(opening, states, step, returned_states=2)


class _MemoryReader:
    """Additive attention to the memory, in all directions at once."""

    def __init__(self, opening: Opening) -> None:
        memory = opening.required("memory")
        self._memory = ops.unsqueeze(memory, [0])
        """``[1, B, S, M]``."""
        weights = ops.unsqueeze(opening.required("memory_weights"), [1])
        self._keys = ops.matmul(self._memory, weights, name="keys")
        """``[D, B, S, N]``."""
        self._query_weights = opening.required("query_weights")
        self._vector = ops.unsqueeze(opening.required("attention_vector"), [1, 2])
        self._output_weights = opening.inputs.get("attention_weights")
        self._is_hidden = self._hidden_places(opening, memory)
        self.width: Length = (
            (memory, 2) if self._output_weights is None else (self._output_weights, 2)
        )
        """Number of elements that are read at each step."""

    def _hidden_places(self, opening: Opening, memory: Tensor) -> Tensor | None:
        """Return True for places after the end of a memory, ``[B, S]``."""
        lengths = opening.inputs.get("memory_lengths")
        if lengths is None:
            return None
        places = ops.range(0, length(memory, 1), 1, output_type="i64")
        counts = ops.unsqueeze(ops.convert(lengths, destination_type="i64"), [1])
        return ops.greater_equal(places, counts, name="is_hidden")

    def read(self, hidden: Tensor) -> Tensor:
        """Return what hidden states ``[D, B, H]`` read of the memory, ``[D, B, A]``."""
        query = ops.matmul(hidden, self._query_weights, name="query")
        similarity = ops.tanh(ops.add(self._keys, ops.unsqueeze(query, [2])))
        scores = ops.reduce_sum(similarity * self._vector, [3], keep_dims=False, name="scores")
        if self._is_hidden is not None:
            scores = ops.select(self._is_hidden, -np.inf, scores)
        alignment = ops.softmax(scores, axis=2, name="alignment")
        row = ops.unsqueeze(alignment, [2])
        context = ops.squeeze(ops.matmul(row, self._memory), [2], name="context")
        if self._output_weights is None:
            return context
        joined = ops.concat([hidden, context], axis=2)
        return ops.matmul(joined, self._output_weights, name="read")


QUANTIZED_INPUTS = (
    *ONNX_INPUTS,
    "weights_scale",
    "weights_zero_point",
    "recurrence_scale",
    "recurrence_zero_point",
)
_LAST_BYTE = 255


def quantized_lstm(opening: Opening) -> tuple[Tensor, ...]:
    """Build DynamicQuantizeLSTM as a loop with the states ``hidden`` and ``cell``.

    The inputs of all steps are quantized together before the loop, and the hidden states of a batch
    before each step.
    """
    data = opening.required("input")
    quanta, scale = quantized(data, np.arange(3))
    to_gates = _integer_weights(opening, "weights")
    from_hidden = _integer_weights(opening, "recurrence")
    weights_scale = _by_direction(opening.required("weights_scale"))
    recurrence_scale = _by_direction(opening.required("recurrence_scale"))

    def hidden_product(values: Tensor, name: str) -> Tensor:
        hidden_quanta, hidden_scale = quantized(values, np.array([1, 2]))
        product = _integer_product(from_hidden, ops.multiply(hidden_scale, recurrence_scale))
        return product(hidden_quanta, name)

    plan = CellPlan(
        input_product=_integer_product(to_gates, ops.multiply(scale, weights_scale)),
        recurrent_product=hidden_product,
        bias=summed_bias(opening),
        functions=onnx_functions(opening, ("Sigmoid", "Tanh", "Tanh")),
        clip=opening.attributes.get("clip"),
    )
    recurrence = opening.required("recurrence")
    states = initial_states(opening, ("hidden", "cell"), recurrence, size_axis=1)
    cell = onnx_lstm_cell(opening, plan)
    return onnx_layer(opening, states, cell, data=quanta, rests_at_zero=True)


def quantized(values: Tensor, axes: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return 8-bit integers less their zero point, as f32, and their scale.

    Values are quantized together along ``axes``; 0 is always representable.
    """
    lower = ops.minimum(ops.reduce_min(values, axes, keep_dims=True), 0)
    upper = ops.maximum(ops.reduce_max(values, axes, keep_dims=True), 0)
    span = ops.divide(ops.subtract(upper, lower), np.float32(_LAST_BYTE))
    scale = ops.select(ops.equal(upper, lower), np.float32(1), span, name="scale")
    zero_point = ops.clamp(
        ops.round(ops.divide(ops.subtract(0, lower), scale), mode="half_to_even"),
        min=0,
        max=_LAST_BYTE,
    )
    steps = ops.round(ops.divide(values, scale), mode="half_to_even")
    bytes_of = ops.clamp(ops.add(steps, zero_point), min=0, max=_LAST_BYTE)
    return ops.subtract(bytes_of, zero_point, name="quanta"), scale


def _integer_weights(opening: Opening, role: str) -> Tensor:
    """Return weights ``[D, N, G*H]`` less their zero points, as f64."""
    weights = ops.convert(opening.required(role), destination_type="f64")
    zero_points = _by_direction(opening.required(f"{role}_zero_point"))
    return ops.subtract(
        weights, ops.convert(zero_points, destination_type="f64"), name=f"integer_{role}"
    )


def _by_direction(parameter: Tensor) -> Tensor:
    """Return ``[D]`` or ``[D, G*H]`` as ``[D, 1, 1]`` or ``[D, 1, G*H]``."""
    return ops.unsqueeze(parameter, [1, 2] if parameter.rank == 1 else [1])


def _integer_product(weights: Tensor, scale: Tensor) -> Product:
    """Return the product of integers, whose sums are exact in f64, times a scale."""

    def product(quanta: Tensor, name: str) -> Tensor:
        exact = ops.matmul(ops.convert(quanta, destination_type="f64"), weights)
        sums = ops.convert(exact, destination_type="f32")
        result: Tensor = ops.multiply(sums, scale, name=name)
        return result

    return product
