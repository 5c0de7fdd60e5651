"""Growth of an error over the iterations of a loop: flat, growing, saturating, or present at
once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.ir.number_text import significant

_MIN_ITERATIONS = 4
"""Minimum number of iterations for a verdict."""
_GROWTH_FACTOR = 2.0
"""Factor from which an error counts as grown."""
_LATE_GROWTH_FACTOR = 1.25
"""Ratio of the last to the second quarter above which an error is still growing."""
_JUMP_FACTOR = 10.0
"""Factor between two iterations from which an error counts as beginning at the later one."""
_BEGINNING_DIVISOR = 128
"""The beginning is the first 1/128 of the iterations."""

Shape = Literal["flat", "grows", "saturates", "at once", "fades"]


@dataclass(frozen=True, slots=True)
class Growth:
    """Development of an error over one execution of a loop."""

    shape: Shape
    factor: float
    """Factor per iteration, fitted to the logarithms of the errors."""
    last: float
    """Median of the last quarter."""

    @property
    def words(self) -> str:
        """End of a sentence about the error."""
        match self.shape:
            case "flat":
                return "stays flat"
            case "grows":
                return f"grows {self._factor} times per iteration"
            case "saturates":
                return f"grows, then saturates near {significant(self.last, 2)}"
            case "fades":
                return f"then fades to {significant(self.last, 2)}"
            case "at once":
                return f"is there at once, near {significant(self.last, 2)}, and does not grow"

    @property
    def _factor(self) -> str:
        """Factor with enough digits to differ from 1."""
        digits = 2
        while digits < 6 and abs(self.factor - 1) < 2 * 10.0**-digits:
            digits += 1
        return f"{self.factor:.{digits}f}"


def growth(errors: np.ndarray, tolerance: float) -> Growth | None:
    """Return the growth of the errors of consecutive iterations; None with too few finite nonzero
    errors.

    An error that jumps over the tolerance begins there; earlier iterations are ignored. If the last
    quarter is less than twice the beginning, the error is ``flat``, or ``at once`` if the beginning
    is over the tolerance. It ``fades`` if it then falls to less than a tenth of the beginning.
    Otherwise it ``saturates`` if the last quarter is about the second quarter, and ``grows`` if it
    is more.

    >>> growth(np.full(20, 0.01), 1e-3).words
    'is there at once, near 0.01, and does not grow'
    >>> growth(1e-4 * 1.07 ** np.arange(60), 1e-3).words
    'grows 1.07 times per iteration'
    """
    errors = _from_its_beginning(errors[np.isfinite(errors)], tolerance)
    iterations = np.flatnonzero(errors > 0)
    if len(iterations) < _MIN_ITERATIONS:
        return None
    values = errors[iterations]
    count = len(values)
    begin = float(np.median(values[: max(1, count // _BEGINNING_DIVISOR)]))
    quarter = max(1, count // 4)
    second, last = (
        float(np.median(part)) for part in (values[quarter : 2 * quarter], values[-quarter:])
    )
    factor = float(np.exp(np.polyfit(iterations, np.log(values), 1)[0]))
    if last < _GROWTH_FACTOR * begin:
        if begin > tolerance and last * _JUMP_FACTOR < begin:
            return Growth("fades", factor, last)
        return Growth("at once" if begin > tolerance else "flat", factor, last)
    return Growth("grows" if last > _LATE_GROWTH_FACTOR * second else "saturates", factor, last)


def _from_its_beginning(errors: np.ndarray, tolerance: float) -> np.ndarray:
    over = np.flatnonzero(errors > tolerance)
    if not len(over) or not over[0]:
        return errors
    before = float(errors[over[0] - 1])
    return errors[over[0] :] if errors[over[0]] > _JUMP_FACTOR * before else errors
