"""Traces of a gated delta rule: a reference, and a kernel with a fault at the border of a chunk.

The kernel computes chunks of 64 tokens. It forgets the decay at the border of a chunk, so that its
state is wrong from token 64 on. The likeliest word is another one only some tokens later.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np

import loopscope

FOLDER = "delta_rule"
TOKENS, SIZE, WORDS, CHUNK = 200, 8, 24, 64
_SEED, _DECAY = 3, 0.1


def write(folder: Path) -> None:
    """Write both traces."""
    _record(folder / "reference.loopscope", forgets=False)
    _record(folder / "kernel.loopscope", forgets=True)


def _record(path: Path, *, forgets: bool) -> None:
    random = np.random.default_rng(_SEED)
    queries, keys, values = random.standard_normal((3, TOKENS, SIZE)).astype(np.float32)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    # The projections of a layer compute in bf16, and the state is f32.
    decays = np.exp(-_DECAY * random.random(TOKENS)).astype(ml_dtypes.bfloat16)
    betas = (1 / (1 + np.exp(-random.standard_normal(TOKENS)))).astype(ml_dtypes.bfloat16)
    words = random.standard_normal((SIZE, WORDS)).astype(np.float32)
    state = np.zeros((SIZE, SIZE), np.float32)
    with loopscope.trace(path) as trace:
        trace.record(state=state)
        for token in trace.iterations("decode", range(TOKENS)):
            key, decay, beta = keys[token], np.float32(decays[token]), np.float32(betas[token])
            trace.record(decay=decays[token], beta=betas[token])
            is_border = trace.branch("border", token % CHUNK == 0 and token > 0)
            if not (forgets and is_border):
                state = decay * state
            state = state + np.outer(key, beta * (values[token] - key @ state))
            logits = (queries[token] @ state) @ words
            trace.record(state=state, logits=logits, word=int(logits.argmax()))
