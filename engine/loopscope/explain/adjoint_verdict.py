"""How an adjoint fares on its way back through a loop, in words: it flows, vanishes, explodes,
is cut off, or does not flow at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.ir.iteration import iteration_words

FAR_FROM = 1e3
"""An adjoint that has become so many times smaller has vanished; one that has become so many
times larger has exploded.
"""
_ABOUT = 0.05
"""How far from 1/2, 1 and 2 a factor still is called halving, staying and doubling, relative to
it.
"""

Kind = Literal["flows", "vanishes", "explodes", "is cut off", "does not flow", "is not a number"]


@dataclass(frozen=True, slots=True)
class AdjointFate:
    """What becomes of an adjoint, without the reason."""

    kind: Kind
    start: float
    """The norm where it begins to be other than 0."""
    last: float
    """The norm as far back as it came."""
    begins: int
    """The place of ``start``, and of what ``at`` says: the iteration at whose beginning it
    stands, the number of iterations for the end.
    """
    at: int
    """The place of ``last``; of what is cut off, the iteration that does so."""
    count: int
    """Iterations of the forward loop."""
    factor: float | None
    """Per iteration on the way back, fitted to the logarithms of the norms; None where fewer
    than three are finite and not 0.
    """

    def words(self, reason: str = "") -> str:
        """The verdict; ``reason``: why it is cut off or does not flow."""
        because = f": {reason}" if reason else ""
        match self.kind:
            case "does not flow" if not self.count:
                return "does not flow: there was no iteration"
            case "does not flow":
                return f"does not flow{because or ': it is 0 in every iteration'}"
            case "is cut off":
                return f"is cut off in {iteration_words(self.at)}{because}"
            case "is not a number":
                return f"is not a number from {iteration_words(self.at)} back"
            case _:
                ends = ((self.start, self.begins), (self.last, self.at))
                way = " to ".join(
                    f"{short_number(norm)} {_place(place, self.count)}" for norm, place in ends
                )
                pace = (
                    ""
                    if self.factor is None or not math.isfinite(self.last)
                    else f"; {_pace(self.factor)}"
                )
                return f"{self.kind}: from {way}{pace}"


def fate(places: np.ndarray, norms: np.ndarray, count: int, least: float) -> AdjointFate:
    """What becomes of an adjoint with these norms.

    ``places``: the iteration at whose beginning each stands, in the order of the way back, so from
    ``count``, the end, down. ``least``: the smallest normal number of its type; what is 0 after
    numbers about as small was too small for the type.

    >>> fate(np.arange(31)[::-1], 0.5 ** np.arange(31), 30, 1e-38).words()
    'vanishes: from 1.0 at the end to 9.3e-10 in iteration 0; it halves per iteration'
    """
    flowing = np.flatnonzero(norms != 0)
    if not len(flowing):
        return AdjointFate(
            "does not flow", 0.0, 0.0, count, int(places[-1]) if len(places) else count, count, None
        )
    first, end = int(flowing[0]), int(flowing[-1])
    start, begins = float(norms[first]), int(places[first])
    factor = _factor(places, norms)
    odd = np.flatnonzero(~np.isfinite(norms))
    if len(odd):
        at = int(places[odd[0]])
        kind: Kind = "explodes" if np.isinf(norms[odd[0]]) else "is not a number"
        return AdjointFate(kind, start, float(norms[odd[0]]), begins, at, count, factor)
    if end + 1 < len(norms):
        if norms[end] > FAR_FROM * least or (factor is not None and factor > 1):
            return AdjointFate(
                "is cut off", start, 0.0, begins, int(places[end + 1]), count, factor
            )
        return AdjointFate("vanishes", start, 0.0, begins, int(places[end + 1]), count, factor)
    last, at = float(norms[end]), int(places[end])
    grown = last / start
    kind = "vanishes" if grown < 1 / FAR_FROM else "explodes" if grown > FAR_FROM else "flows"
    return AdjointFate(kind, start, last, begins, at, count, factor)


def _factor(places: np.ndarray, norms: np.ndarray) -> float | None:
    usable = np.isfinite(norms) & (norms > 0)
    if usable.sum() < 3:
        return None
    return float(np.exp(-np.polyfit(places[usable], np.log(norms[usable]), 1)[0]))


def _pace(factor: float) -> str:
    if abs(factor - 0.5) <= 0.5 * _ABOUT:
        return "it halves per iteration"
    if abs(factor - 2) <= 2 * _ABOUT:
        return "it doubles per iteration"
    if factor < 1 - _ABOUT / 10:
        return f"it shrinks to {factor:.2g} of its size per iteration"
    if factor > 1 + _ABOUT / 10:
        return f"it grows {factor:.3g} times per iteration"
    return "it stays about the same"


def _place(place: int, count: int) -> str:
    return "at the end" if place == count else f"in {iteration_words(place)}"


def short_number(value: float) -> str:
    """With two digits.

    >>> short_number(1.0), short_number(3.14e-9), short_number(float("inf")), short_number(443.4), short_number(123456.0)
    ('1.0', '3.1e-9', 'infinity', '440', '1.2e5')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity"
    if value == round(value) and abs(value) < 100:
        return f"{value:.1f}"
    digits, e, exponent = f"{value:.2g}".partition("e")
    if e and 0 < int(exponent) < 4:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{digits}e{int(exponent)}" if e else digits
