"""Transformations of models: gradients, rounding, opened operators, parts, repairs."""

from __future__ import annotations

from loopscope.transform.repair import REPAIRABLE, Repair, repair

__all__ = ["REPAIRABLE", "Repair", "repair"]
