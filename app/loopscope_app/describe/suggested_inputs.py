"""What many runs of a model may run on, for who has said nothing yet: words as ``loopscope sweep
--inputs`` takes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from loopscope.ir import Model, Signature
from loopscope_app.describe.signatures import signatures

_RANDOM = "random:1000 seed=0"
_LEAST_LAST = 200
_POINTS = 101


def suggested_grid(model: Model, inputs: Mapping[str, np.ndarray]) -> str:
    """A range around the present value of the first input that is a number; empty where none is.

    Whole numbers go before others: they are counts and limits more often.
    """
    numbers = [
        (_said(one, position), array)
        for position, (key, one) in enumerate(signatures(model).items())
        if (array := inputs.get(key)) is not None and _is_number(one, array)
    ]
    if not numbers:
        return ""
    name, array = next((pair for pair in numbers if pair[1].dtype.kind in "iu"), numbers[0])
    return f"{name}={_range(array)}"


def suggested_random(model: Model, inputs: Mapping[str, np.ndarray]) -> str:
    """Random inputs; those of open lengths get the lengths that they have in the present run,
    which nobody else knows.
    """
    said = [
        f"{_said(one, position)}[{','.join(map(str, array.shape))}]={'normal(0,1)' if array.dtype.kind == 'f' else '0..9'}"
        for position, (key, one) in enumerate(signatures(model).items())
        if isinstance(array := inputs.get(key), np.ndarray) and array.ndim and one.form == "tensor" and array.dtype.kind in "fiu"
        and not one.shape.is_static
    ]  # fmt: skip
    return " ".join([_RANDOM, *said])


def _said(one: Signature, position: int) -> str:
    """The input's name; its position where that is no word."""
    return one.name if re.fullmatch(r"[^\s=\[]+", one.name) else str(position)


def _is_number(one: Signature, array: np.ndarray) -> bool:
    return (
        one.form == "tensor"
        and isinstance(array, np.ndarray | np.generic)
        and array.size == 1
        and array.dtype.kind in "iuf"
    )


def _range(array: np.ndarray) -> str:
    """
    >>> _range(np.array(27)), _range(np.array(0.5)), _range(np.array(-2.0))
    ('1..200', '0..1/101', '-4..0/101')
    """
    value = float(array.reshape(-1)[0])
    if array.dtype.kind in "iu":
        most = np.iinfo(array.dtype).max
        return f"{min(1, int(value))}..{min(most, max(_LEAST_LAST, 2 * int(value)))}"
    if not np.isfinite(value) or value == 0:
        return f"-1..1/{_POINTS}"
    first, last = sorted((0.0, 2 * value))
    return f"{first:g}..{last:g}/{_POINTS}"
