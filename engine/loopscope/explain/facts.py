"""Facts of a proof, and the sentences that they make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.errors import shorten
from loopscope.explain.margin import Margin
from loopscope.explain.value_names import quoted
from loopscope.ir.number_text import short_exponent, significant

_MAX_REASONS = 4
TESTS = " tests "
"""Words between the name of a boolean and its comparison."""
_MAX_TEXT_LENGTH = 80
"""Maximum characters shown of a string element."""
_ELEMENT_INDEX = re.compile(r"\[[0-9, ]+\]")
"""Index of an element, as it follows the name of its tensor in a sentence."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a proof."""

    address: str
    operation: str
    """Operation type, such as ``Less``."""
    text: str
    """Clause about the value, such as ```keep_going` tests `x` < 10, and `x` was 10.5``."""
    operands: tuple[str, ...]
    """Addresses of the values that decided this one."""
    by_hand: bool = False
    """True if the value was set by hand, so that no other value decided it."""
    depth: int = 0
    """Number of steps back from the condition. The deeper facts that follow this fact are its
    reasons.
    """
    margin: Margin | None = None
    """Margin of the decision; set for comparisons of floats."""


def because(proof: Sequence[Fact]) -> str:
    """Return the facts without a further reason as a clause about the condition ("it").

    Return an empty text if the condition is the only fact.
    """
    if len(proof) == 1 and proof[0].operation in ("Parameter", "Const") and not proof[0].operands:
        return ""
    texts = list(_merge_repeated_tests(dict.fromkeys(_clause(fact) for fact in deciding(proof))))
    more = f"; and {len(texts) - _MAX_REASONS} more" if len(texts) > _MAX_REASONS else ""
    return "; ".join(texts[:_MAX_REASONS]) + more


def _merge_repeated_tests(clauses: Iterable[str]) -> Iterator[str]:
    """Yield each comparison once, where several elements or iterations repeat it."""
    clauses_of: dict[str, list[str]] = {}
    for clause in clauses:
        question, separator, _ = _ELEMENT_INDEX.sub("", clause).partition(", and ")
        clauses_of.setdefault(question if separator and TESTS in question else clause, []).append(
            clause
        )
    for first, *more in clauses_of.values():
        yield f"{first} (the first of {len(more) + 1} times)" if more else first


def deciding(proof: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts of a proof without a further reason: comparisons, constants and inputs."""
    return tuple(
        fact
        for index, fact in enumerate(proof)
        if index + 1 == len(proof) or proof[index + 1].depth <= fact.depth
    )


def _clause(fact: Fact) -> str:
    """Return the text of a fact for a sentence that has just named the condition."""
    prefix = name_of(fact) + TESTS
    return (
        f"it{TESTS}{fact.text.removeprefix(prefix)}"
        if fact.depth == 0 and fact.text.startswith(prefix)
        else fact.text
    )


def is_constant(proof: Sequence[Fact]) -> bool:
    """Return True if the condition is a Const, so that the model alone decided."""
    return len(proof) == 1 and proof[0].operation == "Const"


def name_of(fact: Fact) -> str:
    """Return the quoted name of the node that a fact is about."""
    return quoted(fact.address)


def needs_all_digits(values: Sequence[Any]) -> bool:
    """Return True if rounding two numbers for display would change how they compare."""
    try:
        left, right = (float(value) for value in values)
    except (TypeError, ValueError):
        return False
    rounded_left, rounded_right = float(significant(left, 6)), float(significant(right, 6))
    return (left < right, left > right) != (
        rounded_left < rounded_right,
        rounded_left > rounded_right,
    )


def element_text(value: Any, position: int, *, exact: bool = False) -> str:
    """Return the text of one element.

    >>> tens = np.float32([1, 10.500001])
    >>> element_text(tens, 1), element_text(tens, 1, exact=True)
    ('10.5', '10.500001')
    """
    array = np.asarray(value)
    item = array.reshape(-1)[position]
    if array.dtype.kind in "fV":
        return (
            short_exponent(str(item).removesuffix(".0")) if exact else significant(float(item), 6)
        )
    if array.dtype.kind == "O":
        return shorten(repr(item), _MAX_TEXT_LENGTH)
    return str(item).lower() if array.dtype == bool else str(item)
