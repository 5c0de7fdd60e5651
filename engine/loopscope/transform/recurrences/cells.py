"""Cells of recurrent layers as operations: LSTM, GRU and RNN, with gates and activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, shorten

Product = Callable[[Tensor, str], Tensor]
"""Function that multiplies values ``[D, B, N]`` with weights, under the name of its last node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """The weights and settings of a cell, whose gates lie side by side in the weights."""

    input_product: Product
    """Product of the input with its weights, ``[D, B, I] -> [D, B, G*H]``."""
    recurrent_product: Product
    """Product of the hidden state with its weights, ``[D, B, H] -> [D, B, G*H]``."""
    bias: Tensor | None
    """Sum of both biases, ``[D, 1, G*H]``."""
    functions: Sequence[Activation]
    """Activations in the order of ONNX: of the gates, the candidate and the shown cell."""
    clip: float | None = None
    """Limit of the magnitude of an activation's input; None for no limit."""


LSTM_ORDER = {
    "iofc": ("input", "output", "forget", "cell"),
    "fico": ("forget", "input", "cell", "output"),
}
"""Orders of the gates of an LSTM: that of ONNX, and that of OpenVINO."""


def lstm_cell(
    plan: CellPlan,
    gates: Sequence[str],
    peepholes: Sequence[Tensor] | None,
    *,
    couples: bool,
    data: Tensor,
    states: Sequence[Tensor],
) -> list[Tensor]:
    """Build one step of an LSTM and return the next hidden state and cell.

    ``gates`` are the names of the gates in the order of the weights. ``peepholes`` are weights
    ``[D, 1, H]`` of the cell for the input, output and forget gate. If ``couples`` is True, the
    forget gate is 1 minus the input gate.
    """
    hidden, cell = states
    sums = _gate_sums(plan, data, hidden)
    by_name = dict(zip(gates, ops.split(sums, 2, num_splits=4), strict=True))
    gate, squash, show = plan.functions

    def open_gate(name: str, seen: Tensor | None) -> Tensor:
        values = by_name[name]
        if peepholes is not None and seen is not None:
            weights = peepholes[("input", "output", "forget").index(name)]
            values = values + weights * seen
        return gate(clipped(values, plan.clip), f"{name}_gate")

    input_gate = open_gate("input", cell)
    forget_gate = (
        ops.subtract(1, input_gate, name="forget_gate") if couples else open_gate("forget", cell)
    )
    candidate = squash(clipped(by_name["cell"], plan.clip), "cell_gate")
    remembered = ops.multiply(forget_gate, cell, name="kept")
    added = ops.multiply(input_gate, candidate, name="added")
    next_cell = ops.add(remembered, added, name="next_cell")
    output_gate = open_gate("output", next_cell)
    shown = show(next_cell, "shown_cell")
    return [ops.multiply(output_gate, shown, name="next_hidden"), next_cell]


def _gate_sums(plan: CellPlan, data: Tensor, hidden: Tensor) -> Tensor:
    """Return the sums of all gates, ``[D, B, G*H]``."""
    from_input = plan.input_product(data, "from_input")
    from_hidden = plan.recurrent_product(hidden, "from_hidden")
    if plan.bias is None:
        return ops.add(from_input, from_hidden, name="gates")
    return ops.add(ops.add(from_input, from_hidden), plan.bias, name="gates")


def rnn_cell(plan: CellPlan, data: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
    """Build one step of a simple recurrent layer and return the next hidden state."""
    sums = clipped(_gate_sums(plan, data, states[0]), plan.clip)
    return [plan.functions[0](sums, "next_hidden")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GruPlan:
    """The weights and settings of a GRU, whose gates are update, reset and candidate."""

    input_product: Product
    """Product of the input with all weights, ``[D, B, I] -> [D, B, 3*H]``."""
    gate_product: Product
    """Product of the hidden state with the weights of both gates, ``[D, B, H] -> [D, B, 2*H]``."""
    candidate_product: Product
    """Product of a state with the weights of the candidate, ``[D, B, H] -> [D, B, H]``."""
    bias: Tensor | None
    """Sum of the biases that are added before the gates, ``[D, 1, 3*H]``."""
    candidate_bias: Tensor | None
    """Bias that is multiplied by the reset gate, ``[D, 1, H]``; only if the reset comes last."""
    functions: Sequence[Activation]
    clip: float | None
    resets_last: bool
    """True if the reset gate multiplies the product with the state, not the state."""


def gru_cell(
    plan: GruPlan, data: Tensor, states: Sequence[Tensor], attention: Tensor | None = None
) -> list[Tensor]:
    """Build one step of a GRU and return the next hidden state.

    ``attention``: a score ``[D, B, 1]`` that weakens the update gate, as in AUGRU.
    """
    (hidden,) = states
    gate, squash = plan.functions
    from_input = plan.input_product(data, "from_input")
    if plan.bias is not None:
        from_input = ops.add(from_input, plan.bias, name="with_bias")
    to_update, to_reset, to_candidate = ops.split(from_input, 2, num_splits=3)
    from_hidden = plan.gate_product(hidden, "from_hidden")
    hidden_update, hidden_reset = ops.split(from_hidden, 2, num_splits=2)
    update = gate(clipped(to_update + hidden_update, plan.clip), "update_gate")
    reset = gate(clipped(to_reset + hidden_reset, plan.clip), "reset_gate")
    if attention is not None:
        update = ops.multiply(1 - attention, update, name="attended_update")
    if plan.resets_last:
        recalled = plan.candidate_product(hidden, "candidate_from_hidden")
        if plan.candidate_bias is not None:
            recalled = recalled + plan.candidate_bias
        recalled = ops.multiply(reset, recalled, name="recalled")
    else:
        recalled = plan.candidate_product(reset * hidden, "recalled")
    candidate = squash(clipped(to_candidate + recalled, plan.clip), "candidate")
    renewed = ops.multiply(1 - update, candidate, name="renewed")
    remembered = ops.multiply(update, hidden, name="kept")
    return [ops.add(renewed, remembered, name="next_hidden")]


def clipped(values: Tensor, clip: float | None) -> Tensor:
    """Return values between -clip and clip; unchanged without a clip."""
    if clip is None or not 0 < clip < float("inf"):
        return values
    result: Tensor = ops.clamp(values, min=-clip, max=clip)
    return result


def weights_product(weights: Tensor) -> Product:
    """Return the product with transposed weights ``[D, G*H, N]``."""
    return lambda values, name: ops.matmul(values, weights, transpose_b=True, name=name)


Activation = Callable[[Tensor, str], Tensor]
"""Function that applies an activation under the name of its last node."""
Formula = Callable[[Tensor, float, float, str], Tensor]
"""Function of values, alpha, beta and the name of its last node."""


@dataclass(frozen=True, slots=True)
class _BoundFormula:
    """An activation with its alpha and beta; equal formulas with equal numbers are equal."""

    formula: Formula
    alpha: float
    beta: float

    def __call__(self, x: Tensor, name: str) -> Tensor:
        return self.formula(x, self.alpha, self.beta, name)


def _affine(x: Tensor, alpha: float, beta: float, name: str) -> Tensor:
    return ops.add(ops.multiply(x, _like(x, alpha)), _like(x, beta), name=name)


def _like(x: Tensor, number: float | list[float]) -> np.ndarray:
    assert x.element_type is not None, "activations are applied to values of known type"
    return np.asarray(number).astype(x.element_type.dtype)


_FORMULAS: Mapping[str, tuple[Formula, float | None, float | None]] = {
    "affine": (_affine, 1.0, 0.0),
    "elu": (lambda x, a, b, name: ops.elu(x, alpha=a, name=name), 1.0, None),
    "hardsigmoid": (
        lambda x, a, b, name: ops.hard_sigmoid(x, _like(x, a), _like(x, b), name=name),
        0.2,
        0.5,
    ),
    "leakyrelu": (lambda x, a, b, name: ops.prelu(x, _like(x, [a]), name=name), 0.01, None),
    "relu": (lambda x, a, b, name: ops.relu(x, name=name), None, None),
    "scaledtanh": (
        lambda x, a, b, name: ops.multiply(
            ops.tanh(ops.multiply(x, _like(x, b))), _like(x, a), name=name
        ),
        1.0,
        1.0,
    ),
    "sigmoid": (lambda x, a, b, name: ops.sigmoid(x, name=name), None, None),
    "softplus": (lambda x, a, b, name: ops.softplus(x, name=name), None, None),
    "softsign": (lambda x, a, b, name: ops.softsign(x, name=name), None, None),
    "tanh": (lambda x, a, b, name: ops.tanh(x, name=name), None, None),
    "thresholdedrelu": (
        lambda x, a, b, name: ops.select(ops.greater(x, _like(x, a)), x, _like(x, 0), name=name),
        1.0,
        None,
    ),
}
"""The operation of each function, and the defaults of its alpha and beta; None if it has none."""


def activations_by_direction(
    names: Sequence[str],
    alphas: Sequence[float],
    betas: Sequence[float],
    each: int,
    directions: int,
) -> list[list[Activation]]:
    """Return the activations of each direction: ``each`` functions for one step.

    Alpha and beta are listed only for functions that have them. ``BuildError`` for an unknown
    function, or too few of them.
    """
    if len(names) < each * directions:
        raise BuildError(f"activations names {len(names)} functions, expected {each * directions}")
    remaining_alphas, remaining_betas = iter(alphas), iter(betas)
    functions: list[Activation] = []
    for name in names[: each * directions]:
        if name.lower() not in _FORMULAS:
            raise BuildError(
                f"the activation {shorten(name)!r} is unknown, expected {', '.join(_FORMULAS)}"
            )
        formula, alpha, beta = _FORMULAS[name.lower()]
        functions.append(
            _BoundFormula(
                formula,
                0.0 if alpha is None else next(remaining_alphas, alpha),
                0.0 if beta is None else next(remaining_betas, beta),
            )
        )
    return [functions[start : start + each] for start in range(0, len(functions), each)]


def over_directions(by_direction: Sequence[Sequence[Activation]]) -> list[Activation]:
    """Return the functions of one direction for values ``[D, B, H]`` of all directions.

    If the directions have different functions, alphas or betas, each direction's function is
    applied to its part of the values.
    """
    if len(by_direction) == 1 or by_direction[0] == by_direction[1]:
        return list(by_direction[0])
    return [
        _of_both(first, second)
        for first, second in zip(by_direction[0], by_direction[1], strict=True)
    ]


def _of_both(first: Activation, second: Activation) -> Activation:
    def apply(x: Tensor, name: str) -> Tensor:
        forward, backward = ops.split(x, 0, num_splits=2)
        parts = [first(forward, f"{name}_forward"), second(backward, f"{name}_backward")]
        return ops.concat(parts, axis=0, name=name)

    return apply
