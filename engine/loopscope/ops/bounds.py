"""How large an array may grow: every kernel whose output size comes from a value asks here
before it allocates.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

MOST_ELEMENTS = 2**31
_allowed: ContextVar[int] = ContextVar("allowed_elements", default=MOST_ELEMENTS)


_at_once: ContextVar[int] = ContextVar("elements_at_once", default=MOST_ELEMENTS)


class TooLarge(Exception):
    """An array is larger than ``at_once`` allows, though not larger than the run allows."""

    def __init__(self, elements: int) -> None:
        self.elements = elements
        super().__init__(f"an array of {elements} elements")


def check_elements(elements: int, what: str) -> None:
    """``ValueError`` when an array of so many elements is more than the run allows; ``what`` names
    the array.

    >>> check_elements(2**40, "the range")
    Traceback (most recent call last):
    ValueError: the range would have 1099511627776 elements, more than the limit of 2147483648
    """
    check_whole(elements, what)
    if elements > _at_once.get():
        raise TooLarge(elements)


def check_whole(elements: int, what: str) -> None:
    """``ValueError`` like ``check_elements``, for an array that cannot be made again where
    ``TooLarge`` is raised.
    """
    if elements > _allowed.get():
        raise ValueError(
            f"{what} would have {elements} elements, more than the limit of {_allowed.get()}"
        )


@contextmanager
def at_most(elements: int | None) -> Iterator[None]:
    """Within it, no array may have more elements than that; None: than the engine's own limit."""
    token = _allowed.set(MOST_ELEMENTS if elements is None else elements)
    try:
        yield
    finally:
        _allowed.reset(token)


@contextmanager
def at_once(elements: int | None) -> Iterator[None]:
    """Within it, ``check_elements`` raises ``TooLarge`` for an array of more elements."""
    token = _at_once.set(MOST_ELEMENTS if elements is None else elements)
    try:
        yield
    finally:
        _at_once.reset(token)
