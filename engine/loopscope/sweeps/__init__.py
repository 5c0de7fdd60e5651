"""Sweeps: one model over many inputs with a row for each, run serially, in lanes, in processes, or
on a cluster.
"""

from __future__ import annotations

from loopscope.sweeps.changed_samples import Change, Changes, changes, changes_between
from loopscope.sweeps.explain_split import (
    Separation,
    features_of,
    numbers,
    places_where,
    separation,
)
from loopscope.sweeps.row_layout import RowLayout
from loopscope.sweeps.samples import (
    Samples,
    completed,
    input_position,
    of_table,
    one_sample,
    samples_of,
    samples_said,
    seed_said,
)
from loopscope.sweeps.storage import table_paths
from loopscope.sweeps.summary import SweepSummary
from loopscope.sweeps.sweep import Sweep, sweep

__all__ = [
    "Change",
    "Changes",
    "RowLayout",
    "Samples",
    "Separation",
    "Sweep",
    "SweepSummary",
    "changes",
    "changes_between",
    "completed",
    "features_of",
    "input_position",
    "numbers",
    "of_table",
    "one_sample",
    "places_where",
    "samples_of",
    "samples_said",
    "seed_said",
    "separation",
    "sweep",
    "table_paths",
]
