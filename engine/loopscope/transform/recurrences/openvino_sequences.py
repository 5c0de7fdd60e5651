"""LSTMSequence, GRUSequence, RNNSequence and AUGRUSequence of OpenVINO as loops over time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.ir.shape import UNKNOWN
from loopscope.transform.recurrences.cells import (
    LSTM_ORDER,
    Activation,
    CellPlan,
    GruPlan,
    activations_by_direction,
    gru_cell,
    lstm_cell,
    rnn_cell,
    weights_product,
)
from loopscope.transform.recurrences.layers import Cell, RecurrentLayer, build_layer
from loopscope.transform.recurrences.opening import Opening, ranked, static_length, widened
from loopscope.transform.recurrences.recurrent_layers import directions, gru_plan

ONE_STATE_INPUTS = ("input", "initial_hidden", "lengths", "weights", "recurrence", "bias")
LSTM_INPUTS = ("input", "initial_hidden", "initial_cell", *ONE_STATE_INPUTS[2:])
AUGRU_INPUTS = (*ONE_STATE_INPUTS, "attention")


def lstm_sequence(opening: Opening) -> tuple[Tensor, ...]:
    """Build LSTMSequence as a loop with the states ``hidden`` and ``cell``."""
    plan = _cell_plan(opening, ("sigmoid", "tanh", "tanh"))

    def cell(data: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        gates = LSTM_ORDER["fico"]
        return lstm_cell(plan, gates, None, couples=False, data=data, states=states)

    return _sequence(opening, ("hidden", "cell"), cell)


def rnn_sequence(opening: Opening) -> tuple[Tensor, ...]:
    """Build RNNSequence as a loop with the state ``hidden``."""
    return _sequence(opening, ("hidden",), partial(rnn_cell, _cell_plan(opening, ("tanh",))))


def gru_sequence(opening: Opening) -> tuple[Tensor, ...]:
    """Build GRUSequence as a loop with the state ``hidden``."""
    return _sequence(opening, ("hidden",), partial(gru_cell, _gru_plan(opening)))


def _gru_plan(opening: Opening) -> GruPlan:
    recurrence = widened(opening.required("recurrence"))
    size = static_length(recurrence, 2, "the recurrence weights")
    resets_last = bool(opening.attribute("linear_before_reset", False))
    bias = ops.unsqueeze(widened(opening.required("bias")), [1])
    candidate_bias = None
    if resets_last:
        bias, candidate_bias = ops.variadic_split(bias, 2, [3 * size, size])
    state_bias = (
        None
        if candidate_bias is None
        else ops.pad(candidate_bias, [0, 0, 2 * size], [0, 0, 0], 0.0, pad_mode="constant")
    )
    return gru_plan(
        widened(opening.required("weights")),
        recurrence,
        bias,
        state_bias,
        _functions(opening, ("sigmoid", "tanh")),
        opening.attributes.get("clip"),
        resets_last=resets_last,
    )


def augru_sequence(opening: Opening) -> tuple[Tensor, ...]:
    """Build AUGRUSequence as a loop with the state ``hidden``.

    The score of a step lies behind its input.
    """
    attention = widened(ranked(opening.required("attention"), 3))
    plan = _gru_plan(opening)
    width = static_length(opening.required("input"), 2, "the input")

    def cell(data: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        own, score = ops.variadic_split(data, 2, [width, 1])
        return gru_cell(plan, own, states, attention=score)

    return _sequence(opening, ("hidden",), cell, attention)


def _cell_plan(opening: Opening, defaults: Sequence[str]) -> CellPlan:
    return CellPlan(
        input_product=weights_product(widened(opening.required("weights"))),
        recurrent_product=weights_product(widened(opening.required("recurrence"))),
        bias=ops.unsqueeze(widened(opening.required("bias")), [1]),
        functions=_functions(opening, defaults),
        clip=opening.attributes.get("clip"),
    )


def _functions(opening: Opening, defaults: Sequence[str]) -> list[Activation]:
    """Return the activations, which both directions share, without alpha and beta."""
    names = opening.attribute("activations", ())[: len(defaults)]
    complete = (*names, *defaults[len(names) :])
    return activations_by_direction(complete, (), (), len(defaults), 1)[0]


def _sequence(
    opening: Opening, states: Sequence[str], cell: Cell, beside: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Build a layer; each step receives its input, and behind it its part of ``beside``.

    ``beside``: ``[B, T, N]``.
    """
    data = ranked(opening.required("input"), 3)
    recurrence = opening.required("recurrence")
    sizes = (UNKNOWN, recurrence.shape.at(0), recurrence.shape.at(2))
    initial = []
    for name in states:
        state = widened(opening.required(f"initial_{name}"))
        state.set_shape(sizes)
        initial.append(ops.transpose(state, [1, 0, 2]))
    wide = widened(data)
    layer = RecurrentLayer(
        data=wide if beside is None else ops.concat([wide, beside], axis=2),
        layout="batch, direction, time",
        backwards=directions(opening),
        lengths=opening.inputs.get("lengths"),
        states=list(zip(states, initial, strict=True)),
        cell=cell,
        output_type=data.element_type,
        returned_states=len(states),
        empty_ends_in_zeros=True,
    )
    return build_layer(opening, layer)
