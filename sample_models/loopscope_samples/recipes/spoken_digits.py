"""Sounds for the speech decoder: each digit is a pattern of frames over bands, and digits follow
each other at an uneven pace.
"""

from __future__ import annotations

import numpy as np

DIGITS, END, START = 10, 10, 11
BANDS, FRAMES, MOST = 8, 4, 5
PATTERNS = np.random.default_rng(0).normal(0, 1, (DIGITS, FRAMES, BANDS)).astype(np.float32)


def transcripts(random: np.random.Generator, count: int) -> np.ndarray:
    """What is said: up to ``MOST`` digits each, with ``END`` behind them; [count, MOST + 1]."""
    said = random.integers(0, DIGITS, (count, MOST + 1))
    lengths = random.integers(0, MOST + 1, (count, 1))
    return np.where(np.arange(MOST + 1) < lengths, said, END)


def spoken(random: np.random.Generator, said: np.ndarray) -> np.ndarray:
    """How it sounds, f32 [count, frames, BANDS]: pauses of one or two frames, some noise, and
    silence to the end.
    """
    frames = MOST * (FRAMES + 2) + 4
    sound = random.normal(0, 0.2, (len(said), frames, BANDS)).astype(np.float32)
    for number, digits in enumerate(said):
        at = int(random.integers(1, 3))
        for digit in digits:
            if digit == END:
                break
            sound[number, at : at + FRAMES] += PATTERNS[digit]
            at += FRAMES + int(random.integers(1, 3))
    return sound
