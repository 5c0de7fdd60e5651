"""Cells of recurrent layers as operations: LSTM, GRU and RNN, with their gates by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.transform.recurrences.activations import Activation

Product = Callable[[Tensor, str], Tensor]
"""Function that multiplies values ``[D, B, N]`` with weights, under the name of its last node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """The weights and settings of a cell.

    Gates lie side by side in the order of ``gates``.
    """

    input_product: Product
    """Product of the input with its weights, ``[D, B, I] -> [D, B, G*H]``."""
    recurrent_product: Product
    """Product of the hidden state with its weights, ``[D, B, H] -> [D, B, G*H]``."""
    bias: Tensor | None
    """Sum of both biases, ``[D, 1, G*H]``."""
    functions: Sequence[Activation]
    clip: float | None = None


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

    ``peepholes``: weights ``[D, 1, H]`` of the cell for the input, output and forget gate.
    ``couples``: the forget gate is 1 minus the input gate.
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
