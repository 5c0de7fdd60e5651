"""Inputs for a model of which nothing is known but its signature: random within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import loopscope
from loopscope.checks import compared_constants, misfits
from loopscope.errors import EngineError, InputError, shorten
from loopscope.ir import ElementType, Model, PartialShape, Signature, is_of_an_array
from loopscope_app.describe.signatures import bindings, signatures

MOST_ELEMENTS = 1 << 22
"""Elements up to which an input is made up; larger ones are to be uploaded."""


class Lengths(NamedTuple):
    """What is taken where a model leaves lengths open."""

    rest: int
    first: int
    """Of the first of several axes, which is often that of a batch; of a tensor of unknown rank,
    of which two are taken.
    """

    def __str__(self) -> str:
        """In words.

        >>> str(Lengths(64, 64)), str(Lengths(64, 1))
        ('64', '64, and 1 on the first axis')
        """
        return (
            str(self.rest)
            if self.first == self.rest
            else f"{self.rest}, and {self.first} on the first axis"
        )


OPEN_LENGTHS = tuple(
    Lengths(*both) for both in ((3, 3), (1, 1), (8, 8), (64, 1), (64, 64), (256, 1), (256, 256))
)
"""To be tried in this order. Convolutions and windows ask for great lengths, and a great batch
would only take longer; but some states have their batch elsewhere, and must be as long.
"""
Shapes = tuple[tuple[int, ...], ...]
"""Of each tensor in a value: one, or those of a sequence."""
NOTHING: Mapping[str, np.ndarray] = MappingProxyType({})
MOST_BYTES = 1 << 28
"""Bytes that all inputs of a model together may take to be made up."""
TRIAL = loopscope.Limits(seconds=0.3, memory_bytes=1 << 28)
"""Of a run that is to show whether inputs fit: the models that people open have not been looked
into, and a first look takes little.
"""
_MOST_DRAWN = 9
"""The largest whole number that is drawn where nothing says otherwise."""
_TEXT_BYTES = 80
"""About what Python takes for one made-up text."""


def random_inputs(
    model: Model, seed: int, lengths: Lengths = OPEN_LENGTHS[0]
) -> dict[str, np.ndarray]:
    """An array for every input, the same for the same seed; ``InputError`` when one, or all
    together, are too large to be made up.

    ``lengths``: for where the model leaves the choice; ``lengths_by_rules`` and
    ``lengths_by_trials`` say which let it run.
    """
    made = made_up(
        {key: (one, _default_shapes(one, lengths)) for key, one in signatures(model).items()}, seed
    )
    return _with_compared_constants(model, made, seed)


def made_up_again(model: Model, given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Other random values, in the shapes of the given ones, and of usual shapes where none is
    given; errors as those of the first.
    """
    asked = signatures(model)
    made = made_up(
        {
            key: (one, shapes(given[key]) if given.get(key) is not None else _default_shapes(one))
            for key, one in asked.items()
        },
        seed,
    )
    return _with_compared_constants(model, made, seed)


def _with_compared_constants(model: Model, made: dict[str, Any], seed: int) -> dict[str, Any]:
    """Replace drawn whole numbers by a constant that the model compares the input with, such as a
    sample rate.

    A constant that can be drawn anyway (0 to 9) is left to chance.
    """
    asked = {key: one for key, one in signatures(model).items() if _is_one_integer(one, made[key])}
    constants = compared_constants(model) if asked else {}
    for key, one in asked.items():
        limits = np.iinfo(made[key].dtype)
        values = [
            value
            for value in constants.get(one.layer, ())
            if not 0 <= value <= _MOST_DRAWN and limits.min <= value <= limits.max
        ]
        if values:
            made[key] = np.full_like(made[key], values[seed % len(values)])
    return made


def _is_one_integer(one: Signature, value: Any) -> bool:
    """True for a tensor of one whole number of a type that numpy has."""
    return (
        "sequence" not in one.form
        and isinstance(value, np.ndarray)
        and value.size == 1
        and value.dtype.kind in "iu"
    )


def shapes(value: Any) -> Shapes:
    """The shape of a tensor, or those of a sequence's."""
    return tuple(np.shape(one) for one in value) if isinstance(value, tuple) else (np.shape(value),)


def made_up(asked: Mapping[str, tuple[Signature, Shapes]], seed: int) -> dict[str, Any]:
    """Random values in these shapes; ``InputError`` at the first input that is too large, or
    with which all are that together.
    """
    taken = 0
    for one, of_all in asked.values():
        for shape in of_all:
            _check_alone(one, shape)
            taken += math.prod(shape) * _element_bytes(one)
            if taken > MOST_BYTES:
                raise InputError(
                    f"input '{shorten(one.name)}' of shape {_written(shape)} would bring the made-up inputs to {taken:,} bytes, "
                    f"more than the {MOST_BYTES:,} that they may take together: upload them as an .npz file"
                )
    return {
        key: _value(one, of_all, seed + position)
        for position, (key, (one, of_all)) in enumerate(asked.items())
    }


def _default_shapes(one: Signature, lengths: Lengths = OPEN_LENGTHS[0]) -> Shapes:
    """Of two tensors for a sequence (ONNX), else of one."""
    return (default_shape(one.shape, lengths),) * (2 if "sequence" in one.form else 1)


def _value(one: Signature, of_all: Shapes, seed: int) -> Any:
    drawn = tuple(random_input(one, shape, seed + number) for number, shape in enumerate(of_all))
    return drawn if "sequence" in one.form else drawn[0]


def _check_alone(one: Signature, shape: Sequence[int]) -> None:
    if not is_of_an_array(shape):
        raise InputError(
            f"input '{shorten(one.name)}' has the shape {_written(shape)}, which no array can have"
        )
    elements = math.prod(shape)
    if elements > MOST_ELEMENTS:
        raise InputError(
            f"input '{shorten(one.name)}' of shape {_written(shape)} has {elements:,} elements: upload it as an .npy file"
        )


def _written(shape: Sequence[int]) -> str:
    return shorten(str(list(shape)))


def _element_bytes(one: Signature) -> int:
    element_type = one.element_type or ElementType.F32
    return _TEXT_BYTES if element_type is ElementType.STRING else element_type.dtype.itemsize


def has_open_lengths(model: Model) -> bool:
    """Whether a run depends on a length that is ours to choose."""
    return not all(one.shape.is_static for one in model.inputs)


def lengths_by_rules(model: Model) -> Lengths:
    """The first of ``OPEN_LENGTHS`` with which the fewest operations are at odds, by their rules
    for shapes: nothing runs.
    """
    fewest: tuple[int, Lengths] | None = None
    for lengths in OPEN_LENGTHS if has_open_lengths(model) else ():
        shapes = [default_shape(one.shape, lengths) for one in model.inputs]
        if not all(is_of_an_array(shape) and math.prod(shape) <= MOST_ELEMENTS for shape in shapes):
            continue
        at_odds = misfits(model, shapes)
        if not at_odds:
            return lengths
        if fewest is None or at_odds < fewest[0]:
            fewest = at_odds, lengths
    return fewest[1] if fewest else OPEN_LENGTHS[0]


def lengths_by_trials(
    model: Model,
    seed: int,
    trying: Callable[[Lengths], bool] = lambda _: True,
    given: Mapping[str, np.ndarray] = NOTHING,
) -> Lengths:
    """The first of ``OPEN_LENGTHS`` with which nothing fails in the first moments of a run, else
    the first of all.

    ``trying``: told each before it is tried; False ends the search. ``given``: values of inputs
    that are not made up.
    """
    try:
        for lengths in OPEN_LENGTHS:
            if not trying(lengths):
                break
            if _runs(model, {**random_inputs(model, seed, lengths), **given}):
                return lengths
    except EngineError:  # the model itself is at fault, or the greater lengths are too great
        pass
    return OPEN_LENGTHS[0]


def _runs(model: Model, inputs: Mapping[str, np.ndarray]) -> bool:
    """Whether a run does not fail within its first moments."""
    debugger = loopscope.Debugger(model, bindings(model, inputs), limits=TRIAL)
    debugger.run()
    return debugger.state != "failed"


def default_shape(shape: PartialShape, lengths: Lengths = OPEN_LENGTHS[0]) -> tuple[int, ...]:
    """A concrete shape that a partial shape allows, with lengths for where it leaves the choice.

    >>> default_shape(PartialShape.parse("2,?,5..")), default_shape(PartialShape.parse("?,?"), Lengths(64, 1))
    ((2, 3, 5), (1, 64))
    """
    if shape.dimensions is None:
        return (lengths.first, lengths.rest)
    several = len(shape.dimensions) > 1
    chosen = (
        lengths.rest if axis or not several else lengths.first
        for axis in range(len(shape.dimensions))
    )
    return tuple(
        one.length if one.is_static else max(one.least, min(length, one.most or length))
        for one, length in zip(shape.dimensions, chosen, strict=True)
    )


def random_input(
    one: Signature, shape: Sequence[int], seed: int, least: float = -1.0, most: float = 1.0
) -> np.ndarray:
    """Random numbers of an input's type; integers come from 0 to 9 unless the bounds say
    otherwise.
    """
    _check_alone(one, shape)
    element_type = one.element_type or ElementType.F32
    random = np.random.default_rng(seed)
    if element_type is ElementType.STRING:
        return np.array(
            [f"text {number}" for number in range(math.prod(shape))], dtype=object
        ).reshape(shape)
    if element_type is ElementType.BOOLEAN:
        return np.asarray(random.random(tuple(shape)) < 0.5)
    if element_type.is_float and not element_type.dtype.names:
        return np.asarray(random.uniform(least, most, tuple(shape))).astype(element_type.dtype)
    low, high = (0, _MOST_DRAWN) if (least, most) == (-1.0, 1.0) else (int(least), int(most))
    high = min(high, (1 << element_type.bits - (1 if element_type.is_signed else 0)) - 1)
    numbers = random.integers(min(low, high), high, tuple(shape), endpoint=True)
    if element_type.dtype.names:
        return numbers.astype(np.uint8).view(element_type.dtype)
    return np.asarray(numbers).astype(element_type.dtype)
