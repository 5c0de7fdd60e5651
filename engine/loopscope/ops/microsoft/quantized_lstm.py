"""The LSTM of the domain com.microsoft whose weights are 8-bit integers, and whose inputs and
states are quantized as it runs.
"""

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
from loopscope.ops.onnx.quantizing import dynamic_bytes
from loopscope.ops.onnx.recurrent import (
    Activation,
    activations_of,
    directions_of,
    initial_state,
    lstm_of_gates,
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
    """ONNX's LSTM with weights ``[directions, I, 4 H]`` and ``[directions, H, 4 H]``, each with one
    scale, or one for each gate's unit.

    The inputs of all times are quantized together to u8, those after the ends of sequences too, and
    so are the states of a whole batch before each step: that is how ONNX Runtime finds the range.
    """
    inner, outer = _of_directions(w, w_scale, w_zero), _of_directions(r, r_scale, r_zero)
    return _layer(inner, outer, x, bias, lengths, hidden, cell, peepholes, **attributes)


class _OneLayer:
    """``dynamic_quantize_lstm`` with one and the same weights, which are made ready when the
    first run asks for it.
    """

    def __init__(self, kernel_attributes: Mapping[str, Any], most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._attributes = kernel_attributes
        self._kept: tuple[tuple[Array, ...], Sequence[_Weights], Sequence[_Weights]] | None = None
        """The arrays that were given, and what was made of them; set as one, for the threads
        that share a plan.
        """

    def __call__(self, *arrays: Any) -> tuple[Array, Array, Array]:
        x, w, r, bias, lengths, hidden, cell, peepholes, *others = arrays
        given, kept = (w, r, *others), self._kept
        if kept is None or not all(map(is_, kept[0], given)):
            w_scale, w_zero, r_scale, r_zero = others
            kept = self._kept = (
                given,
                _of_directions(w, w_scale, w_zero),
                _of_directions(r, r_scale, r_zero),
            )
        return _layer(*kept[1:], x, bias, lengths, hidden, cell, peepholes, **self._attributes)


def dynamic_quantize_lstm_by_constant(w: Known, /, **attributes: Any) -> KeepingKernel | None:
    """The kernel of one node whose weights are constants, which it keeps ready for products."""
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
        any(one.shape != (width, 4 * size) for one in inner)
        or any(one.shape != (size, 4 * size) for one in outer)
        or len(outer) != directions
    ):
        expected = f"[{directions}, {width}, {4 * size}] and [{directions}, {size}, {4 * size}]"
        found = [[len(each), *each[0].shape] for each in (inner, outer)]
        raise ValueError(f"the weights have shapes {found[0]} and {found[1]}, expected {expected}")
    counts = np.full(batch, steps) if lengths is None else lengths.astype(np.int64)
    if counts.shape != (batch,) or not ((counts >= 0) & (counts <= steps)).all():
        raise ValueError(
            f"the lengths of the sequences are {counts.tolist()[:8]}, expected {batch} numbers of 0 to {steps}"
        )
    functions = activations_of(settings, ("Sigmoid", "Tanh", "Tanh"), directions)
    sums = np.zeros((directions, 8 * size), np.float32) if bias is None else bias
    last = [initial_state(one, directions, batch, size, x.dtype, False) for one in (hidden, cell)]
    made = np.zeros((steps, directions, batch, size), np.float32)
    for index, backwards in enumerate(directions_of(direction, directions)):
        data = _turned(x, counts) if backwards else x
        gates = inner[index].times(data.reshape(-1, width)).reshape(steps, batch, -1)
        gates += sums[index, : 4 * size] + sums[index, 4 * size :]
        seen = None if peepholes is None else peepholes[index]
        shown = _over_time(
            gates, last, index, counts, outer[index], seen, functions[index], settings
        )
        made[:, index] = _turned(shown, counts) if backwards else shown
    return made, last[0], last[1]


class _Weights:
    """Of one direction, made ready once: quantizes rows together and multiplies them."""

    def __init__(self, weights: Array, scale: Array, zero: Array) -> None:
        self.shape, self.rows = weights.shape, weights.shape[0]
        self._matrix, self._scale = ByteMatrix.of(weights, zero), scale

    def times(self, rows: Array) -> Array:
        """``[B, I] -> [B, 4 H]``."""
        steps, scale = dynamic_bytes(rows)
        return np.asarray(
            np.multiply(
                self._matrix.sums(steps), scale * self._scale, dtype=np.float32, casting="unsafe"
            )
        )


def _of_directions(weights: Array, scale: Array, zero: Array) -> list[_Weights]:
    if weights.ndim != 3:
        raise ValueError(f"the weights have shape {list(weights.shape)}, expected 3 lengths")
    of_columns, offsets = (one.reshape(len(weights), -1) for one in (scale, zero))
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
    """What one direction shows [T, B, H], zeros after the end of a sequence; ``last`` gets the
    states at the ends.
    """
    hidden, cell = (state[index].copy() for state in last)
    shown = np.zeros((len(gates), *hidden.shape), np.float32)
    shortest = int(counts.min(initial=len(gates)))
    for time, projected in enumerate(gates):
        sums = projected + recurrent.times(hidden)
        hidden, cell = (
            one.astype(np.float32, copy=False)
            for one in lstm_of_gates(sums, cell, peepholes, functions, settings)
        )
        if time >= shortest - 1:
            runs = time < counts
            hidden[~runs] = 0
            for state, now in zip(last, (hidden, cell), strict=True):
                state[index, runs] = now[runs]
        shown[time] = hidden
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
