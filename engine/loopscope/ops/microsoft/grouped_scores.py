"""Scores of attention in which several query heads share a key and value head.

They are bounded, masked by position and shared out with optional sinks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.precision import computable


def sink_scores(sinks: Array | None, smooth: int, heads: int) -> Array | None:
    """Return for each head the score of an additional empty key; None without sinks."""
    if sinks is None:
        return np.zeros((heads, 1, 1), np.float32) if smooth == 1 else None
    if sinks.shape != (heads,):
        raise ValueError(f"head_sink has shape {list(sinks.shape)}, expected [{heads}]")
    return computable(sinks).reshape(heads, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRule:
    """The computation of scores and of their softmax shares."""

    scale: float
    softcap: float
    window: int
    """Number of keys that a token sees, its own included; negative for no limit."""
    causal: bool
    sinks: Array | None

    def scores(self, query: Array, key: Array, first: int, bias: Array | None) -> Array:
        """Compute scores: ``[N, S, H], [M, R, H] -> [N, S, R]``.

        The first key has the position ``first`` on the last axis of the bias.
        """
        heads, length, width = query.shape
        shared, count = key.shape[:2]
        check_elements(heads * length * count, "the scores")
        scaled = (query * np.float32(self.scale)).reshape(shared, heads // shared, length, width)
        scores = np.matmul(scaled, key.swapaxes(-1, -2)[:, None]).reshape(heads, length, count)
        if self.softcap:
            scores = np.float32(self.softcap) * np.tanh(scores / np.float32(self.softcap))
        return scores if bias is None else scores + bias[..., first : first + count]

    def shares(self, scores: Array, seen: Array) -> Array:
        """Return the softmax over the visible keys of each query, with 0 for all other keys."""
        powers = np.where(seen, scores, np.float32(-np.inf))
        top = powers.max(-1, keepdims=True, initial=-np.inf)
        top = top if self.sinks is None else np.maximum(top, self.sinks)
        powers -= np.where(np.isfinite(top), top, 0)
        np.exp(powers, out=powers)
        total = powers.sum(-1, keepdims=True)
        total += 0 if self.sinks is None else np.exp(self.sinks - top)
        powers /= np.where(total == 0, 1, total)
        return powers

    def seen(self, length: int, count: int, first: int, before: int) -> Array:
        """Return a mask of the keys that each query sees, from the first positions of both."""
        keys, queries = np.arange(first, first + count), np.arange(before, before + length)[:, None]
        visible = (keys <= queries) if self.causal else np.ones((length, count), np.bool_)
        return visible & (keys > queries - self.window) if self.window >= 0 else visible


def weighted_sum(shares: Array, value: Array) -> Array:
    """Weight the values: ``[N, S, R], [M, R, H] -> [N, S, H]``."""
    heads, length, count = shares.shape
    shared, _, width = value.shape
    grouped = shares.reshape(shared, heads // shared, length, count)
    return np.matmul(grouped, value[:, None]).reshape(heads, length, width)
