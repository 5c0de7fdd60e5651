"""Derivatives of ONNX's LSTM, GRU and RNN, by those of OpenVINO's sequences, whose axes and gates
have another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopscope.ops.derivative import Reverse, Value
from loopscope.ops.onnx.derivatives import openvino_adjoints

_FIRST, _ONE = np.array(0), np.array([1])
_DATA, _WEIGHTS, _RECURRENT, _BIAS, _LENGTHS, _HIDDEN, _CELL, _PEEPHOLES = range(8)
_SMOOTH = ("relu", "sigmoid", "tanh")


def lstm(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoints. ONNX's gates are i, o, f, c; OpenVINO's are f, i, c, o."""
    if node.input_at(_PEEPHOLES) is not None or node.attributes.get("input_forget"):
        raise ValueError("peepholes and input_forget have no derivative")
    return _sequence_adjoints(
        node, _Kind("LSTMSequence", (2, 0, 3, 1), ("sigmoid", "tanh", "tanh"), 2)
    )


def gru(node: Reverse, /) -> Mapping[int, Value | None]:
    linear = bool(node.attributes["linear_before_reset"])
    return _sequence_adjoints(node, _Kind("GRUSequence", (0, 1, 2), ("sigmoid", "tanh"), 1, linear))


def rnn(node: Reverse, /) -> Mapping[int, Value | None]:
    return _sequence_adjoints(node, _Kind("RNNSequence", (0,), ("tanh",), 1))


@dataclass(frozen=True, slots=True)
class _Kind:
    openvino: str
    gates: tuple[int, ...]
    """Index of ONNX's gate for each of OpenVINO's gates."""
    activations: tuple[str, ...]
    states: int
    linear_before_reset: bool = False
    """True if the last gate of a GRU has a bias of its own for the state."""


def _sequence_adjoints(node: Reverse, kind: _Kind) -> Mapping[int, Value | None]:
    form = _Form.of(node, kind)
    inputs = form.inputs()
    attributes = {
        "direction": node.attributes["direction"],
        "hidden_size": form.size,
        "activations": _activations(node, kind),
    }
    clip = node.attributes.get("clip")
    attributes["clip"] = float("inf") if not clip else float(clip)
    if kind.openvino == "GRUSequence":
        attributes["linear_before_reset"] = kind.linear_before_reset
    inner = replace(node, outputs=(), adjoints=form.adjoints())
    adjoints = openvino_adjoints(kind.openvino, inner, inputs, attributes)
    return form.back(adjoints)


def _activations(node: Reverse, kind: _Kind) -> tuple[str, ...]:
    """Return the activations of one direction. OpenVINO uses the same ones for both directions."""
    names = [str(name).lower() for name in node.attributes.get("activations") or kind.activations]
    count = len(kind.activations)
    first = tuple(names[:count])
    if (
        node.attributes["direction"] == "bidirectional"
        and len(names) > count
        and tuple(names[count : 2 * count]) != first
    ):
        raise ValueError("its directions have different activations")
    if (
        not set(first) <= set(_SMOOTH)
        or node.attributes.get("activation_alpha")
        or node.attributes.get("activation_beta")
    ):
        raise ValueError(
            f"its activations are {', '.join(first)}: "
            f"only {', '.join(_SMOOTH)} without alpha and beta have a derivative"
        )
    return first


@dataclass(frozen=True, slots=True)
class _Form:
    """Conversion of the inputs of a node to OpenVINO's order, and of the adjoints back."""

    node: Reverse
    kind: _Kind
    directions: int
    size: int
    """Size of the hidden state."""

    @staticmethod
    def of(node: Reverse, kind: _Kind) -> _Form:
        weights = node.input_at(_RECURRENT)
        assert weights is not None
        if not weights.shape.is_static:
            raise ValueError("the shape of its recurrence weights is not known")
        return _Form(node, kind, weights.shape.lengths[0], weights.shape.lengths[2])

    @property
    def _batch_first(self) -> bool:
        return bool(self.node.attributes["layout"])

    def inputs(self) -> tuple[Value, ...]:
        """Return data [B, T, I], states [B, D, H], lengths [B], weights and bias."""
        ops, data = self.node.ops, self._data(self._given(_DATA))
        shape = self.node.shape_of(data)
        batch, time = (
            ops.slice(shape, np.array([axis]), np.array([axis + 1]), _ONE) for axis in range(2)
        )
        states = [self._state(place, batch, data) for place in (_HIDDEN, _CELL)[: self.kind.states]]
        lengths = self.node.input_at(_LENGTHS)
        steps = ops.broadcast(time, batch, mode="numpy") if lengths is None else lengths
        weights = [self._in_order(self._given(place)) for place in (_WEIGHTS, _RECURRENT)]
        return (data, *states, steps, *weights, self._bias(data))

    def adjoints(self) -> tuple[Value, ...]:
        """Return the adjoints of all outputs [B, D, T, H] and of the last states [B, D, H]."""
        node, order = self.node, (0, 2, 1, 3) if self._batch_first else (2, 1, 0, 3)
        shown = node.ops.transpose(self._adjoint_of(0), np.array(order))
        return (
            shown,
            *(self._turned(self._adjoint_of(1 + place)) for place in range(self.kind.states)),
        )

    def back(self, adjoints: Sequence[Value | None]) -> Mapping[int, Value | None]:
        """Return the adjoints of the node's own inputs by index, given those of OpenVINO's
        inputs.
        """
        of_data, *rest = adjoints
        states, (_, of_weights, of_recurrent, of_bias) = (
            rest[: self.kind.states],
            rest[self.kind.states :],
        )
        by_input: dict[int, Value | None] = {
            _DATA: None if of_data is None else self._data(of_data)
        }
        for place, adjoint in zip((_HIDDEN, _CELL), states, strict=False):
            by_input[place] = None if adjoint is None else self._turned(adjoint)
        for place, adjoint in ((_WEIGHTS, of_weights), (_RECURRENT, of_recurrent)):
            by_input[place] = None if adjoint is None else self._in_order(adjoint, back=True)
        by_input[_BIAS] = None if of_bias is None else self._bias_back(of_bias)
        return by_input

    def _given(self, place: int) -> Value:
        value = self.node.input_at(place)
        assert value is not None
        return value

    def _data(self, value: Value) -> Value:
        """Swap the first two axes between [T, B, ...] and [B, T, ...], unless the node has the
        batch first.
        """
        return value if self._batch_first else self.node.ops.transpose(value, np.array([1, 0, 2]))

    _turned = _data

    def _state(self, place: int, batch: Value, data: Value) -> Value:
        state = self.node.input_at(place)
        if state is not None:
            return self._turned(state)
        shape = self.node.ops.concat(batch, np.array([self.directions, self.size]), axis=0)
        return self.node.ops.broadcast(_zero(data), shape, mode="numpy")

    def _adjoint_of(self, output: int) -> Value:
        """Return the adjoint of an output, or zeros if the output is left out or nothing depends on
        it.
        """
        node = self.node
        adjoint = node.adjoints[output] if output < len(node.adjoints) else None
        if adjoint is not None:
            return adjoint
        data = self._given(_DATA)
        shape = node.shape_of(data)
        first, second = (
            node.ops.slice(shape, np.array([axis]), np.array([axis + 1]), _ONE) for axis in range(2)
        )
        time, batch = (second, first) if self._batch_first else (first, second)
        directions, size = np.array([self.directions]), np.array([self.size])
        inner = [batch, directions] if self._batch_first else [directions, batch]
        if output == 0:
            inner = [batch, time, directions] if self._batch_first else [time, directions, batch]
        return node.ops.broadcast(_zero(data), node.ops.concat(*inner, size, axis=0), mode="numpy")

    def _in_order(self, value: Value, *, back: bool = False) -> Value:
        """Return rows [D, gates H, ...] with the gates in OpenVINO's order, or with ``back`` in
        ONNX's order.
        """
        order = np.argsort(self.kind.gates) if back else np.array(self.kind.gates)
        if len(order) < 2 or list(order) == sorted(order):
            return value
        apart = self.node.reshaped_to(value, (self.directions, len(order), self.size, -1))
        return self.node.reshaped(
            self.node.ops.gather(apart, order, np.array(1), batch_dims=0), value
        )

    def _bias(self, data: Value) -> Value:
        """Return OpenVINO's bias: the sum of ONNX's two biases, for the input and for the state.
        The last gate of a linear GRU has both.
        """
        node, ops, gates = self.node, self.node.ops, len(self.kind.gates)
        both = node.input_at(_BIAS)
        count = gates + self.kind.linear_before_reset
        if both is None:
            return node.filled_to(0, data, (self.directions, count * self.size))
        first, second = self._halves(both)
        if not self.kind.linear_before_reset:
            return self._in_order(first + second)
        split = (gates - 1) * self.size
        summed = self._columns(first, 0, split) + self._columns(second, 0, split)
        return ops.concat(
            summed, self._columns(first, split, 2**31), self._columns(second, split, 2**31), axis=1
        )

    def _bias_back(self, adjoint: Value) -> Value:
        ops = self.node.ops
        if not self.kind.linear_before_reset:
            ordered = self._in_order(adjoint, back=True)
            return ops.concat(ordered, ordered, axis=1)
        split = (len(self.kind.gates) - 1) * self.size
        summed, first, second = (
            self._columns(adjoint, start, end)
            for start, end in ((0, split), (split, split + self.size), (split + self.size, 2**31))
        )
        return ops.concat(summed, first, summed, second, axis=1)

    def _halves(self, both: Value) -> tuple[Value, Value]:
        half = len(self.kind.gates) * self.size
        return self._columns(both, 0, half), self._columns(both, half, 2 * half)

    def _columns(self, value: Value, start: int, end: int) -> Value:
        return self.node.ops.slice(value, np.array([start]), np.array([end]), _ONE, _ONE)


def _zero(like: Value) -> np.ndarray:
    return np.zeros((), like.element_type.dtype if like.element_type else np.float32)
