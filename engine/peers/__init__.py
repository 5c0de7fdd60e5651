"""What other runtimes make of the same model and inputs, laid over our run."""

from __future__ import annotations

from engine.peers.differ import TOLERANCE, against
from engine.peers.fate import Fate, Fates, fates
from engine.peers.other_runtimes import runtime_of
from engine.peers.report import Difference, Quanta, Report

__all__ = ["TOLERANCE", "Difference", "Fate", "Fates", "Quanta", "Report", "against", "fates", "runtime_of"]
