"""ONNX's RNN, GRU and LSTM: directions, lengths of sequences, peepholes, clipping, all activations,
both layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from loopscope.ops import special_functions as special
from loopscope.ops.declare import Kernel
from loopscope.ops.kernel_arithmetic import computable

Attributes = Mapping[str, Any]
Formula = Callable[[np.ndarray, float, float], np.ndarray]
_FORMULAS: Mapping[str, tuple[Formula, float | None, float | None]] = {
    # Name in lower case: formula of x, alpha and beta; defaults of alpha and beta, None if it has
    # none.
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "elu": (lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x), 1.0, None),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "leakyrelu": (lambda x, a, b: np.where(x < 0, a * x, x), 0.01, None),
    "relu": (lambda x, a, b: np.maximum(x, 0), None, None),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "sigmoid": (lambda x, a, b: special.expit(x), None, None),
    "softplus": (lambda x, a, b: np.logaddexp(x, 0), None, None),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), None, None),
    "tanh": (lambda x, a, b: np.tanh(x), None, None),
    "thresholdedrelu": (lambda x, a, b: np.where(x > a, x, 0), 1.0, None),
}

Activation = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class _Weights:
    """Weights of one direction that a step multiplies states with: ``r`` [gates H, H], its bias
    [gates H], peepholes [3 H] or None.
    """

    r: np.ndarray
    bias: np.ndarray
    peepholes: np.ndarray | None


States = tuple[np.ndarray, ...]
Step = Callable[[np.ndarray, States, _Weights, Sequence[Activation], Attributes], States]
"""Function that returns the states after one time step; the first state is the output. Its
arguments are the gates' share of the input [B, gates H] with its bias, and the previous states [B,
H].
"""


def _rnn(
    projected: np.ndarray,
    states: States,
    weights: _Weights,
    functions: Sequence[Activation],
    attributes: Attributes,
) -> States:
    total = projected + states[0] @ weights.r.T + weights.bias
    return (functions[0](_clip(total, attributes)),)


def _gru(
    projected: np.ndarray,
    states: States,
    weights: _Weights,
    functions: Sequence[Activation],
    attributes: Attributes,
) -> States:
    (hidden,) = states
    size = hidden.shape[1]
    gates = projected[:, : 2 * size] + hidden @ weights.r[: 2 * size].T + weights.bias[: 2 * size]
    both = functions[0](_clip(gates, attributes))
    update, reset = both[:, :size], both[:, size:]
    inner, bias = weights.r[2 * size :], weights.bias[2 * size :]
    recalled = (
        reset * (hidden @ inner.T + bias)
        if attributes.get("linear_before_reset")
        else (reset * hidden) @ inner.T + bias
    )
    candidate = functions[1](_clip(projected[:, 2 * size :] + recalled, attributes))
    return ((1 - update) * candidate + update * hidden,)


def _lstm(
    projected: np.ndarray,
    states: States,
    weights: _Weights,
    functions: Sequence[Activation],
    attributes: Attributes,
) -> States:
    hidden, cell = states
    gates = projected + hidden @ weights.r.T + weights.bias
    return lstm_of_gates(gates, cell, weights.peepholes, functions, attributes)


def lstm_of_gates(
    gates: np.ndarray,
    cell: np.ndarray,
    peepholes: np.ndarray | None,
    functions: Sequence[Activation],
    attributes: Attributes,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the output of an LSTM and its cell after a step, [B, H] each, from the sums of its
    gates [B, 4 H] and the previous cell.
    """
    gate, squash, show = functions
    size = cell.shape[1]
    to_input, to_output, to_forget = (
        gates[:, start * size : (start + 1) * size] for start in range(3)
    )
    candidate = squash(_clip(gates[:, 3 * size :], attributes))
    forgets = not attributes.get("input_forget")
    if peepholes is None:
        # The three gates lie side by side: one call for all.
        open_gates = gate(_clip(gates[:, : 3 * size], attributes))
        adding, showing = open_gates[:, :size], open_gates[:, size : 2 * size]
        forgetting = open_gates[:, 2 * size :] if forgets else 1 - adding
        following = forgetting * cell + adding * candidate
        return showing * show(following), following
    seen_by_input, seen_by_output, seen_by_forget = (
        peepholes[start * size : (start + 1) * size] for start in range(3)
    )
    adding = gate(_clip(to_input + seen_by_input * cell, attributes))
    forgetting = (
        gate(_clip(to_forget + seen_by_forget * cell, attributes)) if forgets else 1 - adding
    )
    following = forgetting * cell + adding * candidate
    showing = gate(_clip(to_output + seen_by_output * following, attributes))
    return showing * show(following), following


def _clip(values: np.ndarray, attributes: Attributes) -> np.ndarray:
    clip = attributes.get("clip")
    return values if clip is None or clip <= 0 else np.clip(values, -clip, clip)


def activations_of(
    attributes: Attributes, defaults: Sequence[str], directions: int
) -> list[list[Activation]]:
    """Return the functions of each direction. Alpha and beta are listed only for functions that
    have them.

    The default in the schema of RNN names functions for two directions, also for one direction.
    """
    names, alphas, betas = (
        tuple(attributes.get(name) or ())
        for name in ("activations", "activation_alpha", "activation_beta")
    )
    return _activations(
        names or tuple(defaults) * directions, alphas, betas, len(defaults), directions
    )


@lru_cache(maxsize=64)
def _activations(
    names: tuple[str, ...],
    every_alpha: tuple[float, ...],
    every_beta: tuple[float, ...],
    each: int,
    directions: int,
) -> list[list[Activation]]:
    if len(names) < each * directions:
        raise ValueError(f"activations names {len(names)} functions, expected {each * directions}")
    alphas, betas = iter(every_alpha), iter(every_beta)
    functions = []
    for name in names[: each * directions]:
        if name.lower() not in _FORMULAS:
            raise ValueError(
                f"the activation {name[:40]!r} is unknown, expected one of {', '.join(_FORMULAS)}"
            )
        formula, alpha, beta = _FORMULAS[name.lower()]
        functions.append(
            _bind(
                formula,
                *(
                    0.0 if own is None else next(values, own)
                    for own, values in ((alpha, alphas), (beta, betas))
                ),
            )
        )
    return [functions[start : start + each] for start in range(0, len(functions), each)]


def _bind(formula: Formula, alpha: float, beta: float) -> Activation:
    return lambda x: formula(x, alpha, beta)


def _layer(step: Step, gates: int, states: int, defaults: Sequence[str]) -> Kernel:
    """Return the kernel of a layer with ``gates`` gates and ``states`` states. Its inputs are X, W,
    R, B, lengths, initial states and peepholes; its outputs are Y and the last states.
    """

    def kernel(*arguments: Any, **attributes: Any) -> tuple[np.ndarray, ...]:
        x, w, r, bias, lengths, *others = (*arguments, *[None] * 8)[:8]
        batch_first = bool(attributes.get("layout"))
        data = computable(x.swapaxes(0, 1) if batch_first else x)
        steps, batch, directions, size = data.shape[0], data.shape[1], len(w), r.shape[2]
        backwards = directions_of(attributes.get("direction", "forward"), directions)
        functions = activations_of(attributes, defaults, directions)
        counts = None if lengths is None else sequence_counts(lengths, batch, steps)
        shortest = steps if counts is None else int(counts.min(initial=steps))
        both = (
            np.zeros((directions, 2, gates * size), data.dtype)
            if bias is None
            else bias.reshape(directions, 2, gates * size)
        )
        seen = others[states] if states > 1 else None
        result = np.zeros((steps, directions, batch, size), data.dtype)
        last = [
            initial_state(others[number], directions, batch, size, data.dtype, batch_first)
            for number in range(states)
        ]
        for index in range(directions):
            weights = _Weights(
                computable(r[index]),
                computable(both[index, 1]),
                None if seen is None else seen[index],
            )
            # Project all time steps at once: one product of matrices instead of many of a few rows.
            projected = data.reshape(steps * batch, data.shape[2]) @ computable(
                w[index]
            ).T + computable(both[index, 0])
            projected = projected.reshape(steps, batch, gates * size)
            before: States = tuple(state[index] for state in last)
            for time in reversed(range(steps)) if backwards[index] else range(steps):
                after = step(projected[time], before, weights, functions[index], attributes)
                if counts is None or time < shortest:
                    before, result[time, index] = after, after[0]
                    continue
                runs = (time < counts)[:, None]
                before = tuple(
                    np.where(runs, new, old) for new, old in zip(after, before, strict=True)
                )
                result[time, index] = np.where(runs, after[0], 0)
            for number in range(states):
                last[number][index] = before[number]
        shown = (
            [result.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last)]
            if batch_first
            else [result, *last]
        )
        return tuple(array.astype(x.dtype) for array in shown)

    return kernel


def sequence_counts(lengths: np.ndarray | None, batch: int, steps: int) -> np.ndarray:
    """Return the length of each sequence of a batch, ``steps`` if none are specified."""
    counts = np.full(batch, steps) if lengths is None else lengths.astype(np.int64)
    if counts.shape != (batch,) or not ((counts >= 0) & (counts <= steps)).all():
        raise ValueError(
            f"the lengths of the sequences are {counts.tolist()[:8]}, "
            f"expected {batch} numbers of 0 to {steps}"
        )
    return counts


def directions_of(direction: str, directions: int) -> list[bool]:
    """Return True for each direction that runs backwards."""
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(
        direction
    )
    if backwards is None or len(backwards) != directions:
        raise ValueError(
            f"the direction is {direction[:40]!r}, and the weights are of {directions} directions"
        )
    return backwards


def initial_state(
    state: np.ndarray | None,
    directions: int,
    batch: int,
    size: int,
    dtype: np.dtype,
    batch_first: bool,
) -> np.ndarray:
    """Return a copy of the initial state, or zeros, as [directions, B, H]."""
    if state is None:
        return np.zeros((directions, batch, size), dtype)
    ordered = state.swapaxes(0, 1) if batch_first and state.ndim > 1 else state
    if ordered.shape != (directions, batch, size):
        expected = [batch, directions, size] if batch_first else [directions, batch, size]
        raise ValueError(f"an initial state has shape {list(state.shape)}, expected {expected}")
    return np.array(ordered, dtype)


rnn = _layer(_rnn, 1, 1, ["Tanh"])
gru = _layer(_gru, 3, 1, ["Sigmoid", "Tanh"])
lstm = _layer(_lstm, 4, 2, ["Sigmoid", "Tanh", "Tanh"])
