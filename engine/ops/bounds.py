"""How large an array may grow: every kernel whose output size comes from a value asks here before it allocates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

MOST_ELEMENTS = 2**31
_allowed: ContextVar[int] = ContextVar("allowed_elements", default=MOST_ELEMENTS)


def check_elements(elements: int, what: str) -> None:
    """``ValueError`` when an array of so many elements is more than the run allows; ``what`` names the array.

    >>> check_elements(2**40, "the range")
    Traceback (most recent call last):
    ValueError: the range would have 1099511627776 elements, more than the limit of 2147483648
    """
    if elements > _allowed.get():
        raise ValueError(f"{what} would have {elements} elements, more than the limit of {_allowed.get()}")


@contextmanager
def at_most(elements: int | None) -> Iterator[None]:
    """Within it, no array may have more elements than that; None: than the engine's own limit."""
    token = _allowed.set(MOST_ELEMENTS if elements is None else elements)
    try:
        yield
    finally:
        _allowed.reset(token)
