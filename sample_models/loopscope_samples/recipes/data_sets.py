"""Data sets of 2,000 inputs: one input of a model with branches says little of the others."""

from __future__ import annotations

import numpy as np

from loopscope_samples.recipes.recipe import InputSet

COUNT = 2000


def early_exit() -> InputSet:
    """Features around two classes that the small classifier knows and one that it does not; one
    bar for all of them.
    """
    random = np.random.default_rng(2000)
    centres = np.array([[2.0, -1.0, 0.5, 1.5], [-1.5, 1.0, -0.5, 1.0], [0.2, 0.1, -0.1, 0.2]])
    kinds = random.integers(0, len(centres), COUNT)
    features = centres[kinds] + random.normal(0, 0.6, (COUNT, 4))
    return {
        "features": features.astype(np.float32).reshape(COUNT, 1, 4),
        "enough": np.full(COUNT, 0.9, np.float32),
    }


def decoder() -> InputSet:
    """Sentences from each of the seven words, with a bar that some of the words do not reach and
    room for up to 24 words.
    """
    random = np.random.default_rng(2001)
    return {
        "first_word": random.integers(1, 8, COUNT),
        "least_confidence": random.uniform(0.25, 0.75, COUNT).astype(np.float32),
        "most_words": random.integers(4, 25, COUNT),
    }
