"""Inputs for a model of which nothing is known but its signature: random within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

import engine
from app.describe.signatures import bindings, signatures
from engine.check import misfits
from engine.errors import EngineError, InputError, shorten
from engine.ir import ElementType, Model, PartialShape, Signature, is_of_an_array

MOST_ELEMENTS = 1 << 22
"""Elements up to which an input is made up; larger ones are to be uploaded."""
OPEN_LENGTHS = (3, 1, 8, 64, 256)
"""Lengths to try where a model leaves them open; convolutions and windows ask for great ones."""
UNKNOWN_RANK = 2
NOTHING: Mapping[str, np.ndarray] = MappingProxyType({})
TRIAL_SECONDS = 0.3
"""Of a run that is to show whether inputs fit."""


def random_inputs(model: Model, seed: int, length: int = OPEN_LENGTHS[0]) -> dict[str, np.ndarray]:
    """An array for every input, the same for the same seed; ``InputError`` when one is too large to be made up.

    ``length``: for where the model leaves the choice; ``length_by_rules`` and ``length_by_trials`` say which lets it run.
    """
    return {key: _made_up(one, seed + position, length) for position, (key, one) in enumerate(signatures(model).items())}


def has_open_lengths(model: Model) -> bool:
    """Whether a run depends on a length that is ours to choose."""
    return not all(one.shape.is_static for one in model.inputs)


def length_by_rules(model: Model) -> int:
    """The first of ``OPEN_LENGTHS`` with which the fewest operations are at odds, by their rules for shapes: nothing runs."""
    fewest: tuple[int, int] | None = None
    for length in OPEN_LENGTHS if has_open_lengths(model) else ():
        shapes = [default_shape(one.shape, length) for one in model.inputs]
        if not all(is_of_an_array(shape) and math.prod(shape) <= MOST_ELEMENTS for shape in shapes):
            continue
        at_odds = misfits(model, shapes)
        if not at_odds:
            return length
        if fewest is None or at_odds < fewest[0]:
            fewest = at_odds, length
    return fewest[1] if fewest else OPEN_LENGTHS[0]


def length_by_trials(
    model: Model, seed: int, trying: Callable[[int], bool] = lambda _: True, given: Mapping[str, np.ndarray] = NOTHING
) -> int:
    """The first of ``OPEN_LENGTHS`` with which nothing fails in the first moments of a run, else the first of all.

    ``trying``: told each length before it is tried; False ends the search. ``given``: values of inputs that are not made up.
    """
    try:
        for length in OPEN_LENGTHS:
            if not trying(length):
                break
            if _runs(model, {**random_inputs(model, seed, length), **given}):
                return length
    except EngineError:  # the model itself is at fault, or the greater lengths are too great
        pass
    return OPEN_LENGTHS[0]


def _runs(model: Model, inputs: Mapping[str, np.ndarray]) -> bool:
    """Whether a run does not fail within its first moments."""
    debugger = engine.Debugger(model, bindings(model, inputs), limits=engine.Limits(seconds=TRIAL_SECONDS))
    debugger.run()
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
