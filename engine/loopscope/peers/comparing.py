"""Comparison of two values of any kind: whether they are comparable, and how they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import type_name
from loopscope.ir.readable import significant
from loopscope.ops.values import NO_VALUE
from loopscope.peers.npz_protocol import NARROW, Unread

Key = TypeVar("Key")


def not_compared(own: Any, peer: Any) -> str:
    """Return why two values cannot be compared; empty if they can."""
    if isinstance(peer, Unread):
        return f"the runtime's value is of the kind {peer.kind}"
    if isinstance(own, (tuple, Mapping)) and type(own) is type(peer) and len(own) == len(peer):
        own_items = own if isinstance(own, tuple) else [own[key] for key in own if key in peer]
        peer_items = peer if isinstance(own, tuple) else [peer[key] for key in own if key in peer]
        return next(
            (
                why
                for own_item, peer_item in zip(own_items, peer_items, strict=True)
                if (why := not_compared(own_item, peer_item))
            ),
            "",
        )
    if (
        isinstance(own, (np.ndarray, np.generic))
        and own.dtype.kind not in "biufO"
        and not is_narrow(own)
    ):
        return f"its element type is {own.dtype}"
    return ""


def apart(own: Any, peer: Any, tolerance: float, magnitude: float = 0.0) -> tuple[str, str] | None:
    """Return a description of each side's value if two values of any kind differ; None if they
    agree.

    ``magnitude`` is passed to ``close``.
    """
    kinds = _kind(own), _kind(peer)
    if kinds[0] != kinds[1]:
        return kinds
    if isinstance(own, tuple):
        return _apart_within(enumerate(own), dict(enumerate(peer)), "element", tolerance)
    if isinstance(own, Mapping):
        if own.keys() != peer.keys():
            missing = next(iter(own.keys() ^ peer.keys()))
            return (
                (f"a key {missing!r}", f"no key {missing!r}")
                if missing in own
                else (f"no key {missing!r}", f"a key {missing!r}")
            )
        return _apart_within(own.items(), peer, "key", tolerance)
    if own is NO_VALUE:
        return None
    own_array, peer_array = np.asarray(own), np.asarray(peer)
    if own_array.shape != peer_array.shape:
        return f"shape {shape_text(own_array)}", f"shape {shape_text(peer_array)}"
    place = first_apart(own_array[None], peer_array[None], tolerance, magnitude)
    return None if place is None else element_texts(own_array[None], peer_array[None], place)


def _apart_within(
    items: Iterable[tuple[Key, Any]], peer: Mapping[Key, Any], word: str, tolerance: float
) -> tuple[str, str] | None:
    for key, value in items:
        if (sides := apart(value, peer[key], tolerance)) is not None:
            return f"{sides[0]} in {word} {key!r}", f"{sides[1]} in {word} {key!r}"
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
    own: np.ndarray, peer: np.ndarray, tolerance: float, magnitude: float = 0.0
) -> tuple[int, ...] | None:
    """Return row and element index of the first difference; None if all elements are close."""
    wrong = np.argwhere(~close(own, peer, tolerance, magnitude))
    return tuple(int(number) for number in wrong[0]) if len(wrong) else None


def close(
    own: np.ndarray, peer: np.ndarray, tolerance: float, magnitude: float = 0.0
) -> np.ndarray:
    """Return for each element True if both values agree.

    Floats agree within ``tolerance`` times the largest magnitude in their row, or times
    ``magnitude`` if that is larger.
    """
    with np.errstate(all="ignore"):
        if own.dtype.kind != "f" and not is_narrow(own):
            return np.asarray(own == peer.astype(own.dtype))
        own_floats, peer_floats = own.astype(np.float64), peer.astype(np.float64)
        finite = np.where(np.isfinite(own_floats), np.abs(own_floats), 0)
        scale = finite.max(axis=tuple(range(1, own_floats.ndim)), keepdims=True, initial=magnitude)
        exact = 8 * float((ml_dtypes if is_narrow(own) else np).finfo(own.dtype).eps)
        same = (
            (own_floats == peer_floats)
            | (np.isnan(own_floats) & np.isnan(peer_floats))
            | (np.abs(own_floats - peer_floats) <= max(tolerance, exact) * scale)
        )
        return np.asarray(same)


def is_numeric(value: Any) -> bool:
    """Return True for a tensor of numbers of numpy's own types."""
    return (
        isinstance(value, (np.ndarray, np.generic))
        and value.dtype.kind in "biuf"
        and not is_narrow(value)
    )


def is_narrow(value: np.ndarray | np.generic) -> bool:
    """Return True for a tensor of a narrow float type that numpy does not define and runtimes
    support.
    """
    return value.dtype.isbuiltin == 2 and type_name(value.dtype) in NARROW


def element_texts(own: np.ndarray, peer: np.ndarray, place: tuple[int, ...]) -> tuple[str, str]:
    """Return both elements at a place as text, with the index if a row has several elements."""
    index = f" at [{','.join(map(str, place[1:]))}]" if own[place[0]].size > 1 else ""
    return f"{_number(own[place])}{index}", f"{_number(peer[place])}{index}"


def _number(value: np.generic) -> str:
    return f"{significant(float(value), 7)}" if isinstance(value, np.floating) else str(value)


def shape_text(array: np.ndarray) -> str:
    """Return a shape as text: ``[2,3]``."""
    return f"[{','.join(map(str, array.shape))}]"


def counted(number: int, word: str, words: str = "") -> str:
    """Return a number with its noun: 1 value, 2 values."""
    return f"{number:,} {word if number == 1 else words or f'{word}s'}"
