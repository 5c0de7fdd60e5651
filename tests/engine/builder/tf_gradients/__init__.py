"""Loops of TensorFlow as graphs, and what tf.gradients says of them; ``make.py`` is how it was
asked.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
TABLE = FOLDER / "gradients.npz"
CASES = ("while_v1", "while_v2", "cond_in_while", "two_loops_and_a_weight")
"""Each a frozen graph in ``CASE.pb`` with inputs ``x`` and ``w`` and the output ``loss``."""


def arguments() -> dict[str, np.ndarray]:
    """The same in every run, f32."""
    random = np.random.default_rng(5)
    return {
        "x": random.uniform(0.2, 0.9, (2, 3)).astype(np.float32),
        "w": random.uniform(-0.5, 0.5, (3, 3)).astype(np.float32),
    }
