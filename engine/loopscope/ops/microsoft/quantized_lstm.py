"""The LSTM of com.microsoft with 8-bit weights, which quantizes inputs and states at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.declare import Array, Attribute, KeepingKernel, Known, Operation
from loopscope.ops.microsoft.quantized import BYTES, SCALES
from loopscope.ops.microsoft.row import row
from loopscope.ops.onnx.byte_products import ByteMatrix
from loopscope.ops.onnx.quantization import dynamic_bytes
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
    inner, outer = _prepare(w, w_scale, w_zero), _prepare(r, r_scale, r_zero)
    return _layer(inner, outer, x, bias, lengths, hidden, cell, peepholes, **attributes)


class _OneLayer:
    """``dynamic_quantize_lstm`` for constant weights, which are prepared in the first run."""

    def __init__(self, kernel_attributes: Mapping[str, Any], most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._attributes = kernel_attributes
        self._kept: tuple[tuple[Array, ...], Sequence[_Weights], Sequence[_Weights]] | None = None
        """The last weights and their prepared form, set together because threads share a plan."""

    def __call__(self, *arrays: Any) -> tuple[Array, Array, Array]:
        x, w, r, bias, lengths, hidden, cell, peepholes, *others = arrays
        weights, prepared = (w, r, *others), self._kept
        if prepared is None or not all(map(is_, prepared[0], weights)):
            w_scale, w_zero, r_scale, r_zero = others
            prepared = self._kept = (
                weights,
                _prepare(w, w_scale, w_zero),
                _prepare(r, r_scale, r_zero),
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
    inner: Sequence[_Weights],
    outer: Sequence[_Weights],
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


class _Weights:
    """The prepared weights of one direction, which quantize rows together and multiply them."""

    def __init__(self, weights: Array, scale: Array, zero: Array) -> None:
        self.shape, self.rows = weights.shape, weights.shape[0]
        self._matrix, self._scale = ByteMatrix.of(weights, zero), scale

    def times(self, rows: Array) -> Array:
        """Multiply ``[B, I] -> [B, 4 H]``."""
        steps, scale = dynamic_bytes(rows)
        return np.asarray(
            np.multiply(
                self._matrix.sums(steps), scale * self._scale, dtype=np.float32, casting="unsafe"
            )
        )


def _prepare(weights: Array, scale: Array, zero: Array) -> list[_Weights]:
    if weights.ndim != 3:
        raise ValueError(f"the weights have shape {list(weights.shape)}, expected 3 lengths")
    of_columns, offsets = (parameter.reshape(len(weights), -1) for parameter in (scale, zero))
    return [
        _Weights(matrix, factor, offset)
        for matrix, factor, offset in zip(weights, of_columns, offsets, strict=True)
    ]


def _over_time(
    gates: Array,
    last: list[Array],
    index: int,
    counts: Array,
    recurrent: _Weights,
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


OPERATIONS: tuple[Operation, ...] = (
    row(
        "DynamicQuantizeLSTM",
        dynamic_quantize_lstm,
        infer=infer_lstm,
        by_constant=dynamic_quantize_lstm_by_constant,
        inputs=(12, 12),
        optional_inputs=frozenset(range(3, 8)),
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
        types=(
            SCALES,
            BYTES,
            BYTES,
            SCALES,
            frozenset({ElementType.I32}),
            SCALES,
            SCALES,
            SCALES,
            SCALES,
            BYTES,
            SCALES,
            BYTES,
        ),
    ),
)
