"""A sentence about generated inputs: constants of the model, and random values."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np

from loopscope.checks import compared_constants
from loopscope.errors import shorten
from loopscope.ir import LayerId, Model
from loopscope_app.describe.signatures import signatures

_constants: WeakKeyDictionary[Model, Mapping[LayerId, tuple[int, ...]]] = WeakKeyDictionary()


def generated_words(model: Model, inputs: Mapping[str, np.ndarray]) -> str:
    """Return how the inputs were generated, with the inputs that are constants of the model."""
    names = [
        f"{shorten(name, 40)} = {int(array.reshape(-1)[0])}"
        for name, array in _from_constants(model, inputs).items()
    ]
    random = "random values, the same each time"
    if not names:
        return random.capitalize()
    verb = "is a constant" if len(names) == 1 else "are constants"
    rest = f"; the others are {random}" if len(names) < len(inputs) else ""
    return f"{', '.join(names)} {verb} that the model compares with{rest}"


def _from_constants(model: Model, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs whose only element is a constant that the model compares them with."""
    constants = _constants.get(model)
    if constants is None:
        constants = _constants[model] = compared_constants(model)
    return {
        name: array
        for name, signature in signatures(model).items()
        if isinstance(array := inputs.get(name), np.ndarray)
        and array.size == 1
        and array.dtype.kind in "iu"
        and int(array.reshape(-1)[0]) in constants.get(signature.layer, ())
    }
