"""The samples of language models against their recurrences in plain numpy, f64, with the weights
that lie in the files.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import loopscope
import loopscope_samples
from loopscope.ir.address import nodes

Array = np.ndarray
MIXERS = {"linear_attn", "mamba", "self_attn"}


def _weights(name: str) -> dict[str, Array]:
    """The constants of a sample's outermost graph, by their names, f64."""
    sample = loopscope_samples.sample(name)
    assert sample is not None
    found = {
        node.name: node.constant
        for address, node in nodes(loopscope.read_model(sample.model))
        if address.count("/") == 1
    }
    return {
        name: np.asarray(constant.array(), np.float64)
        for name, constant in found.items()
        if constant is not None
    }


class Scope:
    """The weights under one scope of names, and the layers made of them; data is [tokens,
    width].
    """

    def __init__(self, weights: Mapping[str, Array], scope: str) -> None:
        self.weights, self.scope = weights, scope

    def __getitem__(self, name: str) -> Array:
        return self.weights[f"{self.scope}/{name}"]

    def linear(self, data: Array, name: str) -> Array:
        return np.asarray(data @ self[f"{name}.weight"].T)

    def convolved(self, data: Array) -> Array:
        kernel = self["conv1d.weight"][:, 0, 0]
        padded = np.concatenate([np.zeros((kernel.shape[1] - 1, data.shape[1])), data])
        return _silu(
            np.stack(
                [
                    (padded[token : token + kernel.shape[1]] * kernel.T).sum(0)
                    for token in range(len(data))
                ]
            )
        )

    def forgetting(self, data: Array, name: str) -> tuple[Array, Array]:
        step = np.log1p(np.exp(self.linear(data, name) + self["dt_bias"][:, 0]))
        return step * self["A"][:, 0], step

    def gated_delta(self, data: Array) -> Array:
        heads = len(self["A"])
        q, k, v = (
            _split(one, heads)
            for one in np.split(self.convolved(self.linear(data, "in_proj_qkv")), 3, -1)
        )
        q, k = (one / np.sqrt((one**2).sum(-1, keepdims=True) + 1e-6) for one in (q, k))
        g, _ = self.forgetting(data, "in_proj_a")
        beta = 1 / (1 + np.exp(-self.linear(data, "in_proj_b")))
        state, out = np.zeros((heads, q.shape[-1], v.shape[-1])), np.zeros_like(v)
        for token in range(len(data)):
            state = state * np.exp(g[token])[:, None, None]
            missing = v[token] - np.einsum("hkv,hk->hv", state, k[token])
            state = state + np.einsum("hk,hv->hkv", k[token], missing * beta[token][:, None])
            out[token] = np.einsum("hkv,hk->hv", state, q[token] / np.sqrt(q.shape[-1]))
        return self.linear(
            _norm(out).reshape(len(data), -1) * _silu(self.linear(data, "in_proj_z")), "out_proj"
        )

    def mamba2(self, data: Array, state: Array | None = None) -> tuple[Array, Array]:
        heads = len(self["A"])
        inner = self["out_proj.weight"].shape[1]
        size = inner // heads
        mixed = self.convolved(self.linear(data, "in_proj_xbc"))
        x, b, c = (
            _split(mixed[:, :inner], heads),
            mixed[:, inner : inner + size],
            mixed[:, inner + size :],
        )
        g, step = self.forgetting(data, "in_proj_dt")
        state, out = np.zeros((heads, size, size)) if state is None else state, np.zeros_like(x)
        for token in range(len(data)):
            state = state * np.exp(g[token])[:, None, None] + np.einsum(
                "hp,n->hpn", x[token] * step[token][:, None], b[token]
            )
            out[token] = state @ c[token] + self["D"][:, 0] * x[token]
        gated = out.reshape(len(data), -1) * _silu(self.linear(data, "in_proj_z"))
        return self.linear(_norm(gated), "out_proj"), state

    def attention(self, data: Array, heads: int) -> Array:
        q, k, v = (_split(self.linear(data, f"{one}_proj"), heads) for one in "qkv")
        scores = np.einsum("shd,thd->hst", q, k) / np.sqrt(q.shape[-1])
        scores = np.where(np.tri(len(data), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return self.linear(
            np.einsum("hst,thd->shd", weights / weights.sum(-1, keepdims=True), v).reshape(
                len(data), -1
            ),
            "o_proj",
        )

    def mlp(self, data: Array) -> Array:
        return self.linear(
            _silu(self.linear(data, "gate_proj")) * self.linear(data, "up_proj"), "down_proj"
        )


def _silu(data: Array) -> Array:
    return np.asarray(data / (1 + np.exp(-data)))


def _norm(data: Array) -> Array:
    return np.asarray(data / np.sqrt((data**2).mean(-1, keepdims=True) + 1e-6))


def _split(data: Array, heads: int) -> Array:
    return data.reshape(len(data), heads, -1)


def _mixed(weights: Mapping[str, Array], scope: str, data: Array) -> Array:
    (kind,) = {name.split("/")[1] for name in weights if name.startswith(f"{scope}/")} & MIXERS
    layer = Scope(weights, f"{scope}/{kind}")
    if kind == "self_attn":
        return layer.attention(data, heads=2)
    return layer.gated_delta(data) if kind == "linear_attn" else layer.mamba2(data)[0]


def _ran(name: str, chosen: str) -> tuple[dict[str, Array], Mapping[str, Array]]:
    """The inputs of one of a sample's sets, and what we make of them."""
    sample = loopscope_samples.sample(name)
    assert sample is not None
    inputs = next(one for one in sample.sets if one.name == chosen).arrays()
    return inputs, loopscope.run(loopscope.read_model(sample.model), inputs).named


@pytest.mark.parametrize("chosen", ["twelve_tokens", "forty_tokens", "one_token"])
def test_mamba2_is_the_recurrence(chosen: str) -> None:
    inputs, outputs = _ran("mamba2", chosen)
    output, last = Scope(_weights("mamba2"), "mamba").mamba2(
        inputs["hidden_states"][0].astype(np.float64), inputs["state"][0]
    )
    np.testing.assert_allclose(outputs["output"][0], output, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outputs["last_state"][0], last, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("chosen", ["twelve_tokens", "forty_tokens", "one_token"])
def test_the_hybrid_stack_is_its_recurrences(chosen: str) -> None:
    inputs, outputs = _ran("hybrid_stack", chosen)
    weights = _weights("hybrid_stack")
    data = weights["model/embed_tokens.weight"][inputs["input_ids"][0]]
    for number in range(4):
        data = data + _mixed(weights, f"layers.{number}", _norm(data))
        data = data + Scope(weights, f"layers.{number}/mlp").mlp(_norm(data))
    logits = _norm(data) @ weights["model/embed_tokens.weight"].T
    np.testing.assert_allclose(outputs["logits"][0], logits, rtol=1e-5, atol=1e-6)
