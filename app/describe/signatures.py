"""The names of a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.ir import Model, Signature


def signatures(model: Model) -> dict[str, Signature]:
    """The model's inputs, each by a unique key: its tensor name if it has one, its position when names repeat."""
    found: dict[str, Signature] = {}
    for one in model.inputs:
        found.setdefault(next(iter(one.names), one.name), one)
    if len(found) < len(model.inputs):
        return {f"{one.name} (input {position})": one for position, one in enumerate(model.inputs)}
    return found


def bindings(model: Model, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The arrays in the model's order, as ``engine.run`` takes them."""
    return [inputs[key] for key in signatures(model)]
