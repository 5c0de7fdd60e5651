"""Two runs side by side, of two models or of one: what belongs together, and how far it is apart in each iteration."""

from __future__ import annotations

from engine.compare.deviation import Deviations
from engine.compare.drift import COMPARED, TOLERANCE, Drift, Moment, Pair, cosine_words, drift
from engine.compare.growth import Growth
from engine.compare.heat import OUTSIDE, Cell, Heat, HeatRow, Spot, heat_of_loops, heat_of_values, loops, operands, spot_of
from engine.compare.matching import Matched
from engine.compare.parting import Parting
from engine.compare.rounding_costs import Candidate, Cost, Precision, precision
from engine.compare.table import write_table

__all__ = [
    "COMPARED",
    "OUTSIDE",
    "TOLERANCE",
    "Candidate",
    "Cell",
    "Cost",
    "Deviations",
    "Drift",
    "Growth",
    "Heat",
    "HeatRow",
    "Matched",
    "Moment",
    "Pair",
    "Parting",
    "Precision",
    "Spot",
    "cosine_words",
    "drift",
    "heat_of_loops",
    "heat_of_values",
    "loops",
    "operands",
    "precision",
    "spot_of",
    "write_table",
]
