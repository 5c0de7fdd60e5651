"""The words by which a person says what values an input takes: ``number=1..500``, ``x=0,0.5,1``, ``x[2,3]=normal(0,1)``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.errors import InputError, shorten
from engine.ir.element_type import ElementType
from engine.ir.model import Signature

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SPAN = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:/(\d+))?")
_DRAWN = re.compile(rf"(normal|uniform)\(({_NUMBER}),({_NUMBER})\)")
_NAME = re.compile(r"(.+?)(?:\[([\d,]*)\])?=(.+)", re.DOTALL)
_LARGEST_RANGE = 1 << 62
_MOST_POINTS = 1 << 24


@dataclass(frozen=True, slots=True)
class Values:
    """What one input takes: a span, a list, or a distribution."""

    name: str
    shape: tuple[int, ...] | None
    """As it was written; None: that of the input."""
    form: Literal["span", "list", "normal", "uniform"]
    numbers: tuple[int | float, ...]
    """First and last of a span and the number of its points (0: each whole number), a list's values, or a distribution's two numbers."""


def values_said(word: str) -> Values:
    """What a word such as ``number=1..500`` says; ``InputError`` for one that says nothing.

    >>> values_said("number=1..500").numbers
    (1, 500, 0)
    >>> values_said("x[2,3]=normal(0,1)").shape
    (2, 3)
    """
    match = _NAME.fullmatch(word)
    if match is None:
        raise InputError(f"{shorten(repr(word), 60)} says no values of an input: write number=1..500, x=0,0.5,1 or x=normal(0,1)")
    name, lengths, said = match.groups()
    shape = None if lengths is None else tuple(int(one) for one in lengths.split(",") if one)
    if span := _SPAN.fullmatch(said):
        return Values(name, shape, "span", (number(span[1]), number(span[2]), int(span[3] or 0)))
    if drawn := _DRAWN.fullmatch(said):
        return Values(name, shape, "normal" if drawn[1] == "normal" else "uniform", (number(drawn[2]), number(drawn[3])))
    if all(re.fullmatch(_NUMBER, one) for one in said.split(",")):
        return Values(name, shape, "list", tuple(number(one) for one in said.split(",")))
    raise InputError(f"{shorten(repr(said), 60)} is no range of {shorten(name, 60)}: write 1..500, 0..1/11, 0,0.5,1 or normal(0,1)")


def number(text: str) -> int | float:
    """A number as it is written, whole where it is written so."""
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def points(values: Values) -> np.ndarray | range:
    """All values of a grid's axis, in order; ``InputError`` for what has no order, such as a distribution."""
    match values.form:
        case "list":
            return np.array(values.numbers)
        case "span":
            first, last, count = values.numbers
            if count > _MOST_POINTS:
                raise InputError(f"{values.name} takes {count:,} values: at most {_MOST_POINTS:,} are expected")
            if count:
                return np.linspace(first, last, int(count))
            if isinstance(first, int) and isinstance(last, int) and first <= last:
                return range(first, last + 1)
            written = f"{values.name}={first}..{last}"
            raise InputError(f"{written} has no step: write {written}/11 for 11 values, or whole numbers with the smaller one first")
        case _:
            raise InputError(f"{values.name} is given a distribution, which a grid has not: write random:10000 before it")


def draw(values: Values | None, signature: Signature, shape: tuple[int, ...], count: int, generator: np.random.Generator) -> np.ndarray:
    """So many random samples of an input, with a leading sample axis.

    Without a word: normal for floats, 0 to 9 for whole numbers, either truth for booleans.
    """
    size = (count, *shape)
    dtype = (signature.element_type or ElementType.F32).dtype
    if values is None:
        if dtype.kind == "b":
            return generator.integers(0, 2, size).astype(bool)
        return generator.integers(0, 10, size) if dtype.kind in "iu" else generator.standard_normal(size).astype(np.float32)
    first, last = values.numbers[:2] if values.form != "list" else (0, 0)
    match values.form:
        case "list":
            return np.array(values.numbers)[generator.integers(0, len(values.numbers), size)]
        case "normal":
            drawn = generator.normal(first, last, size)
        case "span" | "uniform":
            if dtype.kind in "iub":
                if not -_LARGEST_RANGE <= first <= last <= _LARGEST_RANGE:
                    raise InputError(f"{values.name} is drawn from {first} to {last}: the smaller whole number is expected first")
                return generator.integers(int(first), int(last), size, endpoint=True)
            drawn = generator.uniform(first, last, size)
    return np.rint(drawn).astype(np.int64) if dtype.kind in "iu" else drawn.astype(np.float32 if dtype.kind == "f" else np.float64)
