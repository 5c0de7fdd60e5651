"""Cases: a part of a model with recorded values, and the smallest model that shows a fault."""

from __future__ import annotations

from loopscope.cases.case import (
    FILES,
    RUNTIMES,
    Case,
    code_span,
    cut_folder,
    recorded_case,
    refuse_folder,
    write_case,
)
from loopscope.cases.fault_search import (
    Candidate,
    Difference,
    Fault,
    NotANumber,
    ReductionSearch,
    RuntimeFailure,
)
from loopscope.cases.reduce import (
    Reduced,
    operations_sentence,
    reduce,
    reproduction_folder,
    size_sentence,
)
from loopscope.cases.runner_script import Goal

__all__ = [
    "FILES",
    "RUNTIMES",
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
