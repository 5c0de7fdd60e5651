"""Numbers as short words: rounded to significant digits, without digits that are not known."""

from __future__ import annotations

import math

import numpy as np

_PLAIN_FROM, _PLAIN_TO = 1e-4, 1e6
"""Magnitudes between which a number has no exponent."""
_EXACT_UP_TO = 10**15
"""Magnitude below which an integer has all its digits."""


def significant(number: float | int | np.generic, digits: int = 4) -> str:
    """Return a number with at most ``digits`` significant digits.

    Integers have all their digits. Numbers between 1e-4 and 1e6 have no exponent.

    >>> significant(3.0), significant(0.000123456), significant(123456.7), significant(-0.5)
    ('3', '0.0001235', '123,500', '-0.5')
    >>> significant(3.0e-10, 1), significant(1234567.0), significant(0.0), significant(17)
    ('3e-10', '1.235e6', '0', '17')
    >>> significant(float("nan")), significant(float("-inf")), significant(True)
    ('NaN', '-infinity', 'true')
    """
    if isinstance(number, bool | np.bool_):
        return str(bool(number)).lower()
    if isinstance(number, int | np.integer) and abs(int(number)) < _EXACT_UP_TO:
        return f"{int(number):,}"
    value = float(number)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    if not value:
        return "0"
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    power = int(exponent)
    if _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        places = max(0, digits - 1 - power)
        text = f"{round(value, digits - 1 - power):,.{places}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{power}"
