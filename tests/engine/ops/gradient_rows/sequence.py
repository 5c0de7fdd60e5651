"""Derivatives of the category sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.engine.ops.gradient_rows.row import Row

_NEAR = (-1.0, 1.0)
_SIZE: dict[str, Any] = {"hidden_size": 2}


def _cell(gates: int, *more: int) -> tuple[tuple[int, ...], ...]:
    """Weights, recurrence, and a bias of each length."""
    return ((gates * 2, 3), (gates * 2, 2), *((length,) for length in more))


_STATE = ((2, 3), (2, 2))
_RELU = {"activations": ("relu",)}
_OTHERS = {"activations": ("tanh", "sigmoid", "sigmoid")}

_ATTENTION = ((2, 3, 2), (2, 4, 2), (2, 4, 3))
_SEEN = np.array([[True, False, True, True], [False, True, True, False], [True, True, True, True]])
_SEEN_BY_SOME = _SEEN & np.array([[True], [False], [True]])


def _sequence(gates: int, directions: int, biases: int = 0) -> tuple[Any, ...]:
    """Three sequences of at most three steps: a whole one, a shorter one, and one without steps."""
    states = ((3, directions, 2),) * (2 if gates == 4 else 1)
    weights = (
        (directions, gates * 2, 1),
        (directions, gates * 2, 2),
        (directions, (biases or gates) * 2),
    )
    return ((3, 3, 1), *states, np.array([3, 2, 0]), *weights)


ROWS = (
    Row("RNNCell", (*_STATE, *_cell(1, 2)), _SIZE, within=_NEAR),
    Row("RNNCell", (*_STATE, *_cell(1)), _SIZE | _RELU),
    Row(
        "RNNCell",
        (*_STATE, *_cell(1, 2)),
        _SIZE | {"activations": ("sigmoid",), "clip": 0.5},
        within=_NEAR,
    ),
    *(
        Row(
            "GRUCell",
            (*_STATE, *_cell(3, *bias)),
            _SIZE | {"linear_before_reset": linear},
            within=_NEAR,
        )
        for bias, linear in (((6,), False), ((8,), True), ((), False), ((), True))
    ),
    Row(
        "GRUCell",
        (*_STATE, *_cell(3, 8)),
        _SIZE | {"linear_before_reset": True, "clip": 0.4},
        within=_NEAR,
    ),
    Row(
        "GRUCell",
        (*_STATE, *_cell(3, 6)),
        _SIZE | {"activations": ("tanh", "sigmoid")},
        within=_NEAR,
    ),
    *(
        Row("LSTMCell", (*_STATE, (2, 2), *_cell(4, *bias)), _SIZE, within=_NEAR, version=4)
        for bias in ((8,), ())
    ),
    Row(
        "LSTMCell",
        (*_STATE, (2, 2), *_cell(4, 8)),
        _SIZE | _OTHERS | {"clip": 0.5},
        within=_NEAR,
        version=4,
    ),
    Row("LSTMCell", (*_STATE, (2, 2), *_cell(4, 8)), _SIZE, within=_NEAR, output=0),
    Row("LSTMCell", (*_STATE, (2, 2), *_cell(4, 8)), _SIZE, within=_NEAR, version=1, output=1),
    *(
        Row("ScaledDotProductAttention", _ATTENTION, {"causal": causal}, within=_NEAR)
        for causal in (False, True)
    ),
    Row(
        "ScaledDotProductAttention",
        ((2, 2, 3, 2), (2, 1, 4, 2), (4, 2)),
        {"causal": False},
        within=_NEAR,
    ),
    Row("ScaledDotProductAttention", (*_ATTENTION, (3, 4), ()), {"causal": False}, within=_NEAR),
    Row(
        "ScaledDotProductAttention",
        (*_ATTENTION, (2, 1, 4), (1,), (2, 1, 1)),
        {"causal": False},
        within=_NEAR,
    ),
    Row("ScaledDotProductAttention", (*_ATTENTION, _SEEN, ()), {"causal": False}, within=_NEAR),
    Row("ScaledDotProductAttention", (*_ATTENTION, _SEEN_BY_SOME), {"causal": False}, within=_NEAR),
    Row("ScaledDotProductAttention", (*_ATTENTION, _SEEN), {"causal": True}, within=_NEAR),
    Row("RNNSequence", _sequence(1, 1), _SIZE | {"direction": "forward"}, within=_NEAR),
    Row("GRUSequence", _sequence(3, 1), _SIZE | {"direction": "reverse"}, within=_NEAR),
    Row("LSTMSequence", _sequence(4, 1), _SIZE | {"direction": "forward"}, within=_NEAR),
    # Their second derivatives are those of one direction and the other, and would take as long as
    # all other rows.
    Row(
        "GRUSequence",
        _sequence(3, 2, 4),
        _SIZE | {"direction": "bidirectional", "linear_before_reset": True},
        within=_NEAR,
        second=False,
    ),
    Row(
        "LSTMSequence",
        _sequence(4, 2),
        _SIZE | {"direction": "bidirectional"},
        within=_NEAR,
        second=False,
    ),
)
