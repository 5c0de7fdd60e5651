"""Checks of a model before it runs: faults and oddities as diagnostics, and propagated types and
shapes.
"""

from __future__ import annotations

from loopscope.checks import text
from loopscope.checks.check import advice, check, own_runtimes
from loopscope.checks.costs import ComputeCost, ModelCosts, costs
from loopscope.checks.diagnostic import EVERYBODY, Diagnostic, Group, Report, Runtime, Severity
from loopscope.checks.input_facts import compared_constants, misfits
from loopscope.checks.mac_formulas import macs_of_node
from loopscope.checks.rule import Rule
from loopscope.checks.rules import ADVICE, BY_CODE

__all__ = [
    "ADVICE",
    "BY_CODE",
    "EVERYBODY",
    "ComputeCost",
    "Diagnostic",
    "Group",
    "ModelCosts",
    "Report",
    "Rule",
    "Runtime",
    "Severity",
    "advice",
    "check",
    "compared_constants",
    "costs",
    "macs_of_node",
    "misfits",
    "own_runtimes",
    "text",
]
