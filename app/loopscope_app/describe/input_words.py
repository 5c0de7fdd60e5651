"""Inputs as words: how two sets differ, what generated ones are, and a default for a sweep.

The default is in the syntax of ``loopscope sweep --inputs``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from loopscope.checks import compared_constants
from loopscope.errors import elided, shorten
from loopscope.ir import Model, Signature, significant
from loopscope.object_cache import cache_by_object
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


_compared_constants = cache_by_object(compared_constants)


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
    constants = _compared_constants(model)
    return {
        name: array
        for name, signature in signatures(model).items()
        if isinstance(array := inputs.get(name), np.ndarray)
        and array.size == 1
        and array.dtype.kind in "iu"
        and int(array.reshape(-1)[0]) in constants.get(signature.layer, ())
    }


_RANDOM = "random:1000 seed=0"
_SMALLEST_END = 200
_POINTS = 101


def suggested_grid(model: Model, inputs: Mapping[str, np.ndarray]) -> str:
    """Return a range around the current value of the first scalar input, or an empty text.

    Integers are preferred: they are counts and limits more often.
    """
    numbers = [
        (_input_word(signature, position), array)
        for position, (key, signature) in enumerate(signatures(model).items())
        if (array := inputs.get(key)) is not None and _is_number(signature, array)
    ]
    if not numbers:
        return ""
    name, array = next((pair for pair in numbers if pair[1].dtype.kind in "iu"), numbers[0])
    return f"{name}={_range(array)}"


def suggested_random(model: Model, inputs: Mapping[str, np.ndarray]) -> str:
    """Return random inputs; open lengths are those of the current run."""
    words: list[str] = []
    for position, (key, signature) in enumerate(signatures(model).items()):
        array = inputs.get(key)
        is_open = signature.form == "tensor" and not signature.shape.is_static
        if isinstance(array, np.ndarray) and array.ndim and is_open and array.dtype.kind in "fiu":
            shape = ",".join(map(str, array.shape))
            values = "normal(0,1)" if array.dtype.kind == "f" else "0..9"
            words.append(f"{_input_word(signature, position)}[{shape}]={values}")
    return " ".join([_RANDOM, *words])


def _input_word(signature: Signature, position: int) -> str:
    """Return the input's name, or its position if the name is not a single word."""
    return signature.name if re.fullmatch(r"[^\s=\[]+", signature.name) else str(position)


def _is_number(signature: Signature, array: np.ndarray) -> bool:
    return (
        signature.form == "tensor"
        and isinstance(array, np.ndarray | np.generic)
        and array.size == 1
        and array.dtype.kind in "iuf"
    )


def _range(array: np.ndarray) -> str:
    """Return a range of values around a number.

    >>> _range(np.array(27)), _range(np.array(0.5)), _range(np.array(-2.0))
    ('1..200', '0..1/101', '-4..0/101')
    """
    value = float(array.reshape(-1)[0])
    if array.dtype.kind in "iu":
        upper = np.iinfo(array.dtype).max
        return f"{min(1, int(value))}..{min(upper, max(_SMALLEST_END, 2 * int(value)))}"
    if not np.isfinite(value) or value == 0:
        return f"-1..1/{_POINTS}"
    first, last = sorted((0.0, 2 * value))
    return f"{first:g}..{last:g}/{_POINTS}"
