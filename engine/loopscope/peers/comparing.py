"""Two values of any kind beside each other: whether they can be compared, and how they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import type_name
from loopscope.ops.values import NO_VALUE
from loopscope.peers.npz_protocol import NARROW, Unread

Key = TypeVar("Key")


def not_compared(here: Any, there: Any) -> str:
    """Why two values cannot be compared; empty when they can, whatever comes of it."""
    if isinstance(there, Unread):
        return f"the runtime's value is of the kind {there.kind}"
    if isinstance(here, (tuple, Mapping)) and type(here) is type(there) and len(here) == len(there):
        ours = here if isinstance(here, tuple) else [here[key] for key in here if key in there]
        theirs = there if isinstance(here, tuple) else [there[key] for key in here if key in there]
        return next(
            (
                why
                for one, other in zip(ours, theirs, strict=True)
                if (why := not_compared(one, other))
            ),
            "",
        )
    if (
        isinstance(here, (np.ndarray, np.generic))
        and here.dtype.kind not in "biufO"
        and not is_narrow(here)
    ):
        return f"its element type is {here.dtype}"
    return ""


def apart(
    here: Any, there: Any, tolerance: float, magnitude: float = 0.0
) -> tuple[str, str] | None:
    """How two values of any kind differ, said of each side; None where they agree. ``magnitude``
    is that of ``close``.
    """
    kinds = _kind(here), _kind(there)
    if kinds[0] != kinds[1]:
        return kinds
    if isinstance(here, tuple):
        return _apart_within(enumerate(here), dict(enumerate(there)), "element", tolerance)
    if isinstance(here, Mapping):
        if here.keys() != there.keys():
            odd = next(iter(here.keys() ^ there.keys()))
            return (
                (f"a key {odd!r}", f"no key {odd!r}")
                if odd in here
                else (f"no key {odd!r}", f"a key {odd!r}")
            )
        return _apart_within(here.items(), there, "key", tolerance)
    if here is NO_VALUE:
        return None
    one, other = np.asarray(here), np.asarray(there)
    if one.shape != other.shape:
        return f"shape {shape_text(one)}", f"shape {shape_text(other)}"
    place = first_apart(one[None], other[None], tolerance, magnitude)
    return None if place is None else elements_told(one[None], other[None], place)


def _apart_within(
    items: Iterable[tuple[Key, Any]], there: Mapping[Key, Any], word: str, tolerance: float
) -> tuple[str, str] | None:
    for key, value in items:
        if (told := apart(value, there[key], tolerance)) is not None:
            return f"{told[0]} in {word} {key!r}", f"{told[1]} in {word} {key!r}"
    return None


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a sequence of {counted(len(value), 'value')}"
    if isinstance(value, Mapping):
        return f"a map of {counted(len(value), 'entry', 'entries')}"
    return (
        "nothing"
        if value is NO_VALUE
        else "texts"
        if np.asarray(value).dtype == object
        else "a tensor"
    )


def first_apart(
    here: np.ndarray, there: np.ndarray, tolerance: float, magnitude: float = 0.0
) -> tuple[int, ...] | None:
    """Row and element of the first difference; None where all is close."""
    wrong = np.argwhere(~close(here, there, tolerance, magnitude))
    return tuple(int(number) for number in wrong[0]) if len(wrong) else None


def close(
    here: np.ndarray, there: np.ndarray, tolerance: float, magnitude: float = 0.0
) -> np.ndarray:
    """Which elements agree: floats within ``tolerance`` of the largest in their row, or of
    ``magnitude`` where that is larger.
    """
    with np.errstate(all="ignore"):
        if here.dtype.kind != "f" and not is_narrow(here):
            return np.asarray(here == there.astype(here.dtype))
        one, other = here.astype(np.float64), there.astype(np.float64)
        finite = np.where(np.isfinite(one), np.abs(one), 0)
        scale = finite.max(axis=tuple(range(1, one.ndim)), keepdims=True, initial=magnitude)
        exact = 8 * float((ml_dtypes if is_narrow(here) else np).finfo(here.dtype).eps)
        same = (
            (one == other)
            | (np.isnan(one) & np.isnan(other))
            | (np.abs(one - other) <= max(tolerance, exact) * scale)
        )
        return np.asarray(same)


def is_numeric(value: Any) -> bool:
    """Whether it is a tensor of numbers of numpy's own types."""
    return (
        isinstance(value, (np.ndarray, np.generic))
        and value.dtype.kind in "biuf"
        and not is_narrow(value)
    )


def is_narrow(value: np.ndarray | np.generic) -> bool:
    """Whether a tensor is of narrow floats that numpy lacks and runtimes have."""
    return value.dtype.isbuiltin == 2 and type_name(value.dtype) in NARROW


def elements_told(here: np.ndarray, there: np.ndarray, place: tuple[int, ...]) -> tuple[str, str]:
    """Both elements at a place, with its index where a row has more than one."""
    index = f" at [{','.join(map(str, place[1:]))}]" if here[place[0]].size > 1 else ""
    return f"{_number(here[place])}{index}", f"{_number(there[place])}{index}"


def _number(value: np.generic) -> str:
    return f"{float(value):.7g}" if isinstance(value, np.floating) else str(value)


def shape_text(array: np.ndarray) -> str:
    """A shape as sentences write it: ``[2,3]``."""
    return f"[{','.join(map(str, array.shape))}]"


def counted(number: int, word: str, words: str = "") -> str:
    """A number of things in words: 1 value, 2 values."""
    return f"{number:,} {word if number == 1 else words or f'{word}s'}"
