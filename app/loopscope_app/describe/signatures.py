"""Names of a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loopscope.errors import InputError
from loopscope.ir import Model, Signature


def signatures(model: Model) -> dict[str, Signature]:
    """Return the model's inputs by a unique key: the tensor name if there is one, and the position
    if names repeat.
    """
    by_name: dict[str, Signature] = {}
    for signature in model.inputs:
        by_name.setdefault(next(iter(signature.names), signature.name), signature)
    if len(by_name) < len(model.inputs):
        return {
            f"{signature.name} (input {position})": signature
            for position, signature in enumerate(model.inputs)
        }
    return by_name


def bindings(model: Model, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the arrays in the model's order, as ``loopscope.run`` requires."""
    return [inputs[key] for key in signatures(model)]


def bindings_of_other(
    model: Model, inputs: Mapping[str, np.ndarray], other: Model
) -> list[np.ndarray]:
    """Return the arrays in another model's order: by name if all names are equal, else by position.

    Raise ``InputError`` if the other model has more or fewer inputs.
    """
    own, names = bindings(model, inputs), list(signatures(other))
    if len(names) != len(own):
        raise InputError(
            f"the other model has {len(names)} inputs, this one {len(own)}: "
            "their runs cannot be compared"
        )
    return [inputs[name] for name in names] if set(names) == set(signatures(model)) else own
