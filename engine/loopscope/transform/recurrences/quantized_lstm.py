"""DynamicQuantizeLSTM as a loop over time."""

from __future__ import annotations

import numpy as np

from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.transform.recurrences.cells import CellPlan, Product
from loopscope.transform.recurrences.opening import Opening
from loopscope.transform.recurrences.recurrent_layers import (
    ONNX_INPUTS,
    initial_states,
    onnx_functions,
    onnx_layer,
    onnx_lstm_cell,
    summed_bias,
)

INPUTS = (
    *ONNX_INPUTS,
    "weights_scale",
    "weights_zero_point",
    "recurrence_scale",
    "recurrence_zero_point",
)
_LAST_BYTE = 255


def quantized_lstm(opening: Opening) -> tuple[Tensor, ...]:
    """Build DynamicQuantizeLSTM as a loop with the states ``hidden`` and ``cell``.

    The inputs of all steps are quantized together before the loop, and the hidden states of a batch
    before each step.
    """
    data = opening.required("input")
    quanta, scale = quantized(data, np.arange(3))
    to_gates = _integer_weights(opening, "weights")
    from_hidden = _integer_weights(opening, "recurrence")
    weights_scale = _by_direction(opening.required("weights_scale"))
    recurrence_scale = _by_direction(opening.required("recurrence_scale"))

    def hidden_product(values: Tensor, name: str) -> Tensor:
        hidden_quanta, hidden_scale = quantized(values, np.array([1, 2]))
        product = _integer_product(from_hidden, ops.multiply(hidden_scale, recurrence_scale))
        return product(hidden_quanta, name)

    plan = CellPlan(
        input_product=_integer_product(to_gates, ops.multiply(scale, weights_scale)),
        recurrent_product=hidden_product,
        bias=summed_bias(opening),
        functions=onnx_functions(opening, ("Sigmoid", "Tanh", "Tanh")),
        clip=opening.attributes.get("clip"),
    )
    recurrence = opening.required("recurrence")
    states = initial_states(opening, ("hidden", "cell"), recurrence, size_axis=1)
    cell = onnx_lstm_cell(opening, plan)
    return onnx_layer(opening, states, cell, data=quanta, rests_at_zero=True)


def quantized(values: Tensor, axes: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return 8-bit integers less their zero point, as f32, and their scale.

    Values are quantized together along ``axes``; 0 is always representable.
    """
    lower = ops.minimum(ops.reduce_min(values, axes, keep_dims=True), 0)
    upper = ops.maximum(ops.reduce_max(values, axes, keep_dims=True), 0)
    span = ops.divide(ops.subtract(upper, lower), np.float32(_LAST_BYTE))
    scale = ops.select(ops.equal(upper, lower), np.float32(1), span, name="scale")
    zero_point = ops.clamp(
        ops.round(ops.divide(ops.subtract(0, lower), scale), mode="half_to_even"),
        min=0,
        max=_LAST_BYTE,
    )
    steps = ops.round(ops.divide(values, scale), mode="half_to_even")
    bytes_of = ops.clamp(ops.add(steps, zero_point), min=0, max=_LAST_BYTE)
    return ops.subtract(bytes_of, zero_point, name="quanta"), scale


def _integer_weights(opening: Opening, role: str) -> Tensor:
    """Return weights ``[D, N, G*H]`` less their zero points, as f64."""
    weights = ops.convert(opening.required(role), destination_type="f64")
    zero_points = _by_direction(opening.required(f"{role}_zero_point"))
    return ops.subtract(
        weights, ops.convert(zero_points, destination_type="f64"), name=f"integer_{role}"
    )


def _by_direction(parameter: Tensor) -> Tensor:
    """Return ``[D]`` or ``[D, G*H]`` as ``[D, 1, 1]`` or ``[D, 1, G*H]``."""
    return ops.unsqueeze(parameter, [1, 2] if parameter.rank == 1 else [1])


def _integer_product(weights: Tensor, scale: Tensor) -> Product:
    """Return the product of integers, whose sums are exact in f64, times a scale."""

    def product(quanta: Tensor, name: str) -> Tensor:
        exact = ops.matmul(ops.convert(quanta, destination_type="f64"), weights)
        sums = ops.convert(exact, destination_type="f32")
        result: Tensor = ops.multiply(sums, scale, name=name)
        return result

    return product
