"""Generated inputs: random values for a model of which only the signature is known."""

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
"""Number of elements up to which an input is generated; larger ones must be uploaded."""


class Lengths(NamedTuple):
    """Lengths for axes that a model leaves open."""

    rest: int
    first: int
    """Length of the first of several axes, which is often the batch.

    A tensor of unknown rank gets two axes.
    """

    def __str__(self) -> str:
        """Return the lengths as text.

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
"""Lengths to try, in this order.

Convolutions and windows need large lengths, and a large batch would only take longer. Some states
have their batch on another axis, which must be as long.
"""
Shapes = tuple[tuple[int, ...], ...]
"""Shapes of the tensors in a value: one, or those of a sequence."""
NOTHING: Mapping[str, np.ndarray] = MappingProxyType({})
MOST_BYTES = 1 << 28
"""Size limit of all generated inputs of a model together."""
TRIAL = loopscope.Limits(seconds=0.3, memory_bytes=1 << 28)
"""Limits of a trial run, which shows whether inputs fit: small, because the model is not known."""
_LARGEST_INTEGER = 9
"""Largest random integer without other bounds."""
_TEXT_BYTES = 80
"""Approximate size of a generated text in Python."""


def random_inputs(
    model: Model, seed: int, lengths: Lengths = OPEN_LENGTHS[0]
) -> dict[str, np.ndarray]:
    """Return an array for every input, equal for equal seeds.

    ``lengths`` apply where the model leaves them open; ``lengths_by_rules`` and
    ``lengths_by_trials`` find those with which it runs. Raise ``InputError`` if the inputs are too
    large.
    """
    inputs = generate(
        {
            key: (signature, _default_shapes(signature, lengths))
            for key, signature in signatures(model).items()
        },
        seed,
    )
    return _with_compared_constants(model, inputs, seed)


def regenerate(model: Model, values: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return other random values in the shapes of the given ones, or in default shapes without any.

    Raise ``InputError`` as ``random_inputs`` does.
    """
    by_key = signatures(model)
    inputs = generate(
        {
            key: (
                signature,
                shapes(values[key]) if values.get(key) is not None else _default_shapes(signature),
            )
            for key, signature in by_key.items()
        },
        seed,
    )
    return _with_compared_constants(model, inputs, seed)


def _with_compared_constants(model: Model, inputs: dict[str, Any], seed: int) -> dict[str, Any]:
    """Replace random integers by a constant that the model compares the input with, such as a
    sample rate.

    Constants from 0 to 9 are left to chance.
    """
    integers = {
        key: signature
        for key, signature in signatures(model).items()
        if _is_single_integer(signature, inputs[key])
    }
    constants = compared_constants(model) if integers else {}
    for key, signature in integers.items():
        limits = np.iinfo(inputs[key].dtype)
        values = [
            value
            for value in constants.get(signature.layer, ())
            if not 0 <= value <= _LARGEST_INTEGER and limits.min <= value <= limits.max
        ]
        if values:
            inputs[key] = np.full_like(inputs[key], values[seed % len(values)])
    return inputs


def _is_single_integer(signature: Signature, value: Any) -> bool:
    """Return True for a tensor with a single integer of a numpy type."""
    return (
        "sequence" not in signature.form
        and isinstance(value, np.ndarray)
        and value.size == 1
        and value.dtype.kind in "iu"
    )


def shapes(value: Any) -> Shapes:
    """Return the shape of a tensor, or the shapes of a sequence."""
    return (
        tuple(np.shape(tensor) for tensor in value)
        if isinstance(value, tuple)
        else (np.shape(value),)
    )


def generate(requests: Mapping[str, tuple[Signature, Shapes]], seed: int) -> dict[str, Any]:
    """Return random values in these shapes. Raise ``InputError`` if one, or all together, are too
    large.
    """
    size = 0
    for signature, each_shape in requests.values():
        for shape in each_shape:
            _check_size(signature, shape)
            size += math.prod(shape) * _element_bytes(signature)
            if size > MOST_BYTES:
                raise InputError(
                    f"input '{shorten(signature.name)}' of shape {_shape_text(shape)} would bring "
                    f"the generated inputs to {size:,} bytes, "
                    f"more than the limit of {MOST_BYTES:,}: "
                    "upload them as an .npz file"
                )
    return {
        key: _value(signature, each_shape, seed + position)
        for position, (key, (signature, each_shape)) in enumerate(requests.items())
    }


def _default_shapes(signature: Signature, lengths: Lengths = OPEN_LENGTHS[0]) -> Shapes:
    """Return two shapes for a sequence (ONNX), else one."""
    return (default_shape(signature.shape, lengths),) * (2 if "sequence" in signature.form else 1)


def _value(signature: Signature, each_shape: Shapes, seed: int) -> Any:
    drawn = tuple(
        random_input(signature, shape, seed + number) for number, shape in enumerate(each_shape)
    )
    return drawn if "sequence" in signature.form else drawn[0]


def _check_size(signature: Signature, shape: Sequence[int]) -> None:
    if not is_of_an_array(shape):
        raise InputError(
            f"input '{shorten(signature.name)}' has the shape {_shape_text(shape)}, "
            "which no array can have"
        )
    elements = math.prod(shape)
    if elements > MOST_ELEMENTS:
        raise InputError(
            f"input '{shorten(signature.name)}' of shape {_shape_text(shape)} has "
            f"{elements:,} elements: upload it as an .npy file"
        )


def _shape_text(shape: Sequence[int]) -> str:
    return shorten(str(list(shape)))


def _element_bytes(signature: Signature) -> int:
    element_type = signature.element_type or ElementType.F32
    return _TEXT_BYTES if element_type is ElementType.STRING else element_type.dtype.itemsize


def has_open_lengths(model: Model) -> bool:
    """Return True if the model leaves a length open."""
    return not all(signature.shape.is_static for signature in model.inputs)


def lengths_by_rules(model: Model) -> Lengths:
    """Return the first of ``OPEN_LENGTHS`` with the fewest violations of shape rules; nothing
    runs.
    """
    fewest: tuple[int, Lengths] | None = None
    for lengths in OPEN_LENGTHS if has_open_lengths(model) else ():
        shapes = [default_shape(signature.shape, lengths) for signature in model.inputs]
        if not all(is_of_an_array(shape) and math.prod(shape) <= MOST_ELEMENTS for shape in shapes):
            continue
        violations = misfits(model, shapes)
        if not violations:
            return lengths
        if fewest is None or violations < fewest[0]:
            fewest = violations, lengths
    return fewest[1] if fewest else OPEN_LENGTHS[0]


def lengths_by_trials(
    model: Model,
    seed: int,
    trying: Callable[[Lengths], bool] = lambda _: True,
    fixed: Mapping[str, np.ndarray] = NOTHING,
) -> Lengths:
    """Return the first of ``OPEN_LENGTHS`` with which a short run does not fail, else the first of
    all.

    ``trying`` receives each lengths before its trial; False ends the search. ``fixed`` maps inputs
    to values that are not generated.
    """
    try:
        for lengths in OPEN_LENGTHS:
            if not trying(lengths):
                break
            if _runs(model, {**random_inputs(model, seed, lengths), **fixed}):
                return lengths
    except EngineError:  # the model itself fails, or the larger lengths are too large
        pass
    return OPEN_LENGTHS[0]


def _runs(model: Model, inputs: Mapping[str, np.ndarray]) -> bool:
    """Return True if a short run does not fail."""
    debugger = loopscope.Debugger(model, bindings(model, inputs), limits=TRIAL)
    debugger.run()
    return debugger.state != "failed"


def default_shape(shape: PartialShape, lengths: Lengths = OPEN_LENGTHS[0]) -> tuple[int, ...]:
    """Return a concrete shape that a partial shape allows, with the given lengths on open axes.

    >>> default_shape(PartialShape.parse("2,?,5.."))
    (2, 3, 5)
    >>> default_shape(PartialShape.parse("?,?"), Lengths(64, 1))
    (1, 64)
    """
    if shape.dimensions is None:
        return (lengths.first, lengths.rest)
    several = len(shape.dimensions) > 1
    preferred = (
        lengths.rest if axis or not several else lengths.first
        for axis in range(len(shape.dimensions))
    )
    return tuple(
        dimension.length
        if dimension.is_static
        else max(dimension.least, min(length, dimension.most or length))
        for dimension, length in zip(shape.dimensions, preferred, strict=True)
    )


def random_input(
    signature: Signature, shape: Sequence[int], seed: int, lower: float = -1.0, upper: float = 1.0
) -> np.ndarray:
    """Return random numbers of an input's type; integers are from 0 to 9 without other bounds."""
    _check_size(signature, shape)
    element_type = signature.element_type or ElementType.F32
    random = np.random.default_rng(seed)
    if element_type is ElementType.STRING:
        return np.array(
            [f"text {number}" for number in range(math.prod(shape))], dtype=object
        ).reshape(shape)
    if element_type is ElementType.BOOLEAN:
        return np.asarray(random.random(tuple(shape)) < 0.5)
    if element_type.is_float and not element_type.dtype.names:
        return np.asarray(random.uniform(lower, upper, tuple(shape))).astype(element_type.dtype)
    low, high = (0, _LARGEST_INTEGER) if (lower, upper) == (-1.0, 1.0) else (int(lower), int(upper))
    high = min(high, (1 << element_type.bits - (1 if element_type.is_signed else 0)) - 1)
    numbers = random.integers(min(low, high), high, tuple(shape), endpoint=True)
    if element_type.dtype.names:
        return numbers.astype(np.uint8).view(element_type.dtype)
    return np.asarray(numbers).astype(element_type.dtype)
