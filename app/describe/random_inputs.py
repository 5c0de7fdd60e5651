"""Inputs for a model of which nothing is known but its signature: random within bounds."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import engine
from app.describe.signatures import bindings, signatures
from engine.errors import EngineError, InputError, shorten
from engine.ir import ElementType, Model, PartialShape, Signature, is_of_an_array

MOST_ELEMENTS = 1 << 22
"""Elements up to which an input is made up; larger ones are to be uploaded."""
OPEN_LENGTHS = (3, 1, 8, 64, 256)
"""Lengths to try where a model leaves them open; convolutions and windows ask for great ones."""
TRIAL_SECONDS = 0.3
UNKNOWN_RANK = 2


def random_inputs(model: Model, seed: int) -> dict[str, np.ndarray]:
    """An array for every input, the same for the same seed; ``InputError`` when one is too large to be made up.

    Lengths that the model leaves open are such that nothing fails in the first moments of a run, if there are such among a few.
    """
    first = _random_inputs(model, seed, OPEN_LENGTHS[0])
    if all(one.shape.is_static for one in model.inputs):
        return first
    try:
        tries = (_random_inputs(model, seed, length) for length in OPEN_LENGTHS)
        return next((made for made in tries if _runs(model, made)), first)
    except EngineError:  # the model itself is at fault, or the greater lengths are too great
        return first


def _random_inputs(model: Model, seed: int, length: int) -> dict[str, np.ndarray]:
    return {key: _made_up(one, seed + position, length) for position, (key, one) in enumerate(signatures(model).items())}


def _runs(model: Model, inputs: Mapping[str, np.ndarray]) -> bool:
    debugger = engine.Debugger(model, bindings(model, inputs))

    def attempt() -> None:
        with contextlib.suppress(Exception):  # the state tells
            debugger.run()

    trial = threading.Thread(target=attempt, daemon=True)
    trial.start()
    trial.join(TRIAL_SECONDS)
    if trial.is_alive():
        debugger.stop()
        return True
    return debugger.state != "failed"


def _made_up(one: Signature, seed: int, length: int) -> Any:
    """Two tensors for a sequence (ONNX), else one."""
    shape = default_shape(one.shape, length)
    if "sequence" in one.form:
        return tuple(random_input(one, shape, seed + number) for number in range(2))
    return random_input(one, shape, seed)


def default_shape(shape: PartialShape, length: int = OPEN_LENGTHS[0]) -> tuple[int, ...]:
    """A concrete shape that a partial shape allows, with a length for where it leaves the choice.

    >>> default_shape(PartialShape.parse("2,?,5.."))
    (2, 3, 5)
    """
    if shape.dimensions is None:
        return (length,) * UNKNOWN_RANK
    return tuple(
        dimension.length if dimension.is_static else max(dimension.least, min(length, dimension.most or length))
        for dimension in shape.dimensions
    )


def random_input(one: Signature, shape: Sequence[int], seed: int, least: float = -1.0, most: float = 1.0) -> np.ndarray:
    """Random numbers of an input's type; integers come from 0 to 9 unless the bounds say otherwise."""
    elements = math.prod(shape)
    if not is_of_an_array(shape):
        raise InputError(f"input '{one.name}' has the shape {shorten(str(list(shape)))}, which no array can have")
    if elements > MOST_ELEMENTS:
        raise InputError(f"input '{one.name}' has {elements:,} elements: upload it as an .npy file")
    element_type = one.element_type or ElementType.F32
    random = np.random.default_rng(seed)
    if element_type is ElementType.STRING:
        return np.array([f"text {number}" for number in range(elements)], dtype=object).reshape(shape)
    if element_type is ElementType.BOOLEAN:
        return np.asarray(random.random(tuple(shape)) < 0.5)
    if element_type.is_float and not element_type.dtype.names:
        return np.asarray(random.uniform(least, most, tuple(shape))).astype(element_type.dtype)
    low, high = (0, 9) if (least, most) == (-1.0, 1.0) else (int(least), int(most))
    high = min(high, (1 << element_type.bits - (1 if element_type.is_signed else 0)) - 1)
    numbers = random.integers(min(low, high), high, tuple(shape), endpoint=True)
    if element_type.dtype.names:
        return numbers.astype(np.uint8).view(element_type.dtype)
    return np.asarray(numbers).astype(element_type.dtype)
