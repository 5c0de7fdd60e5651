"""Comparison of two runs, of one model or of two: matching values and their deviation in each
iteration.
"""

from __future__ import annotations

from loopscope.comparison.chunks import Alignment
from loopscope.comparison.deviation import Deviations
from loopscope.comparison.divergence import Divergence
from loopscope.comparison.drift import COMPARED, TOLERANCE, Drift, drift
from loopscope.comparison.drift_tables import (
    OUTSIDE,
    Cell,
    Heat,
    HeatRow,
    Spot,
    heat_of_loops,
    heat_of_values,
    loops,
    operands,
    spot_of,
    write_table,
)
from loopscope.comparison.matched_slots import Growth, MatchedSlots, Moment, cosine_words
from loopscope.comparison.matching import Matched
from loopscope.comparison.region_matching import RequestedPair
from loopscope.comparison.rounding_costs import Cost, Precision, RoundingCandidate, precision
from loopscope.comparison.same_outputs import SameOutputs, same_outputs
from loopscope.comparison.structure_diff import (
    INSIDE,
    STATUSES,
    StructureChange,
    StructureDiff,
    structure_diff,
)

__all__ = [
    "COMPARED",
    "INSIDE",
    "OUTSIDE",
    "STATUSES",
    "TOLERANCE",
    "Alignment",
    "Cell",
    "Cost",
    "Deviations",
    "Divergence",
    "Drift",
    "Growth",
    "Heat",
    "HeatRow",
    "Matched",
    "MatchedSlots",
    "Moment",
    "Precision",
    "RequestedPair",
    "RoundingCandidate",
    "SameOutputs",
    "Spot",
    "StructureChange",
    "StructureDiff",
    "cosine_words",
    "drift",
    "heat_of_loops",
    "heat_of_values",
    "loops",
    "operands",
    "precision",
    "same_outputs",
    "spot_of",
    "structure_diff",
    "write_table",
]
