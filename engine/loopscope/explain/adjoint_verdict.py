"""Verdict on an adjoint over a backward loop: it flows, vanishes, explodes, is cut off, or does not
flow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.ir.iteration import iteration_words
from loopscope.ir.number_text import significant

FAR_FROM = 1e3
"""Factor by which an adjoint must shrink to have vanished, or grow to have exploded."""
_FACTOR_TOLERANCE = 0.05
"""Relative tolerance within which a factor counts as halving, staying or doubling."""

Kind = Literal["flows", "vanishes", "explodes", "is cut off", "does not flow", "is not a number"]


@dataclass(frozen=True, slots=True)
class AdjointFate:
    """Development of an adjoint, without the reason."""

    kind: Kind
    start: float
    """First norm that is not 0."""
    last: float
    """Norm at the earliest iteration reached."""
    begins: int
    """Place of ``start``: the iteration at whose beginning it is measured, or the count for the
    end.
    """
    last_place: int
    """Place of ``last``; for a cut-off adjoint, the iteration that cuts it off."""
    count: int
    """Iteration count of the forward loop."""
    factor: float | None
    """Factor per backward iteration, fitted to the logarithms of the norms.

    None if fewer than three norms are finite and not 0.
    """

    def words(self, reason: str = "") -> str:
        """Return the verdict; ``reason``: why the adjoint is cut off or does not flow."""
        because = f": {reason}" if reason else ""
        match self.kind:
            case "does not flow" if not self.count:
                return "does not flow: there was no iteration"
            case "does not flow":
                return f"does not flow{because or ': it is 0 in every iteration'}"
            case "is cut off":
                return f"is cut off in {iteration_words(self.last_place)}{because}"
            case "is not a number":
                return f"is not a number from {iteration_words(self.last_place)} back"
            case _:
                ends = ((self.start, self.begins), (self.last, self.last_place))
                way = " to ".join(
                    f"{significant(norm, 2)} {_place(place, self.count)}" for norm, place in ends
                )
                pace = (
                    ""
                    if self.factor is None or not math.isfinite(self.last)
                    else f"; {_pace(self.factor)}"
                )
                return f"{self.kind}: from {way}{pace}"


def fate(places: np.ndarray, norms: np.ndarray, count: int, smallest: float) -> AdjointFate:
    """Return the development of an adjoint with these norms.

    ``places``: iterations at whose beginning the norms are measured, from ``count`` (the end)
    downwards. ``smallest``: smallest normal number of the type. A 0 after numbers of that size is
    an underflow.

    >>> fate(np.arange(31)[::-1], 0.5 ** np.arange(31), 30, 1e-38).words()
    'vanishes: from 1 at the end to 9.3e-10 in iteration 0; it halves per iteration'

    ``places``: the iteration at whose beginning each stands, in the order of the way back, so from
    ``count``, the end, down. ``least``: the smallest normal number of its type; what is 0 after
    numbers about as small was too small for the type.

    >>> fate(np.arange(31)[::-1], 0.5 ** np.arange(31), 30, 1e-38).words()
    'vanishes: from 1 at the end to 9.3e-10 in iteration 0; it halves per iteration'
    """
    flowing = np.flatnonzero(norms != 0)
    if not len(flowing):
        return AdjointFate(
            "does not flow", 0.0, 0.0, count, int(places[-1]) if len(places) else count, count, None
        )
    first, end = int(flowing[0]), int(flowing[-1])
    start, begins = float(norms[first]), int(places[first])
    factor = _factor(places, norms)
    not_finite = np.flatnonzero(~np.isfinite(norms))
    if len(not_finite):
        place = int(places[not_finite[0]])
        kind: Kind = "explodes" if np.isinf(norms[not_finite[0]]) else "is not a number"
        return AdjointFate(kind, start, float(norms[not_finite[0]]), begins, place, count, factor)
    if end + 1 < len(norms):
        if norms[end] > FAR_FROM * smallest or (factor is not None and factor > 1):
            return AdjointFate(
                "is cut off", start, 0.0, begins, int(places[end + 1]), count, factor
            )
        return AdjointFate("vanishes", start, 0.0, begins, int(places[end + 1]), count, factor)
    last, place = float(norms[end]), int(places[end])
    ratio = last / start
    kind = "vanishes" if ratio < 1 / FAR_FROM else "explodes" if ratio > FAR_FROM else "flows"
    return AdjointFate(kind, start, last, begins, place, count, factor)


def _factor(places: np.ndarray, norms: np.ndarray) -> float | None:
    usable = np.isfinite(norms) & (norms > 0)
    if usable.sum() < 3:
        return None
    return float(np.exp(-np.polyfit(places[usable], np.log(norms[usable]), 1)[0]))


def _pace(factor: float) -> str:
    if abs(factor - 0.5) <= 0.5 * _FACTOR_TOLERANCE:
        return "it halves per iteration"
    if abs(factor - 2) <= 2 * _FACTOR_TOLERANCE:
        return "it doubles per iteration"
    if factor < 1 - _FACTOR_TOLERANCE / 10:
        return f"it shrinks to {significant(factor, 2)} of its size per iteration"
    if factor > 1 + _FACTOR_TOLERANCE / 10:
        return f"it grows {significant(factor, 3)} times per iteration"
    return "it stays about the same"


def _place(place: int, count: int) -> str:
    return "at the end" if place == count else f"in {iteration_words(place)}"
