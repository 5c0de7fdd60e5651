"""Two runs side by side, of two models or of one: what belongs together, and how far it is apart in each iteration."""

from __future__ import annotations

from loopscope.comparison.deviation import Deviations
from loopscope.comparison.drift import COMPARED, TOLERANCE, Drift, Moment, Pair, cosine_words, drift
from loopscope.comparison.growth import Growth
from loopscope.comparison.heat import OUTSIDE, Cell, Heat, HeatRow, Spot, heat_of_loops, heat_of_values, loops, operands, spot_of
from loopscope.comparison.matching import Matched
from loopscope.comparison.parting import Parting
from loopscope.comparison.rounding_costs import Candidate, Cost, Precision, precision
from loopscope.comparison.table import write_table

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
