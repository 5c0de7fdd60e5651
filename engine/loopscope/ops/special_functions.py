"""Special functions of scipy, imported on first use because importing scipy takes longer than
checking a small model.
"""

from __future__ import annotations

import numpy as np


def erf(numbers: np.ndarray, /) -> np.ndarray:
    from scipy import special

    return special.erf(numbers)


def erfinv(numbers: np.ndarray, /) -> np.ndarray:
    from scipy import special

    return special.erfinv(numbers)


def expit(numbers: np.ndarray, /) -> np.ndarray:
    from scipy import special

    return special.expit(numbers)


def softmax(numbers: np.ndarray, /, axis: int) -> np.ndarray:
    from scipy import special

    return special.softmax(numbers, axis=axis)
