"""What other runtimes make of the same model and inputs, laid over our run."""

from __future__ import annotations

from engine.peers.differ import TOLERANCE, Difference, Report, against

__all__ = ["TOLERANCE", "Difference", "Report", "against"]
