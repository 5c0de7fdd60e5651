"""Matching of values of one shape by correlation: matching values vary together around one
level.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEAST = 0.9
"""Minimum concordance that is not chance; values rounded to eight bits have more than 0.999."""
_MIN_NUMBERS = 3
"""Minimum number of elements for a meaningful correlation."""
_TIE_TOLERANCE = 1e-6
"""Difference of two concordances below which the candidates count as tied."""


def tells(vector: np.ndarray) -> bool:
    """Return True if a correlation with these numbers is meaningful: finite, at least three, not
    all equal.
    """
    return bool(vector.size >= _MIN_NUMBERS and np.isfinite(vector).all() and np.ptp(vector) > 0)


def correlated(lefts: Sequence[np.ndarray], rights: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """Return index pairs of two sequences of equally long vectors in which each is the other's best
    match.

    All vectors must satisfy ``tells``. The measure is the concordance correlation coefficient (Lin
    1989), so that a value and its double do not match. Pairs below ``LEAST``, and pairs with an
    equally good second match, are omitted.

    >>> lefts = [np.array([1.0, 2, 3, 5]), np.array([4.0, 0, 3, 1])]
    >>> correlated(lefts, [np.array([4.1, 0, 3, 1]), np.array([1.1, 2, 3.1, 5])])
    [(0, 1), (1, 0)]
    """
    if not lefts or not rights:
        return []
    table = _concordance(np.stack(lefts).astype(np.float64), np.stack(rights).astype(np.float64))
    return [
        (row, column)
        for row, column in enumerate(np.argmax(table, axis=1).tolist())
        if table[row, column] >= LEAST
        and _stands_out(table[row], column)
        and _stands_out(table[:, column], row)
    ]


def _concordance(lefts: np.ndarray, rights: np.ndarray) -> np.ndarray:
    """Return the concordance of each row of one array with each row of the other: 1 if equal, 0 if
    unrelated.
    """
    means, variances = zip(
        *((side.mean(axis=1), side.var(axis=1)) for side in (lefts, rights)), strict=True
    )
    covariance = (lefts - means[0][:, None]) @ (rights - means[1][:, None]).T / lefts.shape[1]
    return np.asarray(
        2
        * covariance
        / (variances[0][:, None] + variances[1] + (means[0][:, None] - means[1]) ** 2)
    )


def _stands_out(row: np.ndarray, best: int) -> bool:
    return bool(np.delete(row, best).max(initial=-1.0) < row[best] - _TIE_TOLERANCE)
