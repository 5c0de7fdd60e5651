"""Mixture of experts of com.microsoft with weights of 2, 4 or 8 bits."""

from __future__ import annotations

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.activation.softmax import softmax
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.infer import same
from loopscope.ops.microsoft.experts import (
    ACTIVATIONS,
    Activation,
    chosen_experts,
    sum_of_experts,
)
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.precision import computable

_BITS = (2, 4, 8)


def quantized_moe(
    data: Array,
    router: Array,
    first: Array,
    first_scale: Array | None,
    first_bias: Array | None,
    second: Array,
    second_scale: Array | None = None,
    second_bias: Array | None = None,
    third: Array | None = None,
    third_scale: Array | None = None,
    third_bias: Array | None = None,
    first_zero: Array | None = None,
    second_zero: Array | None = None,
    third_zero: Array | None = None,
    router_weights: Array | None = None,
    first_global: Array | None = None,
    second_global: Array | None = None,
    first_input_scale: Array | None = None,
    second_input_scale: Array | None = None,
    first_block_scale: Array | None = None,
    second_block_scale: Array | None = None,
    /,
    *,
    k: int,
    activation_type: str,
    normalize_routing_weights: int,
    use_sparse_mixer: int,
    activation_alpha: float,
    activation_beta: float,
    swiglu_fusion: int,
    swiglu_limit: float | None,
    expert_weight_bits: int,
    fc1_expert_weight_bits: int | None,
    fc2_expert_weight_bits: int | None,
    fc3_expert_weight_bits: int | None,
    block_size: int | None,
    quant_type: str,
    weights_prepacked: int,
    accuracy_level: int,
) -> Array:
    """Return the sum of the ``k`` experts with the largest scores of each token, by their weights.

    ``[T, H]`` or ``[B, S, H]``, ``[T, E], [E, F, H * bits / 8], [E, F] or [E, F, blocks], [E, F],
    [E, H, I * bits / 8], ...``. The weights are the softmax of the chosen scores, as on ONNX
    Runtime's CPU, or those of ``router_weights``. Products are computed in f32.
    """
    unknown = (first_global, second_global, first_input_scale, second_input_scale)
    if (
        use_sparse_mixer
        or quant_type != "int"
        or weights_prepacked > 0
        or any(array is not None for array in (*unknown, first_block_scale, second_block_scale))
    ):
        raise ValueError(
            f"quant_type is {quant_type[:20]!r}, use_sparse_mixer {use_sparse_mixer} and "
            f"weights_prepacked {weights_prepacked}: only plain integer weights run on a processor"
        )
    tokens, scores = computable(data).reshape(-1, data.shape[-1]), computable(router)
    chosen = chosen_experts(scores, k, (len(tokens), len(first)))
    if router_weights is None:
        weights = softmax(np.take_along_axis(scores, chosen, 1), axis=-1)
    else:
        weights = np.take_along_axis(computable(router_weights), chosen, 1)
        if normalize_routing_weights:
            weights = weights / weights.sum(1, keepdims=True)
    activation = Activation(
        activation_type, activation_alpha, activation_beta, swiglu_fusion, swiglu_limit
    )
    layers = [
        _Layer(packed, scale, bias, zero, bits or expert_weight_bits, block_size or 0)
        for packed, scale, bias, zero, bits in (
            (first, first_scale, first_bias, first_zero, fc1_expert_weight_bits),
            (second, second_scale, second_bias, second_zero, fc2_expert_weight_bits),
            (third, third_scale, third_bias, third_zero, fc3_expert_weight_bits),
        )
        if packed is not None
    ]

    def run(rows: Array, expert: int) -> Array:
        beside = layers[2].of(rows, expert) if len(layers) > 2 else None
        return layers[1].of(activation.of(layers[0].of(rows, expert), beside), expert)

    result = sum_of_experts(tokens, chosen, weights, run)
    return result.reshape(data.shape).astype(data.dtype, copy=False)


class _Layer:
    """The linear layer of each expert, with packed weights."""

    def __init__(
        self,
        packed: Array,
        scale: Array | None,
        bias: Array | None,
        zero: Array | None,
        bits: int,
        block_size: int,
    ) -> None:
        if scale is None or packed.ndim != 3 or bits not in _BITS:
            raise ValueError(
                f"weights of {bits} bits have shape {list(packed.shape)} and "
                f"{'no' if scale is None else 'their'} scales, expected 2, 4 or 8 bits, "
                "[experts, outputs, bytes] and scales"
            )
        self._packed, self._zero = packed, zero
        self._scale = computable(scale)
        self._bias, self._bits, self._block = bias, bits, block_size

    def of(self, rows: Array, expert: int) -> Array:
        """Apply the layer of one expert: ``[T, I] -> [T, O]``."""
        codes = unpacked(self._packed[expert], self._bits).astype(np.float32)
        result = rows @ ((codes - self._zeros(expert)) * self._by_weight(self._scale[expert])).T
        return result if self._bias is None else result + computable(self._bias[expert])

    def _zeros(self, expert: int) -> Array | np.float32:
        """Return the code that means zero, for each weight or for all."""
        if self._zero is None:
            return np.float32(2 ** (self._bits - 1))
        count = self._scale.shape[-1]
        zeros = unpacked(self._zero[expert], self._bits)[..., :count].astype(np.float32)
        return self._by_weight(zeros)

    def _by_weight(self, parameters: Array) -> Array:
        """Return scales or zero points ``[O]`` or ``[O, blocks]`` as ``[O, I]`` or ``[O, 1]``."""
        if parameters.ndim == 1:
            return parameters[:, None]
        if not self._block:
            raise ValueError("the scales have an axis of blocks, expected a block_size")
        return parameters.repeat(self._block, axis=-1)


def unpacked(packed: Array, bits: int) -> Array:
    """Return the codes of bytes along the last axis, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return codes.reshape(*packed.shape[:-1], -1)


_CODES = frozenset({ElementType.U8})
OPERATIONS: tuple[Operation, ...] = (
    row(
        "QMoE",
        quantized_moe,
        infer=same,
        inputs=(6, 21),
        optional_inputs=frozenset({3, 4}),
        attributes=(
            Attribute("k", "int", 1),
            Attribute("activation_type", "str", "relu", allowed=ACTIVATIONS),
            Attribute("normalize_routing_weights", "int", 0),
            Attribute("use_sparse_mixer", "int", 0),
            Attribute("activation_alpha", "float", 1.0),
            Attribute("activation_beta", "float", 0.0),
            Attribute("swiglu_fusion", "int", 0),
            Attribute("swiglu_limit", "float", None),
            Attribute("expert_weight_bits", "int", 4),
            Attribute("fc1_expert_weight_bits", "int", None),
            Attribute("fc2_expert_weight_bits", "int", None),
            Attribute("fc3_expert_weight_bits", "int", None),
            Attribute("block_size", "int", None),
            Attribute("quant_type", "str", "int"),
            Attribute("weights_prepacked", "int", -1),
            Attribute("accuracy_level", "int", 0),
        ),
        types=(
            FLOATING,
            FLOATING,
            _CODES,
            FLOATING,
            FLOATING,
            _CODES,
            FLOATING,
            FLOATING,
            _CODES,
            FLOATING,
            FLOATING,
            _CODES,
            _CODES,
            _CODES,
            FLOATING,
        ),
    ),
)
