"""Syntax of input ranges: ``number=1..500``, ``x=0,0.5,1``, ``x[2,3]=normal(0,1)``."""

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

# A point is followed by a digit or nothing, so that a word of any length is read in one pass.
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_SPAN = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:/(\d+))?", re.ASCII)
_DISTRIBUTION = re.compile(rf"(normal|uniform)\(({_NUMBER}),({_NUMBER})\)", re.ASCII)
_NAME = re.compile(r"(.+?)(?:\[([\d,]*)\])?=(.+)", re.ASCII | re.DOTALL)
_LIST_ITEM = re.compile(rf"{_NUMBER}|nan|[-+]?inf", re.ASCII)
_MAX_RANGE = 1 << 62
_MIN_INTEGER, _MAX_INTEGER = -(1 << 63), (1 << 64) - 1
"""Integers that some element type represents."""
_MAX_DEVIATIONS = 16
"""Number of standard deviations that a normal distribution practically never exceeds."""
_MAX_POINTS = 1 << 24
_MAX_AXES = 32
_MAX_DIGITS = 18


@dataclass(frozen=True, slots=True)
class InputRange:
    """Range of one input: a span, a list, or a distribution."""

    name: str
    shape: tuple[int, ...] | None
    """The written shape; None for the shape of the input."""
    form: Literal["span", "list", "normal", "uniform"]
    numbers: tuple[int | float, ...]
    """First and last of a span with its number of points (0 for every integer), the values of a
    list, or the two parameters of a distribution.
    """


def values_said(word: str) -> InputRange:
    """Parse a range such as ``number=1..500``; ``InputError`` for a word of another form.

    >>> values_said("number=1..500").numbers
    (1, 500, 0)
    >>> values_said("x[2,3]=normal(0,1)").shape
    (2, 3)
    """
    match = _NAME.fullmatch(word)
    if match is None:
        raise InputError(
            f"{shorten(repr(word), 60)} is not a range of an input: "
            "write number=1..500, x=0,0.5,1 or x[2,3]=normal(0,1)"
        )
    name, lengths, text = match.groups()
    shape = None if lengths is None else _lengths(name, lengths)
    if span := _SPAN.fullmatch(text):
        steps = whole(span[3] or "0", f"{shorten(repr(text), 60)} has too many points")
        if span[3] and not steps:
            raise InputError(
                f"{shorten(name, 60)} is given {shorten(repr(text), 60)}, which is not a range: "
                "expected a number from 1 on after /"
            )
        return InputRange(
            name, shape, "span", (number(name, span[1]), number(name, span[2]), steps)
        )
    if distribution := _DISTRIBUTION.fullmatch(text):
        return InputRange(
            name,
            shape,
            "normal" if distribution[1] == "normal" else "uniform",
            (number(name, distribution[2]), number(name, distribution[3])),
        )
    if all(_LIST_ITEM.fullmatch(item) for item in text.split(",")):
        return InputRange(
            name, shape, "list", tuple(number(name, item) for item in text.split(","))
        )
    raise InputError(
        f"{shorten(repr(text), 60)} is not a range of {shorten(name, 60)}: "
        "write 1..500, 0..1/11, 0,0.5,nan or normal(0,1)"
    )


def _lengths(name: str, written: str) -> tuple[int, ...]:
    lengths = [length for length in written.split(",") if length]
    problem = (
        f"{shorten(name, 60)}[{shorten(written, 60)}] is not a shape: "
        f"at most {_MAX_AXES} lengths are expected, of {_MAX_DIGITS} digits"
    )
    if len(lengths) > _MAX_AXES:
        raise InputError(problem)
    return tuple(whole(length, problem) for length in lengths)


def whole(text: str, message: str) -> int:
    """Return a nonnegative integer of at most 18 digits; ``InputError`` with this message for any
    other text.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise InputError(message)
    return int(text)


def number(name: str, text: str) -> int | float:
    """Return a number of an input as it is written: an integer if written so, also nan and inf.

    Raises ``InputError`` for a number that no element type represents.
    """
    if text.lstrip("+-") in ("nan", "inf"):
        return float(text)
    if (
        text.lstrip("+-").isdecimal()
        and len(text) <= 2 * _MAX_DIGITS
        and _MIN_INTEGER <= int(text) <= _MAX_INTEGER
    ):
        return int(text)
    if not text.lstrip("+-").isdecimal() and math.isfinite(value := float(text)):
        return value
    raise InputError(
        f"{shorten(name, 60)} is given {shorten(text, 40)}, which no element type holds"
    )


def rounded(numbers: np.ndarray, element_type: ElementType | None) -> np.ndarray:
    """Return decimal numbers rounded to a float type, because 0.1 means the nearest number of the
    type.

    Numbers beyond the largest of the type are unchanged; they are rejected later.
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
    """Return all values of a grid's axis in order; ``InputError`` for a distribution, which has no
    order.
    """
    match values.form:
        case "list":
            return np.array(values.numbers)
        case "span":
            return _span_points(values)
        case _:
            raise InputError(
                f"{values.name} is given a distribution, which a grid does not have: "
                "write random:10000 before it"
            )


def _span_points(values: InputRange) -> np.ndarray | range:
    first, last, count = values.numbers
    if count > _MAX_POINTS:
        raise InputError(
            f"{values.name} takes {count:,} values: at most {_MAX_POINTS:,} are expected"
        )
    if count and math.isfinite(float(last) - float(first)):
        return np.linspace(first, last, int(count))
    if count or max(abs(first), abs(last)) > _MAX_RANGE:
        raise InputError(
            f"{shorten(values.name, 60)} goes from {first} to {last}, "
            "which is farther than numbers reach"
        )
    if isinstance(first, int) and isinstance(last, int) and first <= last:
        return range(first, last + 1)
    written = f"{values.name}={first}..{last}"
    raise InputError(
        f"{written} has no step: write {written}/11 for 11 values, "
        "or whole numbers with the smaller one first"
    )


def draw(
    values: InputRange | None,
    signature: Signature,
    shape: tuple[int, ...],
    count: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Return ``count`` random samples of an input, with a leading sample axis.

    By default floats are normal, integers are 0 to 9, and booleans are true or false.
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
        if not -_MAX_RANGE <= first <= last <= _MAX_RANGE:
            raise InputError(
                f"{values.name} is drawn from {first} to {last}: "
                "the smaller whole number is expected first"
            )
        return generator.integers(int(first), int(last), size, endpoint=True)
    elif 0 <= float(last) - float(first) < math.inf:
        drawn = generator.uniform(first, last, size)
    else:
        raise InputError(
            f"{values.name} is drawn from {first} to {last}: "
            "the smaller number is expected first, not too far from the other"
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
    if dtype.kind in "iu" and abs(mean) + _MAX_DEVIATIONS * deviation > _MAX_RANGE:
        raise InputError(
            f"{values.name} is normal({mean},{deviation}), "
            f"which goes beyond the whole numbers of {dtype}"
        )
