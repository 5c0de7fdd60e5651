"""The words by which a person says what values an input takes: ``number=1..500``, ``x=0,0.5,1``,
``x[2,3]=normal(0,1)``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import ml_dtypes
import numpy as np

from loopscope.errors import InputError, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Signature

# After a point comes another digit or none, so that a word of any length is read in one pass.
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_SPAN = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:/(\d+))?", re.ASCII)
_DRAWN = re.compile(rf"(normal|uniform)\(({_NUMBER}),({_NUMBER})\)", re.ASCII)
_NAME = re.compile(r"(.+?)(?:\[([\d,]*)\])?=(.+)", re.ASCII | re.DOTALL)
_ONE = re.compile(rf"{_NUMBER}|nan|[-+]?inf", re.ASCII)
_LARGEST_RANGE = 1 << 62
_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
"""Whole numbers that some element type holds."""
_MOST_DEVIATIONS = 16
"""A normal distribution practically never gives a number farther from its mean."""
_MOST_POINTS = 1 << 24
_MOST_AXES = 32
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class InputRange:
    """What one input takes: a span, a list, or a distribution."""

    name: str
    shape: tuple[int, ...] | None
    """As it was written; None: that of the input."""
    form: Literal["span", "list", "normal", "uniform"]
    numbers: tuple[int | float, ...]
    """First and last of a span and the number of its points (0: each whole number), a list's
    values, or a distribution's two numbers.
    """


def values_said(word: str) -> InputRange:
    """What a word such as ``number=1..500`` says; ``InputError`` for one that says nothing.

    >>> values_said("number=1..500").numbers
    (1, 500, 0)
    >>> values_said("x[2,3]=normal(0,1)").shape
    (2, 3)
    """
    match = _NAME.fullmatch(word)
    if match is None:
        raise InputError(
            f"{shorten(repr(word), 60)} says no values of an input: write number=1..500, x=0,0.5,1 or x[2,3]=normal(0,1)"
        )
    name, lengths, said = match.groups()
    shape = None if lengths is None else _lengths(name, lengths)
    if span := _SPAN.fullmatch(said):
        steps = whole(span[3] or "0", f"{shorten(repr(said), 60)} has too many points")
        if span[3] and not steps:
            raise InputError(
                f"{shorten(name, 60)} is given {shorten(repr(said), 60)}, which is no value: expected a number from 1 on after /"
            )
        return InputRange(
            name, shape, "span", (number(name, span[1]), number(name, span[2]), steps)
        )
    if drawn := _DRAWN.fullmatch(said):
        return InputRange(
            name,
            shape,
            "normal" if drawn[1] == "normal" else "uniform",
            (number(name, drawn[2]), number(name, drawn[3])),
        )
    if all(_ONE.fullmatch(one) for one in said.split(",")):
        return InputRange(name, shape, "list", tuple(number(name, one) for one in said.split(",")))
    raise InputError(
        f"{shorten(repr(said), 60)} is no range of {shorten(name, 60)}: write 1..500, 0..1/11, 0,0.5,nan or normal(0,1)"
    )


def _lengths(name: str, written: str) -> tuple[int, ...]:
    lengths = [one for one in written.split(",") if one]
    told = f"{shorten(name, 60)}[{shorten(written, 60)}] is no shape: at most {_MOST_AXES} lengths are expected, of {_MOST_DIGITS} digits"
    if len(lengths) > _MOST_AXES:
        raise InputError(told)
    return tuple(whole(one, told) for one in lengths)


def whole(text: str, otherwise: str) -> int:
    """A whole number from 0 on, of at most 18 digits; for anything else an ``InputError`` of
    this sentence.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise InputError(otherwise)
    return int(text)


def number(name: str, text: str) -> int | float:
    """A number of an input as it is written, whole where it is written so, nan and inf too;
    ``InputError`` for one that no type holds.
    """
    if text.lstrip("+-") in ("nan", "inf"):
        return float(text)
    if (
        text.lstrip("+-").isdecimal()
        and len(text) <= 2 * _MOST_DIGITS
        and _SMALLEST <= int(text) <= _LARGEST
    ):
        return int(text)
    if not text.lstrip("+-").isdecimal() and math.isfinite(value := float(text)):
        return value
    raise InputError(
        f"{shorten(name, 60)} is given {shorten(text, 40)}, which no element type holds"
    )


def rounded(numbers: np.ndarray, element_type: ElementType | None) -> np.ndarray:
    """Decimal numbers as a type of floats has them, since 0.1 is written for whichever is nearest
    to it.

    Numbers beyond the largest of the type stay as they are, and are refused where they are taken.
    """
    if (
        element_type is None
        or not element_type.is_float
        or numbers.dtype.kind != "f"
        or element_type.dtype.names
    ):
        return numbers
    dtype = element_type.dtype
    largest = float((np if dtype.kind == "f" else ml_dtypes).finfo(dtype).max)
    wide = numbers.astype(np.float64)
    if np.any(np.isfinite(wide) & (np.abs(wide) > largest)):
        return numbers
    return (numbers if dtype.kind == "f" else numbers.astype(np.float32)).astype(dtype)


def points(values: InputRange) -> np.ndarray | range:
    """All values of a grid's axis, in order; ``InputError`` for what has no order, such as a
    distribution.
    """
    match values.form:
        case "list":
            return np.array(values.numbers)
        case "span":
            return _of_span(values)
        case _:
            raise InputError(
                f"{values.name} is given a distribution, which a grid has not: write random:10000 before it"
            )


def _of_span(values: InputRange) -> np.ndarray | range:
    first, last, count = values.numbers
    if count > _MOST_POINTS:
        raise InputError(
            f"{values.name} takes {count:,} values: at most {_MOST_POINTS:,} are expected"
        )
    if count and math.isfinite(float(last) - float(first)):
        return np.linspace(first, last, int(count))
    if count or max(abs(first), abs(last)) > _LARGEST_RANGE:
        raise InputError(
            f"{shorten(values.name, 60)} goes from {first} to {last}, which is farther than numbers reach"
        )
    if isinstance(first, int) and isinstance(last, int) and first <= last:
        return range(first, last + 1)
    written = f"{values.name}={first}..{last}"
    raise InputError(
        f"{written} has no step: write {written}/11 for 11 values, or whole numbers with the smaller one first"
    )


def draw(
    values: InputRange | None,
    signature: Signature,
    shape: tuple[int, ...],
    count: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """So many random samples of an input, with a leading sample axis.

    Without a word: normal for floats, 0 to 9 for whole numbers, true or false for booleans.
    """
    size = (count, *shape)
    dtype = (signature.element_type or ElementType.F32).dtype
    if values is None:
        if dtype.kind == "b":
            return generator.integers(0, 2, size).astype(bool)
        return (
            generator.integers(0, 10, size)
            if dtype.kind in "iu"
            else generator.standard_normal(size).astype(np.float32)
        )
    if values.form == "list":
        return np.array(values.numbers)[generator.integers(0, len(values.numbers), size)]
    first, last = values.numbers[:2]
    if values.form == "normal":
        _check_normal(values, dtype)
        drawn = generator.normal(first, last, size)
    elif dtype.kind in "iub":
        if not -_LARGEST_RANGE <= first <= last <= _LARGEST_RANGE:
            raise InputError(
                f"{values.name} is drawn from {first} to {last}: the smaller whole number is expected first"
            )
        return generator.integers(int(first), int(last), size, endpoint=True)
    elif 0 <= float(last) - float(first) < math.inf:
        drawn = generator.uniform(first, last, size)
    else:
        raise InputError(
            f"{values.name} is drawn from {first} to {last}: the smaller number is expected first, not too far from the other"
        )
    if dtype.kind in "iu":
        return np.rint(drawn).astype(np.int64)
    with np.errstate(over="ignore"):
        return drawn.astype(np.float32 if dtype.kind == "f" else np.float64)


def _check_normal(values: InputRange, dtype: np.dtype) -> None:
    mean, deviation = values.numbers
    if deviation < 0:
        raise InputError(
            f"{values.name} is normal({mean},{deviation}): a deviation from 0 on is expected"
        )
    if dtype.kind in "iu" and abs(mean) + _MOST_DEVIATIONS * deviation > _LARGEST_RANGE:
        raise InputError(
            f"{values.name} is normal({mean},{deviation}), which goes beyond the whole numbers of {dtype}"
        )
