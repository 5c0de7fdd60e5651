"""The LSTM of com.microsoft that reads a memory with additive attention after each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.microsoft.row import row
from loopscope.ops.onnx.recurrent import (
    Activation,
    activations_of,
    directions_of,
    initial_state,
    lstm_of_gates,
    sequence_counts,
)


def attention_lstm(
    x: Array,
    w: Array,
    r: Array,
    bias: Array | None = None,
    lengths: Array | None = None,
    hidden: Array | None = None,
    cell: Array | None = None,
    peepholes: Array | None = None,
    query_weights: Array | None = None,
    memory_weights: Array | None = None,
    attention_vector: Array | None = None,
    memory: Array | None = None,
    memory_lengths: Array | None = None,
    attention_weights: Array | None = None,
    /,
    *,
    direction: str,
    hidden_size: int | None,
    **settings: Any,
) -> tuple[Array, Array, Array]:
    """Compute ONNX's LSTM, whose input at each step is followed by what it read of the memory.

    ``[T, B, I], [D, 4H, I+A], [D, 4H, H], ..., [D, H, N], [D, M, N], [D, N], [B, S, M], [B], [D,
    M+H, A] -> [T, D, B, H], [D, B, H], [D, B, H]``. Without attention weights A is M.
    """
    if memory is None or memory_weights is None or query_weights is None:
        raise ValueError("QW, MW or M is missing, expected the weights of the attention and M")
    if attention_vector is None:
        raise ValueError("V is missing, expected the vector of the attention")
    steps, batch, width = x.shape
    directions, size = len(w), r.shape[2]
    counts = sequence_counts(lengths, batch, steps)
    functions = activations_of(settings, ("Sigmoid", "Tanh", "Tanh"), directions)
    sums = np.zeros((directions, 8 * size), x.dtype) if bias is None else bias
    last = [
        initial_state(initial, directions, batch, size, x.dtype, False)
        for initial in (hidden, cell)
    ]
    result = np.zeros((steps, directions, batch, size), x.dtype)
    for index, backwards in enumerate(directions_of(direction, directions)):
        reader = MemoryReader.of(
            memory,
            memory_lengths,
            memory_weights[index],
            query_weights[index],
            attention_vector[index],
            None if attention_weights is None else attention_weights[index],
            size,
        )
        if w.shape[1:] != (4 * size, width + reader.width):
            raise ValueError(
                f"the weights have shape {list(w.shape)}, "
                f"expected [{directions}, {4 * size}, {width + reader.width}]"
            )
        layer = _Direction(
            w[index],
            r[index],
            sums[index, : 4 * size] + sums[index, 4 * size :],
            None if peepholes is None else peepholes[index],
            functions[index],
            settings,
            reader,
        )
        first = [state[index] for state in last]
        final = layer.run(x, counts, first, result[:, index], backwards=backwards)
        for state, value in zip(last, final, strict=True):
            state[index] = value
    return result, last[0], last[1]


@dataclass(frozen=True, slots=True)
class _Direction:
    """Weights and functions of one direction of the LSTM, and its reader of the memory."""

    weights: Array
    recurrent_weights: Array
    bias: Array
    peephole: Array | None
    functions: Sequence[Activation]
    settings: Mapping[str, Any]
    reader: MemoryReader

    def run(
        self, x: Array, counts: Array, state: Sequence[Array], outputs: Array, *, backwards: bool
    ) -> Sequence[Array]:
        """Compute all steps into ``outputs [T, B, H]``. Return the last hidden state and cell."""
        steps, batch, _ = x.shape
        items = np.arange(batch)
        read = np.zeros((batch, self.reader.width), x.dtype)
        for time in range(steps):
            is_active = time < counts
            place = np.where(backwards & is_active, counts - 1 - time, time)
            data = np.concatenate((x[place, items], read), axis=1)
            gates = data @ self.weights.T + state[0] @ self.recurrent_weights.T
            gates += self.bias
            after = lstm_of_gates(gates, state[1], self.peephole, self.functions, self.settings)
            read = self.reader.read(after[0])
            outputs[place, items] = np.where(is_active[:, None], after[0], 0)
            state = [
                np.where(is_active[:, None], new, old)
                for new, old in zip(after, state, strict=True)
            ]
        return state


@dataclass(frozen=True, slots=True)
class MemoryReader:
    """Additive (Bahdanau) attention to a memory, for one direction."""

    memory: Array
    keys: Array
    """The memory in the space of the attention, [B, S, N]."""
    is_hidden: Array
    """True for places after the end of a memory, [B, S]."""
    query_weights: Array
    vector: Array
    output_weights: Array | None

    @staticmethod
    def of(
        memory: Array,
        lengths: Array | None,
        memory_weights: Array,
        query_weights: Array,
        vector: Array,
        output_weights: Array | None,
        size: int,
    ) -> MemoryReader:
        """Return the reader; raise ``ValueError`` if lengths or weights do not fit the memory."""
        batch, places, depth = memory.shape
        counts = np.full(batch, places) if lengths is None else lengths
        if counts.shape != (batch,) or not ((counts > 0) & (counts <= places)).all():
            raise ValueError(
                f"the lengths of the memory are {counts.tolist()[:8]}, "
                f"expected {batch} numbers of 1 to {places}"
            )
        if output_weights is not None and len(output_weights) != depth + size:
            raise ValueError(
                f"the attention weights have {len(output_weights)} rows, expected {depth + size}"
            )
        is_hidden = np.arange(places) >= counts[:, None]
        keys = memory @ memory_weights
        return MemoryReader(memory, keys, is_hidden, query_weights, vector, output_weights)

    @property
    def width(self) -> int:
        """Number of elements that are read of the memory at each step."""
        outputs = self.output_weights
        return self.memory.shape[2] if outputs is None else outputs.shape[1]

    def read(self, hidden: Array) -> Array:
        """Return what a hidden state [B, H] reads of the memory, [B, A]."""
        queries = hidden @ self.query_weights
        scores = np.tanh(self.keys + queries[:, None]) @ self.vector
        weights = np.where(self.is_hidden, 0, np.exp(scores))
        weights /= weights.sum(axis=1, keepdims=True)
        context = np.matmul(weights[:, None].astype(hidden.dtype), self.memory)[:, 0]
        if self.output_weights is None:
            return context
        result: Array = np.concatenate((hidden, context), axis=1) @ self.output_weights
        return result


def infer_attention_lstm(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the outputs of all times and the last states."""
    element_type = inputs[0].element_type
    times, batch = inputs[0].shape.at(0), inputs[0].shape.at(1)
    directions, size = inputs[2].shape.at(0), inputs[2].shape.at(2)
    state = Known(element_type, PartialShape((directions, batch, size)))
    return (Known(element_type, PartialShape((times, directions, batch, size))), state, state)


_TYPES = frozenset({ElementType.F32, ElementType.F64})
_I32 = frozenset({ElementType.I32})

OPERATIONS: tuple[Operation, ...] = (
    row(
        "AttnLSTM",
        attention_lstm,
        infer=infer_attention_lstm,
        inputs=(3, 14),
        outputs=3,
        attributes=(
            Attribute("activations", "strs", None),
            Attribute("activation_alpha", "floats", None),
            Attribute("activation_beta", "floats", None),
            Attribute("clip", "float", None),
            Attribute("direction", "str", "forward"),
            Attribute("hidden_size", "int", None),
            Attribute("input_forget", "int", 0),
        ),
        types=(*[_TYPES] * 4, _I32, *[_TYPES] * 7, _I32, _TYPES),
    ),
)
