"""Mixture of experts of com.microsoft: a token runs through the experts of its largest scores.

The weights of the quantized form have 2, 4 or 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.activation import gelu, softmax
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.infer import same
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.microsoft.activation import gate_times_up
from loopscope.ops.microsoft.row import FLOATING, row

_ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "relu": lambda data: np.maximum(data, 0),
    "gelu": lambda data: np.asarray(gelu(data, approximation_mode="tanh")),
    "silu": lambda data: data / (1 + np.exp(-data)),
    "identity": lambda data: data,
}
ACTIVATIONS = (*_ACTIVATIONS, "swiglu")


def moe(
    data: Array,
    router: Array,
    first: Array,
    first_bias: Array | None,
    second: Array,
    second_bias: Array | None = None,
    third: Array | None = None,
    third_bias: Array | None = None,
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
    swiglu_limit_after_activation: int,
) -> Array:
    """Return the sum of the ``k`` experts with the largest scores of each token, by their weights.

    ``[T, H]`` or ``[B, S, H]``, ``[T, E], [E, F, H], [E, F], [E, H, I], [E, H]``. The weights are
    the softmax of all scores, or of the chosen ones with ``normalize_routing_weights``.
    """
    if use_sparse_mixer or swiglu_limit_after_activation:
        raise ValueError("use_sparse_mixer and swiglu_limit_after_activation are for GPUs only")
    tokens = computable(data).reshape(-1, data.shape[-1])
    scores = computable(router)
    chosen = chosen_experts(scores, k, (len(tokens), len(first)))
    weights = np.take_along_axis(softmax(scores, axis=-1), chosen, 1)
    weights = _normalized(weights) if normalize_routing_weights else weights
    activation = Activation(
        activation_type, activation_alpha, activation_beta, swiglu_fusion, swiglu_limit
    )
    layers = [
        _Layer(layer, bias)
        for layer, bias in ((first, first_bias), (second, second_bias), (third, third_bias))
        if layer is not None
    ]
    result = _sum_of_experts(tokens, chosen, weights, layers, activation)
    return result.reshape(data.shape).astype(data.dtype, copy=False)


def chosen_experts(scores: Array, k: int, shape: tuple[int, int]) -> Array:
    """Return the experts with the largest scores of each token, ``[T, E] -> [T, k]``.

    ``shape`` is the expected ``[T, E]``.
    """
    if scores.shape != shape or not 1 <= k <= shape[1]:
        raise ValueError(
            f"the scores have shape {list(scores.shape)} and k is {k}, "
            f"expected {list(shape)} and 1 to {shape[1]}"
        )
    chosen: Array = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return chosen


def _normalized(weights: Array) -> Array:
    """Divide the weights of each token by their sum."""
    return weights / weights.sum(1, keepdims=True)


def _sum_of_experts(
    tokens: Array,
    chosen: Array,
    weights: Array,
    layers: Sequence[_Layer | _QuantizedLayer],
    activation: Activation,
) -> Array:
    """Return the weighted sum of the chosen experts of each token.

    ``layers`` are the first, the second and for a SwiGLU that is not fused the third.
    """
    result = np.zeros_like(tokens)
    for expert in np.unique(chosen):
        rows, places = np.nonzero(chosen == expert)
        inputs = tokens[rows]
        third = layers[2].of(inputs, expert) if len(layers) > 2 else None
        outputs = layers[1].of(activation.of(layers[0].of(inputs, expert), third), expert)
        result[rows] += outputs * weights[rows, places][:, None]
    return result


@dataclass(frozen=True, slots=True)
class Activation:
    """The activation between the two products of an expert."""

    type: str
    alpha: float
    beta: float
    fusion: int
    limit: float | None

    def of(self, hidden: Array, third: Array | None) -> Array:
        """Return the activated values; ``third``: the second half of a SwiGLU that is not fused."""
        if self.type != "swiglu":
            return _ACTIVATIONS[self.type](hidden)
        gate, up = _halves(hidden, self.fusion)
        up = third if up is None else up
        if up is None:
            raise ValueError("swiglu without fusion needs the third weights")
        limit = np.inf if self.limit is None else self.limit
        return gate_times_up(gate, up, alpha=self.alpha, beta=self.beta, limit=limit)


class _Layer(NamedTuple):
    """The linear layer of each expert, with weights ``[E, O, I]`` and bias ``[E, O]``."""

    weights: Array
    bias: Array | None

    def of(self, rows: Array, expert: int) -> Array:
        """Apply the layer of one expert: ``[T, I] -> [T, O]``."""
        result = rows @ computable(self.weights[expert]).T
        return result if self.bias is None else result + computable(self.bias[expert])


def _halves(hidden: Array, fusion: int) -> tuple[Array, Array | None]:
    """Split a fused projection: 1 interleaved, 2 one after the other, 0 not fused."""
    if fusion == 1:
        return hidden[:, ::2], hidden[:, 1::2]
    if fusion == 2:
        gate, up = np.split(hidden, 2, axis=-1)
        return gate, up
    return hidden, None


OPERATIONS: tuple[Operation, ...] = (
    row(
        "MoE",
        moe,
        infer=same,
        inputs=(5, 8),
        optional_inputs=frozenset({3}),
        attributes=(
            Attribute("k", "int", 1),
            Attribute("activation_type", "str", "relu", allowed=ACTIVATIONS),
            Attribute("normalize_routing_weights", "int", 0),
            Attribute("use_sparse_mixer", "int", 0),
            Attribute("activation_alpha", "float", 1.0),
            Attribute("activation_beta", "float", 0.0),
            Attribute("swiglu_fusion", "int", 0),
            Attribute("swiglu_limit", "float", None),
            Attribute("swiglu_limit_after_activation", "int", 0),
        ),
        types=(FLOATING,),
    ),
)


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
    float_scales = (
        *(first_global, first_input_scale, first_block_scale),
        *(second_global, second_input_scale, second_block_scale),
    )
    _check_plain_integers(quant_type, use_sparse_mixer, weights_prepacked, float_scales)
    tokens, scores = computable(data).reshape(-1, data.shape[-1]), computable(router)
    chosen = chosen_experts(scores, k, (len(tokens), len(first)))
    if router_weights is None:
        weights = softmax(np.take_along_axis(scores, chosen, 1), axis=-1)
    else:
        weights = np.take_along_axis(computable(router_weights), chosen, 1)
        weights = _normalized(weights) if normalize_routing_weights else weights
    activation = Activation(
        activation_type, activation_alpha, activation_beta, swiglu_fusion, swiglu_limit
    )
    layers = [
        _QuantizedLayer(packed, scale, bias, zero, bits or expert_weight_bits, block_size or 0)
        for packed, scale, bias, zero, bits in (
            (first, first_scale, first_bias, first_zero, fc1_expert_weight_bits),
            (second, second_scale, second_bias, second_zero, fc2_expert_weight_bits),
            (third, third_scale, third_bias, third_zero, fc3_expert_weight_bits),
        )
        if packed is not None
    ]
    result = _sum_of_experts(tokens, chosen, weights, layers, activation)
    return result.reshape(data.shape).astype(data.dtype, copy=False)


def _check_plain_integers(
    quant_type: str, sparse_mixer: int, prepacked: int, scales: Sequence[Array | None]
) -> None:
    """Raise ``ValueError`` for the forms of weights that run only on a GPU."""
    if (
        sparse_mixer
        or quant_type != "int"
        or prepacked > 0
        or any(scale is not None for scale in scales)
    ):
        raise ValueError(
            f"quant_type is {quant_type[:20]!r}, use_sparse_mixer {sparse_mixer} and "
            f"weights_prepacked {prepacked}: only plain integer weights run on a processor"
        )


class _QuantizedLayer:
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
QUANTIZED: tuple[Operation, ...] = (
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
