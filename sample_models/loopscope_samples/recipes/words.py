"""The words that the language decoder knows, letter by letter."""

from __future__ import annotations

import numpy as np

LETTERS = ".abcdefghijklmnopqrstuvwxyz"
"""The full stop ends a word."""
STOP = 0
WORDS = (
    "attention", "batch", "condition", "decoder", "encoder", "forward", "gradient", "hidden", "iteration", "join", "kernel", "loop",
    "merge", "norm", "output", "parameter", "query", "recurrent", "scan", "tensor", "unroll", "value", "weight",
)  # fmt: skip
"""No two begin with the same letter, so that no prompt leaves two equally likely ways."""


def encoded(word: str) -> np.ndarray:
    """A word as numbers, [1, letters]."""
    return np.array([[LETTERS.index(letter) for letter in word]], np.int64)


def padded() -> np.ndarray:
    """All words with full stops behind them, [words, letters of the longest + 1]."""
    longest = max(map(len, WORDS)) + 1
    return np.concatenate([encoded(word.ljust(longest, ".")) for word in WORDS])
