"""A Mamba-2 layer, and stacks that mix gated delta nets, Mamba-2 and full attention as the
language models of 2026 do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, assert_never

import numpy as np
import openvino as ov
from openvino import opset15

from loopscope_samples.recipes.language_layers import (
    Layer,
    Sizes,
    attention,
    gated_delta,
    gated_mlp,
    mamba2,
)
from loopscope_samples.recipes.names import scoped
from loopscope_samples.recipes.recipe import InputSet, Recipe
from loopscope_samples.recipes.token_loop import axis

Kind = Literal["gated_delta", "mamba2", "attention"]
SMALL = Sizes(width=16, heads=2, size=8)
VOCABULARY = 32


def recipes() -> list[Recipe]:
    lengths = {"twelve_tokens": 12, "forty_tokens": 40, "one_token": 1}
    words = {
        name: prompt(count, seed=number) for number, (name, count) in enumerate(lengths.items())
    }
    sound = {
        name: hidden_states(count, seed=number)
        for number, (name, count) in enumerate(lengths.items())
    }
    return [
        Recipe("mamba2", layer_model(), sound),
        Recipe("hybrid_stack", stack_model(alternating(4)), words),
    ]


def alternating(layers: int) -> tuple[Kind, ...]:
    """Gated delta net, Mamba-2, full attention, and again."""
    kinds: tuple[Kind, ...] = ("gated_delta", "mamba2", "attention")
    return tuple(kinds[number % 3] for number in range(layers))


def prompt(tokens: int, *, seed: int, vocabulary: int = VOCABULARY) -> InputSet:
    """Random words, as numbers."""
    return {"input_ids": np.random.default_rng(seed).integers(0, vocabulary, (1, tokens))}


def hidden_states(tokens: int, *, seed: int, sizes: Sizes = SMALL) -> InputSet:
    """What a Mamba-2 layer gets: random tokens, and a state that begins with zeros."""
    data = np.random.default_rng(seed).standard_normal((1, tokens, sizes.width)).astype(np.float32)
    return {
        "hidden_states": data,
        "state": np.zeros((1, sizes.heads, sizes.size, sizes.size), np.float32),
    }


def stack_model(
    kinds: Sequence[Kind], sizes: Sizes = SMALL, *, vocabulary: int = VOCABULARY, seed: int = 7
) -> ov.Model:
    """A language model: ``input_ids`` [batch, tokens] i64 to ``logits`` [batch, tokens,
    vocabulary] f32, with random weights.
    """
    random = np.random.default_rng(seed)
    ids = opset15.parameter(ov.PartialShape([-1, -1]), ov.Type.i64, name="input_ids")
    ids.output(0).get_tensor().set_names({"input_ids"})
    whole = Layer("model", sizes, random)
    table = whole.weight("embed_tokens.weight", vocabulary, sizes.width, scale=0.02)
    data = opset15.gather(table, ids, axis(0), name="model/embed_tokens")
    for number, kind in enumerate(kinds):
        scope = f"layers.{number}"
        outer = Layer(scope, sizes, random)
        mixed = _mixer(
            kind,
            Layer(f"{scope}/{_SCOPES[kind]}", sizes, random),
            outer.norm(data, "input_layernorm"),
        )
        data = opset15.add(data, mixed, name=f"{scope}/after_{_SCOPES[kind]}")
        more = gated_mlp(
            Layer(f"{scope}/mlp", sizes, random), outer.norm(data, "post_attention_layernorm")
        )
        data = opset15.add(data, more, name=f"{scope}/after_mlp")
    logits = opset15.matmul(whole.norm(data, "norm"), table, False, True, name="lm_head")
    return scoped(ov.Model([_result(logits, "logits")], [ids], "hybrid_stack"))


def layer_model(sizes: Sizes = SMALL, *, seed: int = 11) -> ov.Model:
    """One Mamba-2 layer with its state as input and output."""
    random = np.random.default_rng(seed)
    data = opset15.parameter(
        ov.PartialShape([-1, -1, sizes.width]), ov.Type.f32, name="hidden_states"
    )
    state = opset15.parameter(
        ov.PartialShape([-1, sizes.heads, sizes.size, sizes.size]), ov.Type.f32, name="state"
    )
    for node in (data, state):
        node.output(0).get_tensor().set_names({node.get_friendly_name()})
    out, last = mamba2(Layer("mamba", sizes, random), data, state)
    return scoped(
        ov.Model([_result(out, "output"), _result(last, "last_state")], [data, state], "mamba2")
    )


_SCOPES: Mapping[Kind, str] = {
    "gated_delta": "linear_attn",
    "mamba2": "mamba",
    "attention": "self_attn",
}


def _mixer(kind: Kind, layer: Layer, data: Any) -> Any:
    match kind:
        case "gated_delta":
            return gated_delta(layer, data)
        case "mamba2":
            return mamba2(layer, data)[0]
        case "attention":
            return attention(layer, data)
        case _:
            assert_never(kind)


def _result(value: Any, name: str) -> Any:
    port = value if isinstance(value, ov.Output) else value.output(0)
    port.get_tensor().set_names({name})
    return opset15.result(port, name=name)
