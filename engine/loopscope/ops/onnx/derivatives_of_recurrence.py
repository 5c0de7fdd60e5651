"""Derivatives of ONNX's LSTM, GRU and RNN: those of OpenVINO's sequences, whose axes and gates
lie in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopscope.ops.derivative import Reverse, Value
from loopscope.ops.onnx.openvino_rules import through

_FIRST, _ONE = np.array(0), np.array([1])
_DATA, _WEIGHTS, _RECURRENT, _BIAS, _LENGTHS, _HIDDEN, _CELL, _PEEPHOLES = range(8)
_SMOOTH = ("relu", "sigmoid", "tanh")


def lstm(at: Reverse, /) -> Mapping[int, Value | None]:
    """Gates i, o, f, c; OpenVINO's are f, i, c, o."""
    if at.input_at(_PEEPHOLES) is not None or at.attributes.get("input_forget"):
        raise ValueError("of peepholes and input_forget there is no derivative here")
    return _walked(at, _Kind("LSTMSequence", (2, 0, 3, 1), ("sigmoid", "tanh", "tanh"), 2))


def gru(at: Reverse, /) -> Mapping[int, Value | None]:
    linear = bool(at.attributes["linear_before_reset"])
    return _walked(at, _Kind("GRUSequence", (0, 1, 2), ("sigmoid", "tanh"), 1, linear))


def rnn(at: Reverse, /) -> Mapping[int, Value | None]:
    return _walked(at, _Kind("RNNSequence", (0,), ("tanh",), 1))


@dataclass(frozen=True, slots=True)
class _Kind:
    openvino: str
    gates: tuple[int, ...]
    """For each of OpenVINO's gates the number of ONNX's."""
    activations: tuple[str, ...]
    states: int
    linear_before_reset: bool = False
    """Then the last gate of GRU has a bias of its own for its state."""


def _walked(at: Reverse, kind: _Kind) -> Mapping[int, Value | None]:
    form = _Form.of(at, kind)
    inputs = form.inputs()
    attributes = {
        "direction": at.attributes["direction"],
        "hidden_size": form.size,
        "activations": _activations(at, kind),
    }
    clip = at.attributes.get("clip")
    attributes["clip"] = float("inf") if not clip else float(clip)
    if kind.openvino == "GRUSequence":
        attributes["linear_before_reset"] = kind.linear_before_reset
    inner = replace(at, outputs=(), adjoints=form.adjoints())
    found = through(kind.openvino, inner, inputs, attributes)
    return form.back(found)


def _activations(at: Reverse, kind: _Kind) -> tuple[str, ...]:
    """Of one direction; OpenVINO has the same for both."""
    named = [str(one).lower() for one in at.attributes.get("activations") or kind.activations]
    count = len(kind.activations)
    first = tuple(named[:count])
    if (
        at.attributes["direction"] == "bidirectional"
        and len(named) > count
        and tuple(named[count : 2 * count]) != first
    ):
        raise ValueError("its directions have different activations")
    if (
        not set(first) <= set(_SMOOTH)
        or at.attributes.get("activation_alpha")
        or at.attributes.get("activation_beta")
    ):
        raise ValueError(
            f"its activations are {', '.join(first)}: of {', '.join(_SMOOTH)} without alpha and beta there is a derivative here"
        )
    return first


@dataclass(frozen=True, slots=True)
class _Form:
    """Brings the inputs of one node into OpenVINO's order, and the adjoints back."""

    at: Reverse
    kind: _Kind
    directions: int
    size: int
    """Of the hidden state."""

    @staticmethod
    def of(at: Reverse, kind: _Kind) -> _Form:
        weights = at.input_at(_RECURRENT)
        assert weights is not None
        if not weights.shape.is_static:
            raise ValueError("the shape of its recurrence weights is not known")
        return _Form(at, kind, weights.shape.lengths[0], weights.shape.lengths[2])

    @property
    def _batch_first(self) -> bool:
        return bool(self.at.attributes["layout"])

    def inputs(self) -> tuple[Value, ...]:
        """Data [B, T, I], states [B, D, H], lengths [B], weights and bias."""
        ops, data = self.at.ops, self._data(self._given(_DATA))
        shape = self.at.shape_of(data)
        batch, time = (
            ops.slice(shape, np.array([axis]), np.array([axis + 1]), _ONE) for axis in range(2)
        )
        states = [self._state(place, batch, data) for place in (_HIDDEN, _CELL)[: self.kind.states]]
        lengths = self.at.input_at(_LENGTHS)
        steps = ops.broadcast(time, batch, mode="numpy") if lengths is None else lengths
        weights = [self._in_order(self._given(place)) for place in (_WEIGHTS, _RECURRENT)]
        return (data, *states, steps, *weights, self._bias(data))

    def adjoints(self) -> tuple[Value, ...]:
        """Of what is shown [B, D, T, H] and of the last states [B, D, H]."""
        at, order = self.at, (0, 2, 1, 3) if self._batch_first else (2, 1, 0, 3)
        shown = at.ops.transpose(self._adjoint_of(0), np.array(order))
        return (
            shown,
            *(self._turned(self._adjoint_of(1 + place)) for place in range(self.kind.states)),
        )

    def back(self, found: Sequence[Value | None]) -> Mapping[int, Value | None]:
        """The adjoints of the node's own inputs, by position."""
        of_data, *rest = found
        states, (_, of_weights, of_recurrent, of_bias) = (
            rest[: self.kind.states],
            rest[self.kind.states :],
        )
        made: dict[int, Value | None] = {_DATA: None if of_data is None else self._data(of_data)}
        for place, one in zip((_HIDDEN, _CELL), states, strict=False):
            made[place] = None if one is None else self._turned(one)
        for place, one in ((_WEIGHTS, of_weights), (_RECURRENT, of_recurrent)):
            made[place] = None if one is None else self._in_order(one, back=True)
        made[_BIAS] = None if of_bias is None else self._bias_back(of_bias)
        return made

    def _given(self, place: int) -> Value:
        found = self.at.input_at(place)
        assert found is not None
        return found

    def _data(self, value: Value) -> Value:
        """[T, B, ...] to [B, T, ...], and back; as it is where the batch comes first."""
        return value if self._batch_first else self.at.ops.transpose(value, np.array([1, 0, 2]))

    _turned = _data

    def _state(self, place: int, batch: Value, data: Value) -> Value:
        given = self.at.input_at(place)
        if given is not None:
            return self._turned(given)
        shape = self.at.ops.concat(batch, np.array([self.directions, self.size]), axis=0)
        return self.at.ops.broadcast(_zero(data), shape, mode="numpy")

    def _adjoint_of(self, output: int) -> Value:
        """Zeros for an output that is left out, or that nothing depends on."""
        at = self.at
        found = at.adjoints[output] if output < len(at.adjoints) else None
        if found is not None:
            return found
        data = self._given(_DATA)
        shape = at.shape_of(data)
        first, second = (
            at.ops.slice(shape, np.array([axis]), np.array([axis + 1]), _ONE) for axis in range(2)
        )
        time, batch = (second, first) if self._batch_first else (first, second)
        directions, size = np.array([self.directions]), np.array([self.size])
        inner = [batch, directions] if self._batch_first else [directions, batch]
        if output == 0:
            inner = [batch, time, directions] if self._batch_first else [time, directions, batch]
        return at.ops.broadcast(_zero(data), at.ops.concat(*inner, size, axis=0), mode="numpy")

    def _in_order(self, value: Value, *, back: bool = False) -> Value:
        """The rows of each gate, [D, gates H, ...], in OpenVINO's order or back in ONNX's."""
        order = np.argsort(self.kind.gates) if back else np.array(self.kind.gates)
        if len(order) < 2 or list(order) == sorted(order):
            return value
        apart = self.at.reshaped_to(value, (self.directions, len(order), self.size, -1))
        return self.at.reshaped(self.at.ops.gather(apart, order, np.array(1), batch_dims=0), value)

    def _bias(self, data: Value) -> Value:
        """ONNX has two, for the input and for the state; OpenVINO has their sum, but for the
        last gate of a linear GRU.
        """
        at, ops, gates = self.at, self.at.ops, len(self.kind.gates)
        both = at.input_at(_BIAS)
        count = gates + self.kind.linear_before_reset
        if both is None:
            return at.filled_to(0, data, (self.directions, count * self.size))
        first, second = self._halves(both)
        if not self.kind.linear_before_reset:
            return self._in_order(first + second)
        kept = (gates - 1) * self.size
        summed = self._columns(first, 0, kept) + self._columns(second, 0, kept)
        return ops.concat(
            summed, self._columns(first, kept, 2**31), self._columns(second, kept, 2**31), axis=1
        )

    def _bias_back(self, adjoint: Value) -> Value:
        ops = self.at.ops
        if not self.kind.linear_before_reset:
            ordered = self._in_order(adjoint, back=True)
            return ops.concat(ordered, ordered, axis=1)
        kept = (len(self.kind.gates) - 1) * self.size
        summed, first, second = (
            self._columns(adjoint, start, end)
            for start, end in ((0, kept), (kept, kept + self.size), (kept + self.size, 2**31))
        )
        return ops.concat(summed, first, summed, second, axis=1)

    def _halves(self, both: Value) -> tuple[Value, Value]:
        half = len(self.kind.gates) * self.size
        return self._columns(both, 0, half), self._columns(both, half, 2 * half)

    def _columns(self, value: Value, start: int, end: int) -> Value:
        return self.at.ops.slice(value, np.array([start]), np.array([end]), _ONE, _ONE)


def _zero(like: Value) -> np.ndarray:
    return np.zeros((), like.element_type.dtype if like.element_type else np.float32)
