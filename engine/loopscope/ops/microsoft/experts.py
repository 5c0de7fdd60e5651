"""Mixture of experts of com.microsoft: a token runs through the experts of its largest scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from loopscope.ops.activation.formulas import gelu
from loopscope.ops.activation.softmax import softmax
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.infer import same
from loopscope.ops.microsoft.gated import gate_times_up
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.precision import computable

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
    if normalize_routing_weights:
        weights = weights / weights.sum(1, keepdims=True)
    activation = Activation(
        activation_type, activation_alpha, activation_beta, swiglu_fusion, swiglu_limit
    )

    def run(rows: Array, expert: int) -> Array:
        hidden = activation.of(
            _projected(rows, first, first_bias, expert),
            None if third is None else _projected(rows, third, third_bias, expert),
        )
        return _projected(hidden, second, second_bias, expert)

    result = sum_of_experts(tokens, chosen, weights, run)
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


def sum_of_experts(
    tokens: Array, chosen: Array, weights: Array, run: Callable[[Array, int], Array]
) -> Array:
    """Return the weighted sum of the chosen experts of each token.

    ``run`` computes an expert for some tokens.
    """
    result = np.zeros_like(tokens)
    for expert in np.unique(chosen):
        rows, places = np.nonzero(chosen == expert)
        result[rows] += run(tokens[rows], expert) * weights[rows, places][:, None]
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


def _projected(rows: Array, weights: Array, bias: Array | None, expert: int) -> Array:
    """Apply the linear layer of one expert: ``[T, I], [E, O, I], [E, O] -> [T, O]``."""
    result = rows @ computable(weights[expert]).T
    return result if bias is None else result + computable(bias[expert])


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
