"""Inputs as short words: the numbers in which two sets of inputs differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from loopscope.errors import elided
from loopscope.ir import Model, significant
from loopscope_app.describe.signatures import signatures

_MOST_NAMED = 3
_LONGEST_NAME = 30


def input_words(
    model: Model, inputs: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]
) -> str:
    """Return the inputs that differ from ``others``, such as ``number = 3``.

    Return an empty text if none differs, if one of them is not a number, or if many differ.
    """
    words: list[str] = []
    for key, signature in signatures(model).items():
        own, other = inputs.get(key), others.get(key)
        if own is None or (other is not None and _same(np.asarray(own), np.asarray(other))):
            continue
        array = np.asarray(own)
        if array.size != 1 or array.dtype.kind not in "biuf":
            return ""
        name = elided(next(iter(signature.names), signature.name), _LONGEST_NAME)
        words.append(f"{name} = {significant(array.reshape(-1)[0], 6)}")
    return ", ".join(words) if len(words) <= _MOST_NAMED else ""


def varying_first(names: Iterable[str], sets: Iterable[Mapping[str, np.ndarray]]) -> list[str]:
    """Return the names of inputs in their order, those last that have one value in all sets."""
    first, *others = sets
    return sorted(
        names,
        key=lambda name: (
            name in first
            and all(
                name in arrays and _same(np.asarray(first[name]), np.asarray(arrays[name]))
                for arrays in others
            )
        ),
    )


def _same(own: np.ndarray, other: np.ndarray) -> bool:
    return (
        own.shape == other.shape and own.dtype == other.dtype and own.tobytes() == other.tobytes()
    )
