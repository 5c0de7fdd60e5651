"""Size limit of arrays: kernels whose output size depends on a value check it here before they
allocate.
"""

from __future__ import annotations

from contextvars import ContextVar

MOST_ELEMENTS = 2**31
_allowed: ContextVar[int] = ContextVar("allowed_elements", default=MOST_ELEMENTS)


_at_once: ContextVar[int] = ContextVar("elements_at_once", default=MOST_ELEMENTS)


class TooLarge(Exception):
    """Error for an array that is larger than ``at_once`` allows, though within the limit of the
    run.
    """

    def __init__(self, elements: int) -> None:
        self.elements = elements
        super().__init__(f"an array of {elements} elements")


def check_elements(elements: int, what: str) -> None:
    """Raise ``ValueError`` if an array of ``elements`` elements exceeds the run's limit; ``what``
    names the array.

    >>> check_elements(2**40, "the range")
    Traceback (most recent call last):
    ValueError: the range would have 1099511627776 elements, more than the limit of 2147483648
    """
    check_whole(elements, what)
    if elements > _at_once.get():
        raise TooLarge(elements)


def check_whole(elements: int, what: str) -> None:
    """Raise ``ValueError`` like ``check_elements``, but never ``TooLarge``, for an array that
    cannot be computed in parts.
    """
    if elements > _allowed.get():
        raise ValueError(
            f"{what} would have {elements} elements, more than the limit of {_allowed.get()}"
        )


class _Bound:
    """A limit on elements, set while the context is open."""

    __slots__ = ("_elements", "_token", "_variable")

    def __init__(self, variable: ContextVar[int], elements: int | None) -> None:
        self._variable = variable
        self._elements = MOST_ELEMENTS if elements is None else elements

    def __enter__(self) -> None:
        self._token = self._variable.set(self._elements)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


def at_most(elements: int | None) -> _Bound:
    """Limit the elements of every array within the context; None sets the engine's own limit."""
    return _Bound(_allowed, elements)


def at_once(elements: int | None) -> _Bound:
    """Make ``check_elements`` raise ``TooLarge`` for larger arrays within the context."""
    return _Bound(_at_once, elements)
