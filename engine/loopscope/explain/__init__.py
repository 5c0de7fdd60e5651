"""Analyses of a run: why a loop ended, its pattern, the history of a value, and its provenance."""

from __future__ import annotations

from loopscope.explain.adjoint_pairs import RegionPair, computed_again, copies_of, ties
from loopscope.explain.adjoints import (
    AdjointHistory,
    BranchWalkedBack,
    WalkedBack,
    branches_of,
    counterpart,
    walked_back,
    walks_of,
)
from loopscope.explain.ask import ExpressionResult, ask
from loopscope.explain.code import listing, runnable_code
from loopscope.explain.code_parts import CodeLine, Listing, fits_in_code
from loopscope.explain.compare import Comparison, RunDifference, compare, first_control_flow
from loopscope.explain.contributions import Contribution
from loopscope.explain.dependences import Dependences, OperationExecution, dependences
from loopscope.explain.executions import (
    ExecutionHistory,
    branch_history,
    executions,
    how_often,
    taken_paths,
)
from loopscope.explain.export import EXPORT_FORMATS, export
from loopscope.explain.facts import Fact, Margin, deciding
from loopscope.explain.fragile import FragileDecision, fragile
from loopscope.explain.icicle import Icicle, IcicleSpan, body_begin, breakpoint_steps, icicle
from loopscope.explain.index_provenance import TensorPart, parse_index
from loopscope.explain.iteration_matrix import (
    MOST_COLUMNS,
    Matrix,
    MatrixCell,
    MatrixRow,
    iteration_matrix,
    step_of_cell,
)
from loopscope.explain.not_finite import NotFinite, first_infinity, first_nan, first_not_finite
from loopscope.explain.pattern import Pattern, pattern, region_at
from loopscope.explain.provenance import ProvenanceStep, provenance
from loopscope.explain.schedule import Lead, Schedule, TicksOf, leads, operation_ticks, schedule
from loopscope.explain.verdict import Verdict, is_no_limit, margin_at, verdict

__all__ = [
    "EXPORT_FORMATS",
    "MOST_COLUMNS",
    "AdjointHistory",
    "BranchWalkedBack",
    "CodeLine",
    "Comparison",
    "Contribution",
    "Dependences",
    "ExecutionHistory",
    "ExpressionResult",
    "Fact",
    "FragileDecision",
    "Icicle",
    "IcicleSpan",
    "Lead",
    "Listing",
    "Margin",
    "Matrix",
    "MatrixCell",
    "MatrixRow",
    "NotFinite",
    "OperationExecution",
    "Pattern",
    "ProvenanceStep",
    "RegionPair",
    "RunDifference",
    "Schedule",
    "TensorPart",
    "TicksOf",
    "Verdict",
    "WalkedBack",
    "ask",
    "body_begin",
    "branch_history",
    "branches_of",
    "breakpoint_steps",
    "compare",
    "computed_again",
    "copies_of",
    "counterpart",
    "deciding",
    "dependences",
    "executions",
    "export",
    "first_control_flow",
    "first_infinity",
    "first_nan",
    "first_not_finite",
    "fits_in_code",
    "fragile",
    "how_often",
    "icicle",
    "is_no_limit",
    "iteration_matrix",
    "leads",
    "listing",
    "margin_at",
    "operation_ticks",
    "parse_index",
    "pattern",
    "provenance",
    "region_at",
    "runnable_code",
    "schedule",
    "step_of_cell",
    "taken_paths",
    "ties",
    "verdict",
    "walked_back",
    "walks_of",
]
