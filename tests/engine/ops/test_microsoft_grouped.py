"""GroupQueryAttention as ONNX Runtime computes it: prompts and tokens, caches of all kinds,
windows, sinks, positions.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_DICE = np.random.default_rng(15)


def reals(*shape: int) -> np.ndarray:
    return _DICE.normal(size=shape).astype(np.float32)


PROMPT = reals(2, 3, 64), reals(2, 3, 32), reals(2, 3, 32)
TOKEN = reals(2, 1, 64), reals(2, 1, 32), reals(2, 1, 32)
CHUNK = tuple(one[:1] for one in PROMPT)
CACHE = reals(2, 2, 5, 16), reals(2, 2, 5, 16)
ONE = tuple(one[:1] for one in CACHE)
TABLES = reals(9, 8), reals(9, 8)
NONE = (None, None)
CACHES, SCORES = (True, True, True), (True, True, True, True)


def grouped(
    new: tuple[np.ndarray | None, ...],
    past: tuple[np.ndarray | None, ...],
    last: tuple[int, ...],
    *more: np.ndarray | None,
    outputs: tuple[bool, ...] = CACHES,
    **attributes: Any,
) -> Case:
    """Four heads of queries and two of keys; the longest of the batch is as long as its last
    place says.
    """
    lengths = np.array(last, np.int32), np.array(max(last) + 1, np.int32)
    inputs = [*new, *past, *lengths, *more]
    return Case(
        "GroupQueryAttention",
        inputs,
        {"num_heads": 4, "kv_num_heads": 2, **attributes},
        outputs,
        atol=5e-6,
    )


def packed(length: int) -> tuple[np.ndarray | None, ...]:
    return reals(2, length, 128), None, None


def quantized(kind: str, bits: int, new: tuple[np.ndarray, ...], last: tuple[int, ...]) -> Case:
    scale = (
        np.array([0.05], np.float32)
        if kind == "PER_TENSOR"
        else (np.abs(reals(1, 2, 1, 16)) / 20 + 0.02).astype(np.float32)
    )
    dtype, width = (np.int8, 16) if bits == 8 else (np.uint8, 8)
    past = tuple(_DICE.integers(0, 100, (len(new[0]), 2, 5, width)).astype(dtype) for _ in range(2))
    named: dict[str, Any] = {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits}
    return grouped(new, past, last, *[None] * 5, scale, scale, **named)


POSITIONS = np.array([[3, 4, 5], [2, 1, 0]])
CASES = {
    "prompt": grouped(PROMPT, NONE, (2, 2)),
    "prompt, alone": grouped(PROMPT, NONE, (2, 2), outputs=(True,)),
    "prompt with padding": grouped(PROMPT, NONE, (2, 1)),
    "prompt into a buffer": grouped(PROMPT, CACHE, (2, 2)),
    "prompt, packed": grouped(packed(3), NONE, (2, 2)),
    "token": grouped(TOKEN, CACHE, (5, 5)),
    "token, other lengths": grouped(TOKEN, CACHE, (5, 3)),
    "token into a buffer": grouped(TOKEN, CACHE, (3, 2)),
    "three tokens": grouped(CHUNK, ONE, (7,)),
    "turned": grouped(PROMPT, NONE, (2, 1), *TABLES, do_rotary=1),
    "turned, packed": grouped(packed(3), NONE, (2, 2), *TABLES, do_rotary=1),
    "token turned, neighbours": grouped(
        packed(1), CACHE, (5, 4), *TABLES, do_rotary=1, rotary_interleaved=1
    ),
    "prompt turned from a position on": grouped(
        PROMPT, NONE, (2, 2), *TABLES, POSITIONS, do_rotary=1
    ),
    "tokens turned by positions": grouped(CHUNK, ONE, (7,), *TABLES, POSITIONS[:1], do_rotary=1),
    "token turned by positions": grouped(
        TOKEN, CACHE, (5, 4), *TABLES, POSITIONS[:, :1], do_rotary=1
    ),
    "bias": grouped(
        PROMPT, NONE, (2, 2), None, None, None, reals(2, 4, 3, 3), outputs=SCORES, qk_output=1
    ),
    "bias of a token": grouped(
        TOKEN, CACHE, (5, 5), None, None, None, reals(1, 4, 1, 6), outputs=SCORES, qk_output=2
    ),
    "bias of a token, all heads": grouped(
        TOKEN, CACHE, (5, 3), None, None, None, reals(2, 1, 1, 6)
    ),
    "sinks": grouped(PROMPT, NONE, (2, 2), *[None] * 4, reals(4)),
    "great sinks": grouped(PROMPT, NONE, (2, 2), *[None] * 4, reals(4) * 9),
    "smooth": grouped((PROMPT[0], PROMPT[1] * -9, PROMPT[2]), NONE, (2, 2), smooth_softmax=1),
    "capped, and a bias": grouped(
        PROMPT,
        NONE,
        (2, 2),
        None,
        None,
        None,
        reals(1, 1, 3, 3),
        outputs=SCORES,
        qk_output=1,
        softcap=0.7,
    ),
    "both ways": grouped(PROMPT, NONE, (2, 1), causal=0),
    "both ways, token": grouped(TOKEN, CACHE, (5, 3), causal=0),
    "scale": grouped(PROMPT, NONE, (2, 2), scale=0.8),
    **{
        f"window of {width}": grouped(PROMPT, NONE, (2, 2), local_window_size=width)
        for width in (0, 1, 2, 5)
    },
    **{
        f"window of {width}, tokens": grouped(CHUNK, ONE, (7,), local_window_size=width)
        for width in (0, 1, 2, 5)
    },
    **{
        f"cache of {bits} bits, {kind}": quantized(kind, bits, new, last)
        for bits in (8, 4)
        for kind in ("PER_TENSOR", "PER_CHANNEL")
        for new, last in ((TOKEN, (5, 3)),)
    },
    "three tokens, cache of 4 bits": quantized("PER_CHANNEL", 4, CHUNK, (7,)),
    "three tokens, cache of 8 bits": quantized("PER_TENSOR", 8, CHUNK, (7,)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    case.agree()


ROOM, WINDOW = 7, 4


def _resident(tokens: int) -> int:
    """By the documentation of the windowed cache."""
    going = ROOM - WINDOW + 1
    return tokens if tokens <= ROOM else tokens - going * math.ceil((tokens - ROOM) / going)


@pytest.mark.parametrize(
    ("tokens", "new"),
    [(1, 1), (6, 1), (7, 1), (8, 1), (13, 1), (20, 1), (9, 3), (12, 5), (14, 9), (5, 5), (11, 11)],
)
def test_a_cache_of_the_last_tokens(tokens: int, new: int) -> None:
    """The rows after those that it holds are unspecified."""
    queries = reals(1, new, 64), reals(1, new, 32), reals(1, new, 32)
    past = reals(1, 2, ROOM, 16), reals(1, 2, ROOM, 16)
    case = grouped(queries, past, (tokens - 1,), local_window_size=WINDOW, sliding_window_cache=1)
    held = _resident(tokens)
    for mine, theirs in zip(case.here(), case.there(), strict=True):
        assert mine.shape == theirs.shape
        shown = slice(None) if mine.ndim == 3 else slice(held)
        np.testing.assert_allclose(mine[..., shown, :], theirs[..., shown, :], rtol=2e-5, atol=5e-6)


REFUSED = {
    "heads that do not share": (
        grouped(PROMPT, NONE, (2, 2), kv_num_heads=3),
        "4 heads of queries are not a multiple of 3",
    ),
    "keys without values": (grouped((*PROMPT[:2], None), NONE, (2, 2)), "keys come with values"),
    "no tables": (grouped(PROMPT, NONE, (2, 2), do_rotary=1), "cos_cache or sin_cache is left out"),
    "normalized queries": (
        grouped(PROMPT, NONE, (2, 2), *[None] * 7, reals(16), reals(16)),
        "q_norm_weight or k_norm_weight is given",
    ),
    "a window both ways": (
        grouped(PROMPT, NONE, (2, 2), causal=0, local_window_size=2),
        "local_window_size is 2 where causal is 0",
    ),
    "sinks of another length": (
        grouped(PROMPT, NONE, (2, 2), *[None] * 4, reals(3)),
        "head_sink has shape [3], expected [4]",
    ),
    "too long a past": (
        grouped(TOKEN, CACHE, (8, 8)),
        "8 tokens come before the new ones, and the cache has room for 5",
    ),
    "a window larger than the cache": (
        grouped(TOKEN, CACHE, (3, 3), local_window_size=6, sliding_window_cache=1),
        "local_window_size is 6 and the cache of 5 places",
    ),
    "a quantized cache without a scale": (
        grouped(TOKEN, CACHE, (3, 3), k_quant_type="PER_TENSOR"),
        "8 bits without a scale",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=re.escape(problem)):
        case.here()
