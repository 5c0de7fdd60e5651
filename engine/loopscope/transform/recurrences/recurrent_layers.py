"""LSTM, GRU and RNN of ONNX and sequences of OpenVINO as loops over time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import UNKNOWN
from loopscope.transform.recurrences.cells import (
    LSTM_ORDER,
    Activation,
    CellPlan,
    GruPlan,
    activations_by_direction,
    gru_cell,
    lstm_cell,
    over_directions,
    rnn_cell,
    weights_product,
)
from loopscope.transform.recurrences.layers import Cell, RecurrentLayer, build_layer
from loopscope.transform.recurrences.opening import (
    WIDENED,
    Opening,
    ranked,
    static_length,
    widened,
    zeros,
)

ONNX_INPUTS = (
    "input",
    "weights",
    "recurrence",
    "bias",
    "lengths",
    "initial_hidden",
    "initial_cell",
    "peepholes",
)
"""Roles of the inputs of ONNX's layers; only the LSTM has the last two."""
_BACKWARDS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}


def directions(opening: Opening) -> list[bool]:
    """Return for each direction True if it runs backwards."""
    direction = opening.attribute("direction", "forward")
    if direction not in _BACKWARDS:
        raise BuildError(f"the direction is {str(direction)[:40]!r}")
    return _BACKWARDS[direction]


def onnx_functions(opening: Opening, defaults: Sequence[str]) -> list[Activation]:
    """Return the activations of a layer of ONNX."""
    count = len(directions(opening))
    names = opening.attribute("activations", ()) or tuple(defaults) * count
    by_direction = activations_by_direction(
        names,
        opening.attribute("activation_alpha", ()),
        opening.attribute("activation_beta", ()),
        len(defaults),
        count,
    )
    return over_directions(by_direction)


def summed_bias(opening: Opening) -> Tensor | None:
    """Return the sum of both biases, ``[D, 1, G*H]``; None if the layer has no bias."""
    first, second = split_biases(opening.wide("bias"))
    if first is None or second is None:
        return None
    result: Tensor = ops.add(first, second, name="bias")
    return result


def split_biases(bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Return the biases of input and state, ``[D, 1, G*H]`` each, from ``[D, 2*G*H]``."""
    if bias is None:
        return None, None
    first, second = ops.split(ops.unsqueeze(bias, [1]), 2, num_splits=2)
    return first, second


def initial_states(
    opening: Opening, names: Sequence[str], size_of: Tensor, size_axis: int = 2
) -> list[tuple[str, Tensor]]:
    """Return the names and initial values ``[D, B, H]`` of states; zeros if they are absent.

    ``size_of``: the recurrence weights, whose first axis has length D, and ``size_axis`` H.
    """
    data = opening.required("input")
    batch_axis = 0 if opening.attribute("layout", 0) else 1
    ranked(data, 3)
    sizes = (size_of.shape.at(0), UNKNOWN, size_of.shape.at(size_axis))
    states = []
    for name in names:
        state = opening.wide(f"initial_{name}")
        if state is None:
            kind = ElementType.F32 if data.element_type in WIDENED else data.element_type
            lengths = [(size_of, 0), (data, batch_axis), (size_of, size_axis)]
            state = zeros(opening.graph, lengths, kind)
        elif batch_axis == 0:
            state = ops.transpose(ranked(state, 3), [1, 0, 2])
        state.set_shape(sizes)
        states.append((name, state))
    return states


def onnx_layer(
    opening: Opening,
    states: Sequence[tuple[str, Tensor]],
    cell: Cell,
    *,
    data: Tensor | None = None,
    returned_states: int | None = None,
    rests_at_zero: bool = False,
) -> tuple[Tensor, ...]:
    """Build a layer of ONNX with these names and initial values of its states.

    ``data``: the input of the cell, if it is not the input of the operator.
    """
    batch_first = bool(opening.attribute("layout", 0))
    return build_layer(
        opening,
        RecurrentLayer(
            data=widened(opening.required("input")) if data is None else data,
            layout="batch, time, direction" if batch_first else "time, direction, batch",
            backwards=directions(opening),
            lengths=opening.inputs.get("lengths"),
            states=states,
            cell=cell,
            output_type=opening.required("input").element_type,
            returned_states=len(states) if returned_states is None else returned_states,
            empty_ends_in_zeros=False,
            rests_at_zero=rests_at_zero,
        ),
    )


def cell_plan(
    opening: Opening, defaults: Sequence[str], weights: Tensor, recurrence: Tensor
) -> CellPlan:
    return CellPlan(
        input_product=weights_product(weights),
        recurrent_product=weights_product(recurrence),
        bias=summed_bias(opening),
        functions=onnx_functions(opening, defaults),
        clip=opening.attributes.get("clip"),
    )


def both_weights(opening: Opening) -> tuple[Tensor, Tensor]:
    return widened(opening.required("weights")), widened(opening.required("recurrence"))


def onnx_lstm(opening: Opening) -> tuple[Tensor, ...]:
    """Build ONNX's LSTM as a loop with the states ``hidden`` and ``cell``."""
    weights, recurrence = both_weights(opening)
    plan = cell_plan(opening, ("Sigmoid", "Tanh", "Tanh"), weights, recurrence)
    states = initial_states(opening, ("hidden", "cell"), recurrence)
    return onnx_layer(opening, states, onnx_lstm_cell(opening, plan))


def onnx_lstm_cell(opening: Opening, plan: CellPlan) -> Cell:
    """Return the cell of an LSTM with the gates in ONNX's order."""
    peepholes = opening.wide("peepholes")
    by_gate = (
        None if peepholes is None else ops.split(ops.unsqueeze(peepholes, [1]), 2, num_splits=3)
    )
    couples = bool(opening.attribute("input_forget", 0))
    return lambda data, states: lstm_cell(
        plan, LSTM_ORDER["iofc"], by_gate, couples=couples, data=data, states=states
    )


def onnx_rnn(opening: Opening) -> tuple[Tensor, ...]:
    """Build ONNX's RNN as a loop with the state ``hidden``."""
    weights, recurrence = both_weights(opening)
    plan = cell_plan(opening, ("Tanh",), weights, recurrence)
    states = initial_states(opening, ("hidden",), recurrence)
    return onnx_layer(opening, states, partial(rnn_cell, plan))


def onnx_gru(opening: Opening) -> tuple[Tensor, ...]:
    """Build ONNX's GRU as a loop with the state ``hidden``."""
    weights, recurrence = both_weights(opening)
    first, second = split_biases(opening.wide("bias"))
    plan = gru_plan(
        weights,
        recurrence,
        first,
        second,
        onnx_functions(opening, ("Sigmoid", "Tanh")),
        opening.attributes.get("clip"),
        resets_last=bool(opening.attribute("linear_before_reset", 0)),
    )
    states = initial_states(opening, ("hidden",), recurrence)
    return onnx_layer(opening, states, partial(gru_cell, plan))


def gru_plan(
    weights: Tensor,
    recurrence: Tensor,
    input_bias: Tensor | None,
    state_bias: Tensor | None,
    functions: Sequence[Activation],
    clip: float | None,
    *,
    resets_last: bool,
) -> GruPlan:
    """Return the plan of a GRU from biases ``[D, 1, 3*H]``.

    The bias of the candidate is separate only if the reset gate multiplies it.
    """
    size = static_length(recurrence, 2, "the recurrence weights")
    sizes = [2 * size, size]
    to_gates, to_candidate = ops.variadic_split(recurrence, 1, sizes)
    bias, candidate_bias = input_bias, None
    if input_bias is not None and state_bias is not None:
        if resets_last:
            of_gates, candidate_bias = ops.variadic_split(state_bias, 2, sizes)
            padding = ops.concat([of_gates, candidate_bias * 0], axis=2)
            bias = ops.add(input_bias, padding, name="bias")
        else:
            bias = ops.add(input_bias, state_bias, name="bias")
    return GruPlan(
        input_product=weights_product(weights),
        gate_product=weights_product(to_gates),
        candidate_product=weights_product(to_candidate),
        bias=bias,
        candidate_bias=candidate_bias,
        functions=functions,
        clip=clip,
        resets_last=resets_last,
    )


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
