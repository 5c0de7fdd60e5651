"""Two runs side by side, of two models or of one: what belongs together, and how far it is apart in each iteration."""

from __future__ import annotations

from engine.compare.deviation import Deviations
from engine.compare.drift import TOLERANCE, Drift, drift
from engine.compare.growth import Growth
from engine.compare.matching import Matched
from engine.compare.parting import Parting
from engine.compare.rounding_costs import Candidate, Cost, Precision, precision
from engine.compare.table import write_table

__all__ = [
    "TOLERANCE",
    "Candidate",
    "Cost",
    "Deviations",
    "Drift",
    "Growth",
    "Matched",
    "Parting",
    "Precision",
    "drift",
    "precision",
    "write_table",
]
