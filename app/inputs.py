"""Inputs for a model of which nothing is known but its signature: random within bounds, or read from what a user gave."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import engine
from app.running import Running
from engine.errors import EngineError, InputError, shorten
from engine.ir.element_type import ElementType
from engine.ir.model import Model, Signature
from engine.ir.shape import PartialShape, is_of_an_array
from engine.read.archive import open_archive

MOST_ELEMENTS = 1 << 22
"""Elements up to which an input is made up; larger ones are to be uploaded."""
MOST_BYTES = 1 << 30
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
    if not Running(debugger, debugger.run).done(TRIAL_SECONDS):
        debugger.stop()
        return True
    return debugger.state != "failed"


def _made_up(one: Signature, seed: int, length: int) -> Any:
    """Two tensors for a sequence (ONNX), else one."""
    shape = default_shape(one.shape, length)
    if "sequence" in one.form:
        return tuple(random_input(one, shape, seed + number) for number in range(2))
    return random_input(one, shape, seed)


def signatures(model: Model) -> dict[str, Signature]:
    """The model's inputs by the name that stands for each: a tensor name where there is one, its position where names repeat."""
    found: dict[str, Signature] = {}
    for one in model.inputs:
        found.setdefault(next(iter(one.names), one.name), one)
    if len(found) < len(model.inputs):
        return {f"{one.name} (input {position})": one for position, one in enumerate(model.inputs)}
    return found


def bindings(model: Model, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The arrays in the model's order, as ``engine.run`` takes them."""
    return [inputs[key] for key in signatures(model)]


def named(model: Model, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of an .npz file under the names of ``signatures``; keys may be any name of an input, its position, or ``i0``, ``i1``, ..."""
    by_key: dict[str, str] = {}
    for position, (key, one) in enumerate(signatures(model).items()):
        for alias in (f"i{position}", f"arr_{position}", str(position), one.name, *one.names):
            by_key.setdefault(alias, key)
    by_key |= {key: key for key in signatures(model)}
    unknown = [key for key in arrays if key not in by_key]
    if unknown:
        raise InputError(
            f"the file holds {', '.join(map(repr, unknown[:4]))}, the model's inputs are {', '.join(map(repr, signatures(model)))}"
        )
    return {by_key[key]: array for key, array in arrays.items()}


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


def parse_scalar(given: object, one: Signature) -> np.ndarray:
    """A number, truth value or text as the input's type takes it; ``InputError`` says what is wrong."""
    return parse_element(given, one.element_type or ElementType.F32, f"input '{one.name}'")


def parse_element(given: object, element_type: ElementType, name: str) -> np.ndarray:
    """The same for any place, by the name that the refusal gives it."""
    if element_type is ElementType.STRING:
        return np.array(str(given), dtype=object)
    try:
        if element_type is ElementType.BOOLEAN:
            return np.array(given in (True, 1, "true", "True", "1"))
        number = int(str(given)) if element_type.is_integer else float(str(given))
        if element_type.is_integer and not _fits(int(number), element_type):
            raise ValueError(given)
        if element_type.dtype.names:
            return np.array(number, np.uint8).view(element_type.dtype)
        with np.errstate(all="ignore"):
            made = np.array(number).astype(element_type.dtype)
        if element_type.is_float and _grew(str(given), made):
            raise ValueError(given)
        return made
    except ValueError:
        raise InputError(f"{shorten(repr(given), 40)} is no value of type {element_type}, which {name} takes") from None


def _grew(text: str, made: np.ndarray) -> bool:
    """Whether a finite number became infinite: it is larger than the type can hold."""
    return bool(np.isinf(made.astype(np.float64))) and "inf" not in text.lower()


def _fits(number: int, element_type: ElementType) -> bool:
    signed = element_type.is_signed
    least, most = (-(1 << element_type.bits - 1), 1 << element_type.bits - 1) if signed else (0, 1 << element_type.bits)
    return least <= number < most


def parse_shape(text: str, one: Signature) -> tuple[int, ...]:
    """Lengths such as ``2, 5``; ``InputError`` when the input takes no such shape."""
    try:
        shape = tuple(int(length) for length in text.replace("x", ",").strip("[]() ").split(",") if length.strip())
    except ValueError:
        raise InputError(f"{shorten(repr(text), 40)} is no shape: write lengths such as 2, 5") from None
    if not one.shape.contains(shape) or min(shape, default=0) < 0:
        raise InputError(f"input '{one.name}' takes shape {one.shape}, not {list(shape)}")
    return shape


def read_arrays(name: str, data: bytes) -> dict[str, np.ndarray]:
    """The arrays of an uploaded .npy (under the empty name) or .npz file; ``InputError`` says what is wrong with it."""
    try:
        if data.startswith(b"PK"):
            with open_archive(io.BytesIO(data)):
                pass  # numpy would read a directory of any size
        stored = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return {"": stored}
        with stored:
            if sum(entry.file_size for entry in stored.zip.infolist()) > MOST_BYTES:
                raise InputError(f"{name} unpacks to more than {MOST_BYTES >> 30} GB")
            return {key: stored[key] for key in stored.files}
    except InputError:
        raise
    except Exception:  # numpy and zipfile raise whatever a broken file makes them stumble over
        raise InputError(f"{name} is no file of plain arrays: save it with numpy.save or numpy.savez") from None
