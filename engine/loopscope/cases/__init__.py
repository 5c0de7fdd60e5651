"""Cases: a part of a model with recorded values, and the smallest model that shows a fault."""

from __future__ import annotations

from loopscope.cases.candidate import Candidate
from loopscope.cases.case import Case, recorded_case
from loopscope.cases.case_folder import FILES, code_span, cut_folder, refuse_folder, write_case
from loopscope.cases.faults import Difference, Fault, NotANumber, RuntimeFailure
from loopscope.cases.reduce import Reduced, reduce
from loopscope.cases.reproduction_folder import (
    operations_sentence,
    reproduction_folder,
    size_sentence,
)
from loopscope.cases.runner_script import Goal
from loopscope.cases.search import ReductionSearch

__all__ = [
    "FILES",
    "Candidate",
    "Case",
    "Difference",
    "Fault",
    "Goal",
    "NotANumber",
    "Reduced",
    "ReductionSearch",
    "RuntimeFailure",
    "code_span",
    "cut_folder",
    "operations_sentence",
    "recorded_case",
    "reduce",
    "refuse_folder",
    "reproduction_folder",
    "size_sentence",
    "write_case",
]
