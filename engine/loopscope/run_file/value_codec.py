"""Lists of a run's values as few entries of a file: one array where they stack, two where only
lengths differ, else one each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.executor.plan.plan import settle

_WIDEST = 2**128
_DEEPEST = 4


def written(name: str, values: Sequence[Any], into: dict[str, Any]) -> dict[str, Any]:
    """Puts the values into ``into`` under ``name``, and gives the form in JSON by which ``read``
    finds them again.
    """
    found = list(values)
    if all(map(_is_plain, found)):
        return {"plain": found}
    stacked = _stacked(found)
    if stacked is not None:
        into[name] = stacked
        return {"together": len(found)}
    first = found[0]
    if (
        all(
            isinstance(one, np.ndarray) and one.dtype == first.dtype and one.ndim == first.ndim
            for one in found
        )
        and first.ndim
    ):
        into[f"{name}.shapes"] = np.array([one.shape for one in found], np.int64)
        into[name] = np.concatenate([one.reshape(-1) for one in found])
        return {"ragged": len(found)}
    for number, one in enumerate(found):
        if not _is_plain(one):
            into[f"{name}.{number}"] = one
    return {"each": [one if _is_plain(one) else True for one in found]}


def read(name: str, form: object, entries: Mapping[str, Any]) -> Any:
    """The values, an array where they are stacked; ``ValueError`` when the entries are not what
    the form says.
    """
    match form:
        case {"plain": list(values)}:
            return [_plain(one, 0) for one in values]
        case {"together": int(count)}:
            whole = _array(name, entries)
            if whole.ndim and len(whole) == count:
                return whole
        case {"ragged": int(count)}:
            shapes, flat = _array(f"{name}.shapes", entries), _array(name, entries)
            if (
                shapes.ndim == 2
                and shapes.dtype == np.int64
                and len(shapes) == count
                and flat.ndim == 1
            ):
                return _cut(flat, shapes)
        case {"each": list(marks)}:
            return [
                settle(_value(f"{name}.{number}", entries)) if mark is True else _plain(mark, 0)
                for number, mark in enumerate(marks)
            ]
    raise ValueError(f"its recording does not hold {name} as it says")


def held(value: Any) -> int:
    """Bytes of a value, about."""
    if isinstance(value, tuple):
        return 64 + sum(map(held, value))
    return int(getattr(value, "nbytes", 64))


def _value(name: str, entries: Mapping[str, Any]) -> Any:
    if name not in entries:
        raise ValueError(f"its recording lacks {name}")
    return entries[name]


def _array(name: str, entries: Mapping[str, Any]) -> np.ndarray:
    found = _value(name, entries)
    if not isinstance(found, np.ndarray):
        raise ValueError(f"its recording has no array as {name}")
    return found


def _stacked(values: Sequence[Any]) -> np.ndarray | None:
    first = values[0]
    same = isinstance(first, (np.ndarray, np.generic)) and all(
        isinstance(one, (np.ndarray, np.generic))
        and one.dtype == first.dtype
        and one.shape == first.shape
        for one in values
    )
    if not same or first.dtype == object:
        return None
    return np.stack([np.asarray(one) for one in values])


def _cut(flat: np.ndarray, shapes: np.ndarray) -> list[Any]:
    sizes = [math.prod(shape) for shape in shapes.tolist()]
    if (len(shapes) and shapes.min(initial=0) < 0) or sum(sizes) != len(flat):
        raise ValueError("its recording holds values of other sizes than it says")
    ends = np.cumsum([0, *sizes]).tolist()
    return [
        flat[begin:end].reshape(shape)
        for begin, end, shape in zip(ends, ends[1:], shapes.tolist(), strict=False)
    ]


def _is_plain(value: Any) -> bool:
    """A variable without a value, or the state of a random operation: numbers, and tuples of
    them.
    """
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_plain, value))
    return value is None or type(value) is int


def _plain(value: object, depth: int) -> Any:
    if isinstance(value, list) and value and depth < _DEEPEST:
        return tuple(_plain(one, depth + 1) for one in value)
    if value is None or (type(value) is int and abs(value) <= _WIDEST):
        return value
    raise ValueError(
        "its recording holds what is neither a number nor nothing where one of them is expected"
    )
