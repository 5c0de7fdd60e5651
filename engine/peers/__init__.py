"""What other runtimes make of the same model and inputs, laid over our run."""

from __future__ import annotations

from engine.peers.differ import TOLERANCE, Difference, Report, against
from engine.peers.fate import Fate, Fates, fates
from engine.peers.other_runtimes import runtime_of

__all__ = ["TOLERANCE", "Difference", "Fate", "Fates", "Report", "against", "fates", "runtime_of"]
