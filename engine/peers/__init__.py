"""What other runtimes make of the same model and inputs, laid over our run."""

from __future__ import annotations

from engine.peers.clock import clock
from engine.peers.clocked import Clock, Clocked, Iterations
from engine.peers.differ import TOLERANCE, against
from engine.peers.drifting import RuntimeDrift, drift_from_runtime
from engine.peers.fate import Fate, Fates, fates
from engine.peers.other_runtimes import runtime_of
from engine.peers.report import Difference, Quanta, Report

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
    "RuntimeDrift",
    "against",
    "clock",
    "drift_from_runtime",
    "fates",
    "runtime_of",
]
