"""What a trace means: why a loop ended, what pattern it is, how a value went over the iterations, where it came from."""

from __future__ import annotations

from engine.explain.adjoint_verdict import short_number
from engine.explain.adjoints import (
    AdjointHistory,
    BranchWalkedBack,
    WalkedBack,
    branches_of,
    counterpart,
    walked_back,
    walks_of,
)
from engine.explain.ask import Answer, ask
from engine.explain.branch_history import branch_history
from engine.explain.code import listing, runnable_code
from engine.explain.code_lines import CodeLine, Listing
from engine.explain.compare import Comparison, Difference, compare, first_control_flow
from engine.explain.contributions import Contribution
from engine.explain.copies import computed_again, copies_of
from engine.explain.dependences import Dependences, Operation, dependences
from engine.explain.executions import Executions, executions, how_often
from engine.explain.export import EXPORT_FORMATS, export
from engine.explain.fragile import FragileDecision, fragile
from engine.explain.icicle import Icicle, IcicleSpan, body_begin, breakpoint_steps, icicle
from engine.explain.iteration_matrix import MOST_COLUMNS, Matrix, MatrixCell, MatrixRow, iteration_matrix, step_of_cell
from engine.explain.literals import fits_in_code
from engine.explain.margin import Margin
from engine.explain.not_finite import NotFinite, first_infinity, first_nan, first_not_finite
from engine.explain.parts import Part, parse_index
from engine.explain.pattern import Pattern, pattern, region_at
from engine.explain.proof import Fact, deciding
from engine.explain.provenance import ProvenanceStep, provenance
from engine.explain.schedule import Lead, Schedule, TicksOf, leads, operation_ticks, schedule
from engine.explain.ties import Tie, ties
from engine.explain.verdict import Verdict, is_no_limit, margin_at, verdict

__all__ = [
    "EXPORT_FORMATS",
    "MOST_COLUMNS",
    "AdjointHistory",
    "Answer",
    "BranchWalkedBack",
    "CodeLine",
    "Comparison",
    "Contribution",
    "Dependences",
    "Difference",
    "Executions",
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
    "Operation",
    "Part",
    "Pattern",
    "ProvenanceStep",
    "Schedule",
    "TicksOf",
    "Tie",
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
    "short_number",
    "step_of_cell",
    "ties",
    "verdict",
    "walked_back",
    "walks_of",
]
