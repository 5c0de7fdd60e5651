"""The LSTMs of com.microsoft: with 8-bit weights, and with attention to a memory.

DynamicQuantizeLSTM quantizes inputs and states at run time. AttnLSTM reads a memory with additive
attention after each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.declare import Array, Attribute, KeepingKernel, Known, Operation
from loopscope.ops.microsoft.quantized import BYTES, SCALES
from loopscope.ops.microsoft.quantized_products import QuantizedWeights, prepared_weights
from loopscope.ops.microsoft.row import row
from loopscope.ops.onnx.byte_products import ByteMatrix
from loopscope.ops.onnx.recurrent import (
    Activation,
    activations_of,
    directions_of,
    initial_state,
    lstm_of_gates,
    sequence_counts,
)


def dynamic_quantize_lstm(
    x: Array,
    w: Array,
    r: Array,
    bias: Array | None,
    lengths: Array | None,
    hidden: Array | None,
    cell: Array | None,
    peepholes: Array | None,
    w_scale: Array,
    w_zero: Array,
    r_scale: Array,
    r_zero: Array,
    /,
    **attributes: Any,
) -> tuple[Array, Array, Array]:
    """Compute ONNX's LSTM with weights ``[directions, I, 4 H]`` and ``[directions, H, 4 H]``.

    Each weight has one scale, or one per unit of a gate. As in ONNX Runtime, the inputs of all
    times, including those after the ends of sequences, are quantized together to u8. The states of
    a whole batch are quantized together before each step.
    """
    inner, outer = prepared_weights(w, w_scale, w_zero), prepared_weights(r, r_scale, r_zero)
    return _layer(inner, outer, x, bias, lengths, hidden, cell, peepholes, **attributes)


class _OneLayer:
    """``dynamic_quantize_lstm`` for constant weights, which are prepared in the first run."""

    def __init__(self, kernel_attributes: Mapping[str, Any], most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._attributes = kernel_attributes
        self._kept: (
            tuple[tuple[Array, ...], Sequence[QuantizedWeights], Sequence[QuantizedWeights]] | None
        ) = None
        """The last weights and their prepared form, set together because threads share a plan."""

    def __call__(self, *arrays: Any) -> tuple[Array, Array, Array]:
        x, w, r, bias, lengths, hidden, cell, peepholes, *others = arrays
        weights, prepared = (w, r, *others), self._kept
        if prepared is None or not all(map(is_, prepared[0], weights)):
            w_scale, w_zero, r_scale, r_zero = others
            prepared = self._kept = (
                weights,
                prepared_weights(w, w_scale, w_zero),
                prepared_weights(r, r_scale, r_zero),
            )
        return _layer(*prepared[1:], x, bias, lengths, hidden, cell, peepholes, **self._attributes)


def dynamic_quantize_lstm_by_constant(w: Known, /, **attributes: Any) -> KeepingKernel | None:
    """Return the kernel of a node with constant weights, which caches the prepared weights."""
    if not w.shape.is_static or w.shape.rank != 3:
        return None
    directions, size, gates = w.shape.lengths
    matrices = ((directions, rows, gates) for rows in (size, gates // 4))
    return _OneLayer(attributes, sum(map(ByteMatrix.most_bytes, matrices)))


def _layer(
    inner: Sequence[QuantizedWeights],
    outer: Sequence[QuantizedWeights],
    x: Array,
    bias: Array | None,
    lengths: Array | None,
    hidden: Array | None,
    cell: Array | None,
    peepholes: Array | None,
    /,
    *,
    direction: str,
    hidden_size: int | None,
    **settings: Any,
) -> tuple[Array, Array, Array]:
    steps, batch, width = x.shape
    directions, size = len(inner), outer[0].rows
    if (
        any(matrix.shape != (width, 4 * size) for matrix in inner)
        or any(matrix.shape != (size, 4 * size) for matrix in outer)
        or len(outer) != directions
    ):
        expected = f"[{directions}, {width}, {4 * size}] and [{directions}, {size}, {4 * size}]"
        actual = [[len(matrices), *matrices[0].shape] for matrices in (inner, outer)]
        raise ValueError(
            f"the weights have shapes {actual[0]} and {actual[1]}, expected {expected}"
        )
    counts = sequence_counts(lengths, batch, steps)
    functions = activations_of(settings, ("Sigmoid", "Tanh", "Tanh"), directions)
    sums = np.zeros((directions, 8 * size), np.float32) if bias is None else bias
    last = [
        initial_state(initial, directions, batch, size, x.dtype, False)
        for initial in (hidden, cell)
    ]
    result = np.zeros((steps, directions, batch, size), np.float32)
    for index, backwards in enumerate(directions_of(direction, directions)):
        data = _reverse_sequences(x, counts) if backwards else x
        gates = inner[index].times(data.reshape(-1, width)).reshape(steps, batch, -1)
        gates += sums[index, : 4 * size] + sums[index, 4 * size :]
        peephole = None if peepholes is None else peepholes[index]
        outputs = _over_time(
            gates, last, index, counts, outer[index], peephole, functions[index], settings
        )
        result[:, index] = _reverse_sequences(outputs, counts) if backwards else outputs
    return result, last[0], last[1]


def _over_time(
    gates: Array,
    last: list[Array],
    index: int,
    counts: Array,
    recurrent: QuantizedWeights,
    peepholes: Array | None,
    functions: Sequence[Activation],
    settings: Mapping[str, Any],
) -> Array:
    """Return the outputs of one direction [T, B, H], with zeros after the end of a sequence.

    The final states are stored in ``last``.
    """
    hidden, cell = (state[index].copy() for state in last)
    outputs = np.zeros((len(gates), *hidden.shape), np.float32)
    shortest = int(counts.min(initial=len(gates)))
    for time, projected in enumerate(gates):
        sums = projected + recurrent.times(hidden)
        hidden, cell = (
            state.astype(np.float32, copy=False)
            for state in lstm_of_gates(sums, cell, peepholes, functions, settings)
        )
        if time >= shortest - 1:
            is_active = time < counts
            hidden[~is_active] = 0
            for stored, value in zip(last, (hidden, cell), strict=True):
                stored[index, is_active] = value[is_active]
        outputs[time] = hidden
    return outputs


def _reverse_sequences(data: Array, counts: Array) -> Array:
    """Reverse each sequence in [T, B, ...]; elements after its end stay in place."""
    times = np.arange(len(data))[:, None]
    return data[np.where(times < counts, counts - 1 - times, times), np.arange(len(counts))]


def infer_lstm(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the outputs of all times and the last states."""
    times, batch = inputs[0].shape.at(0), inputs[0].shape.at(1)
    directions = static(2 if attributes["direction"] == "bidirectional" else 1)
    size = static(attributes["hidden_size"]) if attributes["hidden_size"] else inputs[2].shape.at(1)
    state = Known(ElementType.F32, PartialShape((directions, batch, size)))
    return (Known(ElementType.F32, PartialShape((times, directions, batch, size))), state, state)


_ATTRIBUTES = (
    Attribute("activations", "strs", None),
    Attribute("activation_alpha", "floats", None),
    Attribute("activation_beta", "floats", None),
    Attribute("clip", "float", None),
    Attribute("direction", "str", "forward"),
    Attribute("hidden_size", "int", None),
    Attribute("input_forget", "int", 0),
)
"""Attributes of every LSTM."""
_I32 = frozenset({ElementType.I32})

QUANTIZED: tuple[Operation, ...] = (
    row(
        "DynamicQuantizeLSTM",
        dynamic_quantize_lstm,
        infer=infer_lstm,
        by_constant=dynamic_quantize_lstm_by_constant,
        inputs=(12, 12),
        optional_inputs=frozenset(range(3, 8)),
        outputs=3,
        attributes=_ATTRIBUTES,
        types=(SCALES, BYTES, BYTES, SCALES, _I32, *[SCALES] * 4, BYTES, SCALES, BYTES),
    ),
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

WITH_ATTENTION: tuple[Operation, ...] = (
    row(
        "AttnLSTM",
        attention_lstm,
        infer=infer_attention_lstm,
        inputs=(3, 14),
        outputs=3,
        attributes=_ATTRIBUTES,
        types=(*[_TYPES] * 4, _I32, *[_TYPES] * 7, _I32, _TYPES),
    ),
)
