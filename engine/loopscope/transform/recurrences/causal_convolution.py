"""Causal convolutions as loops over time, with the last inputs as a state."""

from __future__ import annotations

from loopscope.builder import ops
from loopscope.builder.loop import Entered, Iteration, Parts, build_loop
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.transform.recurrences.opening import (
    Length,
    Opening,
    converted,
    length,
    ranked,
    sequence_of_token,
    sized,
    static_length,
    variable,
    widened,
    zeros,
)

INPUTS = ("input", "weight", "bias", "past_state")
RAGGED_INPUTS = ("input", "weight", "bounds", "bias", "past_state", "capture_count")
_EXTENSIONS = {"ndim": 1, "state_window": 0, "state_update_capacity": 0, "state_length": 0}
"""Attributes that only a GPU computes with other values than these."""


def causal_convolution(opening: Opening) -> tuple[Tensor, ...]:
    """Build CausalConvWithState as a loop with the state ``state``: the last inputs."""
    for name, supported in _EXTENSIONS.items():
        if opening.attribute(name, supported) != supported:
            raise BuildError(f"{name} is {opening.attributes[name]}, expected {supported}")
    data = ranked(opening.required("input"), 3)
    last = bool(opening.attribute("channels_last", 0))
    axis = 1 if last else 2
    taps = CausalTaps.of(opening, data)
    past = opening.inputs.get("past_state")
    initial = _initial(past, data, taps.reach, axis)
    channels_first = ops.transpose(initial, [0, 2, 1]) if last else initial

    def trace(entered: Entered) -> Iteration:
        token = widened(entered.parts[0])
        token = ops.transpose(token, [0, 2, 1]) if last else token
        output, following = taps.step(entered.variables[0], token)
        output = ops.transpose(output, [0, 2, 1]) if last else output
        return Iteration([following], [converted(output, data.element_type)])

    plan = opening.plan(
        length(data, axis),
        [variable("state", channels_first, (data.shape.at(0), taps.channels, taps.reach))],
        [Parts("input", data, axis)],
        axis,
    )
    (state,), (outputs,) = build_loop(opening.graph, plan, trace)
    state = converted(state, data.element_type)
    outputs = sized(outputs, [(data, 0), (data, 1), (data, 2)])
    return outputs, ops.transpose(state, [0, 2, 1]) if last else state


def _initial(past: Tensor | None, data: Tensor, reach: int, axis: int) -> Tensor:
    """Return the first state: the past state, or zeros."""
    if past is not None:
        return ranked(widened(past), 3)
    channels = 3 - axis
    lengths: list[Length] = [(data, 0), (data, channels)]
    lengths.insert(axis, reach)
    return zeros(data.graph, lengths, widened(data).element_type)


class CausalTaps:
    """The weights of a causal convolution, and one step of it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dilation: int, activation: str) -> None:
        self._size = static_length(weight, 2, "weight")
        self._dilation, self._activation = dilation, activation
        self.reach = (self._size - 1) * dilation
        """Number of inputs in the state."""
        self.channels = weight.shape.at(0)
        self._weight = ops.squeeze(weight, [1], name="taps")
        self._bias = None if bias is None else ops.unsqueeze(bias, [1])

    @staticmethod
    def of(opening: Opening, data: Tensor) -> CausalTaps:
        """Return the taps of an operator; raise ``BuildError`` for unknown attributes."""
        dilation = opening.attribute("dilation", 1)
        activation = opening.attribute("activation", "none")
        if dilation < 1 or activation not in ("none", "silu", "swish"):
            raise BuildError(f"dilation is {dilation} and activation {str(activation)[:40]!r}")
        return CausalTaps(
            widened(opening.required("weight")), opening.wide("bias"), dilation, activation
        )

    def step(self, state: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output of a token ``[B, C, 1]`` and the next state ``[B, C, reach]``."""
        window = ops.concat([state, token], axis=2, name="window")
        seen = window if self._dilation == 1 else window[:, :, :: self._dilation]
        products = ops.multiply(seen, self._weight, name="products")
        output = ops.reduce_sum(products, [2], keep_dims=True, name="convolved")
        if self._bias is not None:
            output = ops.add(output, self._bias, name="with_bias")
        if self._activation != "none":
            output = ops.swish(output, name="activated")
        following = ops.slice(window, [1], [self.reach + 1], [1], [2], name="next_state")
        return output, following


def ragged_causal_convolution(opening: Opening) -> tuple[Tensor, ...]:
    """Build VarlenCausalConvWithState as a loop over all tokens.

    Each iteration updates the row of ``states`` that belongs to its sequence.
    """
    if opening.attribute("state_update_capacity", 0):
        raise BuildError("state_update_capacity is not 0: the loop does not compute updates")
    data, bounds = opening.required("input"), opening.required("bounds")
    taps = CausalTaps.of(opening, data)

    def trace(entered: Entered) -> Iteration:
        (states,) = entered.variables
        sequence = sequence_of_token(entered, bounds)
        row = ops.gather(states, sequence, 0, name="state")
        token = ops.unsqueeze(widened(entered.parts[0]), [2])
        output, following = taps.step(row, token)
        states = ops.scatter_update(states, sequence, following, 0, name="next_states")
        flat = ops.squeeze(output, [2], name="output")
        return Iteration([states], [converted(flat, data.element_type)])

    initial = widened(opening.required("past_state"))
    parts = [Parts("input", data, 0)]
    plan = opening.plan(length(data, 0), [variable("states", initial)], parts)
    (states,), (outputs,) = build_loop(opening.graph, plan, trace)
    return sized(outputs, [(data, 0), (data, 1)]), converted(states, data.element_type)
