"""AttnLSTM as a loop over time: an LSTM that reads a memory after each step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.transform.recurrences.opening import Length, Opening, length, zeros
from loopscope.transform.recurrences.recurrent_layers import (
    ONNX_INPUTS,
    both_weights,
    cell_plan,
    initial_states,
    onnx_layer,
    onnx_lstm_cell,
)

INPUTS = (
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
