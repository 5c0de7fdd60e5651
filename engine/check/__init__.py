"""Faults and oddities of a model, and the types and shapes that are known before it runs: diagnostics as data."""

from __future__ import annotations

from engine.check import text
from engine.check.check import check, own_runtimes
from engine.check.compared import compared_constants
from engine.check.diagnostic import EVERYBODY, Diagnostic, Group, Report, Runtime, Severity
from engine.check.misfits import misfits
from engine.check.rule import Rule
from engine.check.rules import BY_CODE

__all__ = [
    "BY_CODE",
    "EVERYBODY",
    "Diagnostic",
    "Group",
    "Report",
    "Rule",
    "Runtime",
    "Severity",
    "check",
    "compared_constants",
    "misfits",
    "own_runtimes",
    "text",
]
