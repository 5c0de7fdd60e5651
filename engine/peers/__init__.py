"""What other runtimes make of the same model and inputs, laid over our run."""

from __future__ import annotations

from engine.peers.differ import TOLERANCE, against
from engine.peers.drifting import RuntimeDrift, drift_from_runtime
from engine.peers.fate import Fate, Fates, fates
from engine.peers.other_runtimes import runtime_of
from engine.peers.report import Difference, Quanta, Report

__all__ = [
    "TOLERANCE",
    "Difference",
    "Fate",
    "Fates",
    "Quanta",
    "Report",
    "RuntimeDrift",
    "against",
    "drift_from_runtime",
    "fates",
    "runtime_of",
]
