"""Numbers as short texts: rounded to significant digits, for sentences, wires and tables."""

from __future__ import annotations

import math

import numpy as np

_SMALLEST, _LARGEST = 1e-4, 1e6
"""Magnitudes between which a number is written without an exponent."""


def significant(number: float | int | np.generic, digits: int = 4) -> str:
    """Return a number rounded to significant digits, without trailing zeros.

    Integers are exact. The integer part of other numbers keeps all its digits below a million,
    where no exponent is used.

    >>> significant(3.0), significant(0.123456), significant(-0.5), significant(12345.67)
    ('3', '0.1235', '-0.5', '12346')
    >>> significant(0.0001), significant(3e-10), significant(1234567.0), significant(1e20, 2)
    ('0.0001', '3e-10', '1.235e6', '1e20')
    >>> significant(float("nan")), significant(float("-inf")), significant(1234567)
    ('NaN', '-infinity', '1234567')
    """
    if isinstance(number, bool | np.bool_):
        return "true" if number else "false"
    if isinstance(number, int | np.integer):
        return str(int(number))
    value = float(number)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value}inity"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    return f"{value:.0f}" if _SMALLEST <= abs(value) < _LARGEST else short_exponent(text)


def short_exponent(text: str) -> str:
    """Return the text of a number without a plus and leading zeros in its exponent.

    >>> short_exponent("1e-07"), short_exponent("1.5e+20"), short_exponent("0.25")
    ('1e-7', '1.5e20', '0.25')
    """
    mantissa, marked, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if marked else text
