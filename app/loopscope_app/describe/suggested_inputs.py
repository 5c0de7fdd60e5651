"""Default sweep inputs for a model, in the syntax of ``loopscope sweep --inputs``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from loopscope.ir import Model, Signature
from loopscope_app.describe.signatures import signatures

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
