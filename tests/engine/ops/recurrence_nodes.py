"""Nodes that are loops over time, for tests of their kernels and of their loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.quantized_nodes import Dice


def linear_attention(
    queries: int,
    keys: int,
    heads: int,
    rule: str = "gated_delta",
    *,
    batch: int = 2,
    steps: int = 5,
    per_key: bool = False,
    shared_rate: bool = False,
    past: bool = False,
    seed: int = 5,
    **fields: Any,
) -> Case:
    """``queries``, ``keys`` and ``heads``: the numbers of query, key and value heads, of 4 elements
    for queries and keys and 3 for values.
    """
    dice = Dice(seed)
    decays = heads * 4 if per_key else heads
    rates = 1 if shared_rate else heads
    inputs = [
        dice.reals(batch, steps, queries * 4),
        dice.reals(batch, steps, keys * 4) / 3,
        dice.reals(batch, steps, heads * 3),
        dice.reals(batch, heads, 4, 3) if past else None,
        -np.abs(dice.reals(batch, steps, decays)) if rule.startswith("gated") else None,
        np.abs(dice.reals(batch, steps, rates)) / 3 if rule.endswith("delta") else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"q_num_heads": queries, "kv_num_heads": heads, "update_rule": rule}
    return Case("LinearAttention", inputs, attributes, (True, True), **fields)


LINEAR_ATTENTIONS = {
    **{
        f"{rule}, {'a state' if past else 'no state'}": linear_attention(2, 2, 2, rule, past=past)
        for rule in ("linear", "gated", "delta", "gated_delta")
        for past in (False, True)
    },
    "two queries for each state": linear_attention(4, 2, 2, past=True),
    "two states for each query": linear_attention(2, 2, 4),
    "two states for each key": linear_attention(4, 2, 4),
    "a decay for each key element": linear_attention(2, 2, 2, per_key=True),
    "one rate for all heads": linear_attention(2, 2, 2, "delta", shared_rate=True),
    "no token": linear_attention(2, 2, 2, steps=0, past=True),
}


def causal_convolution(
    shape: tuple[int, ...] = (2, 3, 6),
    taps: int = 3,
    *,
    parts: str = "",
    seed: int = 7,
    opset: int = 17,
    domain: str = "com.microsoft",
    **attributes: Any,
) -> Case:
    """``parts``: of bias and state those whose letter it has."""
    dice = Dice(seed)
    last = bool(attributes.get("channels_last"))
    channels = int(np.prod(shape[2:])) if last else shape[1]
    reach = (taps - 1) * int(attributes.get("dilation", 1))
    state = (shape[0], reach, *shape[2:]) if last else (*shape[:2], reach)
    inputs = [
        dice.reals(*shape),
        dice.reals(channels, 1, taps),
        dice.reals(channels) if "b" in parts else None,
        dice.reals(*state) if "s" in parts else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    return Case("CausalConvWithState", inputs, attributes, (True, True), opset=opset, domain=domain)


CAUSAL_CONVOLUTIONS = {
    **{
        f"with {parts or 'nothing else'}, {activation}": causal_convolution(
            parts=parts, activation=activation
        )
        for parts in ("", "b", "s", "bs")
        for activation in ("none", "silu", "swish")
    },
    "dilated": causal_convolution(parts="bs", dilation=2),
    "shorter than its taps": causal_convolution((1, 3, 1), 4, parts="s"),
    "one tap": causal_convolution(taps=1),
    "channels last": causal_convolution((2, 6, 3), parts="bs", channels_last=1),
    "two axes of channels": causal_convolution((2, 6, 3, 2), parts="bs", channels_last=1),
}


def ragged_convolution(*, capacity: int = 0, bias: bool = False, **attributes: Any) -> Case:
    """Sequences of 2, 1 and 4 tokens."""
    dice = Dice(9)
    reach = 2 * int(attributes.get("dilation", 1))
    inputs = [
        dice.reals(7, 4),
        dice.reals(4, 1, 3),
        np.array([0, 2, 3, 7], np.int32),
        dice.reals(4) if bias else None,
        dice.reals(3, 4, reach),
        *([np.array([9, 0, 2], np.int32)] if capacity else []),
    ]
    if capacity:
        attributes["state_update_capacity"] = capacity
    outputs = (True, True, True) if capacity else (True, True)
    return Case("VarlenCausalConvWithState", inputs, attributes, outputs)


RAGGED_CONVOLUTIONS = {
    "plain": ragged_convolution(),
    "with a bias": ragged_convolution(bias=True, activation="silu"),
    "dilated": ragged_convolution(dilation=2),
    "with updates": ragged_convolution(capacity=3),
}


def gated_delta_net(
    rule: str = "gated_delta",
    *,
    ragged: bool = True,
    packed: bool = False,
    per_key: bool = False,
    gate: str = "none",
    capacity: int = 0,
    heads: int = 4,
    **attributes: Any,
) -> Case:
    """Two sequences of 2 and 4 tokens, or of 3 tokens each in ``[batch, tokens]``."""
    dice = Dice(11)
    leading = (6,) if ragged else (2, 3)
    query, key, value = (
        dice.reals(*leading, count, size) / 2 for count, size in ((2, 4), (2, 4), (heads, 3))
    )
    decay = -np.abs(dice.reals(*leading, heads, *([4] if per_key else [])))
    beta = np.abs(dice.reals(*leading, heads)) / 3
    state = dice.reals(2, heads, 3, 4)
    gates = gate != "none"
    joined = np.concatenate([part.reshape(*leading, -1) for part in (query, key, value)], axis=-1)
    inputs = [
        joined if packed else query,
        None if packed else key,
        None if packed else value,
        np.array([0, 2, 6], np.int32) if ragged else None,
        decay if rule.startswith("gated") else None,
        beta if rule.endswith("delta") else None,
        state,
        dice.reals(heads) if gates else None,
        dice.reals(heads) if gates else None,
        np.array([2, 1], np.int32) if capacity else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    named = {"update_rule": rule, "gate_activation": gate, **attributes}
    if capacity:
        named["state_update_capacity"] = capacity
    outputs = (True, True)
    return Case("GatedDeltaNet", inputs, named, outputs)


GATED_DELTA_NETS = {
    **{rule: gated_delta_net(rule) for rule in ("linear", "gated", "delta", "gated_delta")},
    "by batch": gated_delta_net(ragged=False),
    "side by side": gated_delta_net(packed=True),
    "as many keys as values": gated_delta_net(heads=2),
    "a decay for each key element": gated_delta_net(per_key=True),
    "normalized": gated_delta_net(qk_l2_norm=1),
    "a gate of softplus": gated_delta_net(gate="softplus"),
    "a gate of softplus for each key element": gated_delta_net(gate="softplus", per_key=True),
    "a gate of qwen": gated_delta_net(gate="qwen", beta_activation="sigmoid"),
    "a gate of sigmoid": gated_delta_net(gate="sigmoid"),
    "a scale": gated_delta_net(scale=0.3),
}


def attention_lstm(
    direction: str = "forward", *, parts: str = "", weights: bool = True, **attributes: Any
) -> Case:
    """``parts``: of bias, lengths, hidden, cell, peepholes and memory lengths those whose letter it
    has.
    """
    dice = Dice(13)
    directions, steps, batch, width, size = 2 if direction == "bidirectional" else 1, 5, 2, 4, 3
    depth, read = 6, 2 if weights else 6
    optional = {
        "b": dice.reals(directions, 8 * size),
        "l": np.array([5, 3], np.int32),
        "h": dice.reals(directions, batch, size),
        "c": dice.reals(directions, batch, size),
        "p": dice.reals(directions, 3 * size),
    }
    inputs = [
        dice.reals(steps, batch, width),
        dice.reals(directions, 4 * size, width + read) / 2,
        dice.reals(directions, 4 * size, size) / 2,
        *(value if name in parts else None for name, value in optional.items()),
        dice.reals(directions, size, 5),
        dice.reals(directions, depth, 5),
        dice.reals(directions, 5),
        dice.reals(batch, 7, depth),
        np.array([7, 4], np.int32) if "m" in parts else None,
        dice.reals(directions, depth + size, read) if weights else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    names = ["sigmoid", "tanh", "tanh"] * directions
    fields = {"direction": direction, "hidden_size": size, "activations": names, **attributes}
    return Case("AttnLSTM", inputs, fields, (True, True, True))


ATTENTION_LSTMS = {
    **{
        f"{direction}, {parts or 'nothing else'}": attention_lstm(direction, parts=parts)
        for direction in ("forward", "reverse", "bidirectional")
        for parts in ("", "b", "bm", "blm")
    },
    "states": attention_lstm(parts="bhcm"),
    "peepholes": attention_lstm(parts="bp"),
    "without an attention layer": attention_lstm(parts="bm", weights=False),
}
