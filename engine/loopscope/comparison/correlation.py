"""Which of several values of one shape belong together: those that go up and down with each
other, at one height.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEAST = 0.9
"""Of a concordance that is more than chance; rounding to eight bits keeps more than 0.999."""
_FEWEST = 3
"""Numbers from which it says anything."""
_TIE = 1e-6
"""Two candidates that are as near as that to each other are not told apart."""


def tells(vector: np.ndarray) -> bool:
    """Whether a correlation with these numbers says anything: they are finite, at least three,
    and not all the same.
    """
    return bool(vector.size >= _FEWEST and np.isfinite(vector).all() and np.ptp(vector) > 0)


def correlated(mine: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """Pairs of numbers of two sequences of vectors of one length, of which a correlation ``tells``
    something: each is the other's best.

    Measured by the concordance correlation coefficient (Lin 1989), so that a value and twice that
    value do not belong together; pairs of less than ``LEAST`` are left out, and so are those whose
    second best is as good.

    >>> correlated([np.array([1.0, 2, 3, 5]), np.array([4.0, 0, 3, 1])], [np.array([4.1, 0, 3, 1]), np.array([1.1, 2, 3.1, 5])])
    [(0, 1), (1, 0)]
    """
    if not mine or not theirs:
        return []
    table = _concordance(np.stack(mine).astype(np.float64), np.stack(theirs).astype(np.float64))
    return [
        (row, column)
        for row, column in enumerate(np.argmax(table, axis=1).tolist())
        if table[row, column] >= LEAST
        and _stands_out(table[row], column)
        and _stands_out(table[:, column], row)
    ]


def _concordance(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Of each row of one array with each of the other: 1 where they are equal, 0 where they have
    nothing in common.
    """
    means, variances = zip(
        *((side.mean(axis=1), side.var(axis=1)) for side in (mine, theirs)), strict=True
    )
    together = (mine - means[0][:, None]) @ (theirs - means[1][:, None]).T / mine.shape[1]
    return np.asarray(
        2 * together / (variances[0][:, None] + variances[1] + (means[0][:, None] - means[1]) ** 2)
    )


def _stands_out(row: np.ndarray, best: int) -> bool:
    return bool(np.delete(row, best).max(initial=-1.0) < row[best] - _TIE)
