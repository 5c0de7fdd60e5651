"""How an error goes over the iterations of a loop: flat, growing, saturating, or there at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

_FEWEST = 4
"""Iterations of which anything can be said."""
_GROWN = 2.0
"""An error that has become so many times larger has grown."""
_STILL_GROWING = 1.25
"""So much more in the last quarter than in the second one."""
_JUMP = 10.0
"""An error that becomes so many times larger from one iteration to the next begins there."""
_OF_ITERATIONS = 128
"""The beginning is one of so many parts."""

Shape = Literal["flat", "grows", "saturates", "at once"]


@dataclass(frozen=True, slots=True)
class Growth:
    """What an error does over the iterations of one execution of a loop."""

    shape: Shape
    factor: float
    """Per iteration, fitted to the logarithms of the errors."""
    last: float
    """The median of the last quarter."""

    @property
    def words(self) -> str:
        """The end of a sentence about the error."""
        match self.shape:
            case "flat":
                return "stays flat"
            case "grows":
                return f"grows {self._factor} times per iteration"
            case "saturates":
                return f"grows, then saturates near {self.last:.2g}"
            case "at once":
                return f"is there at once, near {self.last:.2g}, and does not grow"

    @property
    def _factor(self) -> str:
        """With as many digits as tell it from 1."""
        digits = 2
        while digits < 6 and abs(self.factor - 1) < 2 * 10.0**-digits:
            digits += 1
        return f"{self.factor:.{digits}f}"


def growth(errors: np.ndarray, tolerance: float) -> Growth | None:
    """Of the errors of consecutive iterations; None where too few of them are finite and not 0.

    An error that jumps over the tolerance begins there. From its beginning on it is ``flat`` (or
    ``at once``, where it is over the tolerance) when the last quarter is less than twice the
    beginning; else it ``saturates`` when the last quarter is about the second quarter, and
    ``grows`` when it is more.

    >>> growth(np.full(20, 0.01), 1e-3).words
    'is there at once, near 0.01, and does not grow'
    >>> growth(1e-4 * 1.07 ** np.arange(60), 1e-3).words
    'grows 1.07 times per iteration'
    """
    errors = _from_its_beginning(errors[np.isfinite(errors)], tolerance)
    iterations = np.flatnonzero(errors > 0)
    if len(iterations) < _FEWEST:
        return None
    values = errors[iterations]
    count = len(values)
    begin = float(np.median(values[: max(1, count // _OF_ITERATIONS)]))
    quarter = max(1, count // 4)
    second, last = (
        float(np.median(part)) for part in (values[quarter : 2 * quarter], values[-quarter:])
    )
    factor = float(np.exp(np.polyfit(iterations, np.log(values), 1)[0]))
    if last < _GROWN * begin:
        return Growth("at once" if begin > tolerance else "flat", factor, last)
    return Growth("grows" if last > _STILL_GROWING * second else "saturates", factor, last)


def _from_its_beginning(errors: np.ndarray, tolerance: float) -> np.ndarray:
    over = np.flatnonzero(errors > tolerance)
    if not len(over) or not over[0]:
        return errors
    before = float(errors[over[0] - 1])
    return errors[over[0] :] if errors[over[0]] > _JUMP * before else errors
