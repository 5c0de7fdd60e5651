"""The names of a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loopscope.errors import InputError
from loopscope.ir import Model, Signature


def signatures(model: Model) -> dict[str, Signature]:
    """The model's inputs, each by a unique key: its tensor name if it has one, its position when
    names repeat.
    """
    found: dict[str, Signature] = {}
    for one in model.inputs:
        found.setdefault(next(iter(one.names), one.name), one)
    if len(found) < len(model.inputs):
        return {f"{one.name} (input {position})": one for position, one in enumerate(model.inputs)}
    return found


def bindings(model: Model, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The arrays in the model's order, as ``loopscope.run`` takes them."""
    return [inputs[key] for key in signatures(model)]


def bindings_of_other(
    model: Model, inputs: Mapping[str, np.ndarray], other: Model
) -> list[np.ndarray]:
    """The arrays in another model's order: by name where it has the same, else by position;
    ``InputError`` when it takes more or fewer.
    """
    mine, names = bindings(model, inputs), list(signatures(other))
    if len(names) != len(mine):
        raise InputError(
            f"the other model takes {len(names)} inputs, this one {len(mine)}: their runs cannot be compared"
        )
    return [inputs[name] for name in names] if set(names) == set(signatures(model)) else mine
