"""What other runtimes make of the same model and inputs, laid over our run."""

from __future__ import annotations

from engine.peers.clock import Runtime, clock
from engine.peers.clocked import Clock, Clocked, Iterations, time_words
from engine.peers.differ import TOLERANCE, against, beside, differences
from engine.peers.drifting import RuntimeDrift, drift_beside, drift_from_runtime
from engine.peers.fate import Fate, Fates, fates
from engine.peers.other_runtimes import runtime_of
from engine.peers.report import Difference, Quanta, Report
from engine.peers.runtime_alone import runtime_alone
from engine.peers.source.beside_source import against_source
from engine.peers.source.program import Source, source_of
from engine.peers.source.source_alone import SourceAlone, source_alone
from engine.peers.source.source_report import SourceReport

__all__ = [
    "TOLERANCE",
    "Clock",
    "Clocked",
    "Difference",
    "Fate",
    "Fates",
    "Iterations",
    "Quanta",
    "Report",
    "Runtime",
    "RuntimeDrift",
    "Source",
    "SourceAlone",
    "SourceReport",
    "against",
    "against_source",
    "beside",
    "clock",
    "differences",
    "drift_beside",
    "drift_from_runtime",
    "fates",
    "runtime_alone",
    "runtime_of",
    "source_alone",
    "source_of",
    "time_words",
]
