"""Comparison of a run with other runtimes on the same model and inputs."""

from __future__ import annotations

from loopscope.peers.clock import Runtime, clock
from loopscope.peers.differ import TOLERANCE, against, beside, differences
from loopscope.peers.drifting import RuntimeDrift, drift_beside, drift_from_runtime, drift_of_opened
from loopscope.peers.fate import Fates, RuntimeFate, fates
from loopscope.peers.operation_times import Clock, Clocked, Iterations, time_words
from loopscope.peers.other_runtimes import runtime_of
from loopscope.peers.repaired import RepairComparison, compare_repair
from loopscope.peers.report import ComparisonReport, Quanta, ValueDifference
from loopscope.peers.runtime_process import (
    UNOPTIMIZED,
    RuntimeFailed,
    RuntimeName,
    RuntimeProcess,
    expect_installed,
)
from loopscope.peers.separate_results import (
    RuntimeLoads,
    SourceAlone,
    runtime_alone,
    runtimes_load,
    source_alone,
)
from loopscope.peers.source.compare_source import against_source
from loopscope.peers.source.program import Source, source_of
from loopscope.peers.source.source_report import SourceReport

__all__ = [
    "TOLERANCE",
    "UNOPTIMIZED",
    "Clock",
    "Clocked",
    "ComparisonReport",
    "Fates",
    "Iterations",
    "Quanta",
    "RepairComparison",
    "Runtime",
    "RuntimeDrift",
    "RuntimeFailed",
    "RuntimeFate",
    "RuntimeLoads",
    "RuntimeName",
    "RuntimeProcess",
    "Source",
    "SourceAlone",
    "SourceReport",
    "ValueDifference",
    "against",
    "against_source",
    "beside",
    "clock",
    "compare_repair",
    "differences",
    "drift_beside",
    "drift_from_runtime",
    "drift_of_opened",
    "expect_installed",
    "fates",
    "runtime_alone",
    "runtime_of",
    "runtimes_load",
    "source_alone",
    "source_of",
    "time_words",
]
