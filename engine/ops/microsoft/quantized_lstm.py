"""The LSTM of the domain com.microsoft whose weights are 8-bit integers, and whose inputs and states are quantized as it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.ir.element_type import ElementType
from engine.ir.shape import PartialShape, static
from engine.ops.declare import Array, Attribute, Known, Operation
from engine.ops.microsoft.quantized import BYTES, SCALES
from engine.ops.microsoft.row import row
from engine.ops.onnx.integers import matmul_integer, matmul_integer_by_constant
from engine.ops.onnx.quantizing import dynamic_quantize_linear
from engine.ops.onnx.recurrent import Activation, activations_of, directions_of, initial_state, lstm_of_gates


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
    *,
    direction: str,
    hidden_size: int | None,
    **settings: Any,
) -> tuple[Array, Array, Array]:
    """ONNX's LSTM with weights ``[directions, I, 4 H]`` and ``[directions, H, 4 H]``, each with one scale, or one for each gate's unit.

    The inputs of all times are quantized together to u8, those after the ends of sequences too, and so are the states of a whole batch
    before each step: that is how ONNX Runtime finds the range.
    """
    steps, batch, _ = x.shape
    directions, size = len(w), r.shape[1]
    if w.shape != (directions, x.shape[2], 4 * size) or r.shape != (directions, size, 4 * size):
        expected = f"[{directions}, {x.shape[2]}, {4 * size}] and [{directions}, {size}, {4 * size}]"
        raise ValueError(f"the weights have shapes {list(w.shape)} and {list(r.shape)}, expected {expected}")
    counts = np.full(batch, steps) if lengths is None else lengths.astype(np.int64)
    if counts.shape != (batch,) or not ((counts >= 0) & (counts <= steps)).all():
        raise ValueError(f"the lengths of the sequences are {counts.tolist()[:8]}, expected {batch} numbers of 0 to {steps}")
    functions = activations_of(settings, ("Sigmoid", "Tanh", "Tanh"), directions)
    sums = np.zeros((directions, 8 * size), np.float32) if bias is None else bias
    last = [initial_state(one, directions, batch, size, x.dtype, False) for one in (hidden, cell)]
    made = np.zeros((steps, directions, batch, size), np.float32)
    for index, backwards in enumerate(directions_of(direction, directions)):
        data = _turned(x, counts) if backwards else x
        gates = _product(w, w_scale, w_zero, index)(data.reshape(-1, x.shape[2])).reshape(steps, batch, -1)
        gates += sums[index, : 4 * size] + sums[index, 4 * size :]
        seen = None if peepholes is None else peepholes[index]
        shown = _over_time(gates, last, index, counts, _product(r, r_scale, r_zero, index), seen, functions[index], settings)
        made[:, index] = _turned(shown, counts) if backwards else shown
    return made, last[0], last[1]


Product = Callable[[Array], Array]


def _product(weights: Array, scale: Array, zero: Array, index: int) -> Product:
    """What quantizes rows together and multiplies them by the weights of one direction, which are centred once."""
    matrix = weights[index]
    multiply = matmul_integer_by_constant(Known.of(matrix)) or matmul_integer
    of_columns, offset = (one.reshape(len(weights), -1)[index] for one in (scale, zero))

    def multiplied(rows: Array) -> Array:
        quantized, of_rows, middle = dynamic_quantize_linear(rows)
        sums = multiply(quantized, matrix, np.asarray(middle), offset)
        return np.asarray(sums.astype(np.float32) * (of_rows * of_columns))

    return multiplied


def _over_time(
    gates: Array,
    last: list[Array],
    index: int,
    counts: Array,
    recurrent: Product,
    peepholes: Array | None,
    functions: Sequence[Activation],
    settings: Mapping[str, Any],
) -> Array:
    """What one direction shows [T, B, H], zeros after the end of a sequence; ``last`` gets the states at the ends."""
    hidden, cell = (state[index].copy() for state in last)
    shown = np.zeros((len(gates), *hidden.shape), np.float32)
    for time, projected in enumerate(gates):
        sums = projected + recurrent(hidden)
        hidden, cell = (one.astype(np.float32) for one in lstm_of_gates(sums, cell, peepholes, functions, settings))
        runs = time < counts
        shown[time, runs] = hidden[runs]
        hidden[~runs] = 0
        for state, now in zip(last, (hidden, cell), strict=True):
            state[index, runs] = now[runs]
    return shown


def _turned(data: Array, counts: Array) -> Array:
    """Each sequence [T, B, ...] the other way round; what comes after its end stays."""
    times = np.arange(len(data))[:, None]
    return data[np.where(times < counts, counts - 1 - times, times), np.arange(len(counts))]


def infer_lstm(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """What is shown at all times, and the last states."""
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
        types=(SCALES, BYTES, BYTES, SCALES, frozenset({ElementType.I32}), SCALES, SCALES, SCALES, SCALES, BYTES, SCALES, BYTES),
    ),
)
