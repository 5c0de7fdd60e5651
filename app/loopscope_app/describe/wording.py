"""Words about a run: iteration counts, why a loop ended, which branch ran, where the cursor is."""

from __future__ import annotations

import loopscope
from loopscope.errors import counted
from loopscope.executor import LoopRegion
from loopscope.explain import branch_history, region_at
from loopscope.ir import IF, Model, decode, is_trace, recorded_values
from loopscope.timeline import ControlFlowRecord
from loopscope_app.describe.node_index import IndexedNode, places

DEVICES = ("f16", "bf16")
"""Types that devices compute in instead of f32."""

_REASONS = {
    "trip_count": "the trip count was reached",
    "condition": "its condition became false",
    "zero_trip_count": "the trip count was 0",
    "initial_condition": "its condition was false before the first iteration",
    "slices_exhausted": "no slices were left",
    "limit": "the run hit a limit",
    "error": "an operation failed",
    "stopped": "the run was stopped",
}
"""Ends of sentences, by what ended a loop."""
SHORT_REASONS = {
    "trip_count": "trip count reached",
    "condition": "condition became false",
    "zero_trip_count": "trip count 0",
    "initial_condition": "condition false at once",
    "slices_exhausted": "all slices used",
    "limit": "limit reached",
    "endless": "never ends",
    "error": "failed",
}
"""The same for a header, by what ended a loop or by ``endless``."""

_GROUPED = {"int8": "int8 per row", "int4": "int4 per group"}


def narrower_type(name: str) -> str:
    """Return a type that values are rounded to, as users know it.

    >>> narrower_type("int4"), narrower_type("bf16")
    ('int4 per group', 'bf16')
    """
    return _GROUPED.get(name, name)


def model_size(model: Model) -> str:
    """Return the format of a model and its number of nodes."""
    if is_trace(model):
        return f"trace · {counted(recorded_values(model), 'value')}"
    kind = "ONNX" if model.dialect == "onnx" else f"OpenVINO IR {model.version}"
    return f"{kind} · {counted(len(places(model)), 'node')}"


def times(count: int) -> str:
    """Return a number of iterations as text.

    >>> times(0), times(1), times(1200)
    ('no iteration', '1 iteration', '1,200 iterations')
    """
    return "no iteration" if count == 0 else counted(count, "iteration")


def reason(ended_by: str | None) -> str:
    """Return why a loop ended, as the end of a sentence."""
    return _REASONS.get(ended_by or "", "it is still running")


def ending(record: ControlFlowRecord) -> str:
    """Return why the loop of a record ended, as the end of a sentence."""
    return "it can never end" if record.endless else record.reason or reason(record.ended_by)


def record_sentence(record: ControlFlowRecord) -> str:
    """Return a sentence about a record of the control flow, without its address."""
    if record.branch is not None:
        return f"took {record.branch}"
    if record.iterations is None:
        return record.kind
    if record.endless:
        return f"{times(record.iterations)}, and it never ends"
    return (
        f"{times(record.iterations)}, then {ending(record)}"
        if record.iterations
        else f"no iteration: {reason(record.ended_by)}"
    )


def name_of(address: str) -> str:
    """Return the readable last name of an address, without iteration and output number.

    >>> name_of("main/while_3[2]/body/Add%2F1:1")
    'Add/1'
    """
    return decode(address.rpartition("/")[2].partition(":")[0].partition("[")[0].partition("~")[0])


NOT_RUN = "not run"


def outcome(run: loopscope.Debugger, entry: IndexedNode) -> str:
    """Return the branches that an If took in the run, or the iterations of a loop.

    Return an empty text for any other node.
    """
    if entry.node.type == IF:
        return branch_words(*branch_history(run, entry.address).counts)
    region = region_at(run.plan, entry.address)[1].region if entry.node.is_loop else None
    if not isinstance(region, LoopRegion):
        return ""
    executions = len(run.timeline.executions.loop_starts(region))
    if not executions:
        return NOT_RUN
    _, total = run.timeline.executions.rows_of(region, executions - 1)
    return times(total) + (f" in {executions:,} executions" if executions > 1 else "")


def branch_words(then: int, otherwise: int) -> str:
    """Return the counts of both branches of an If as words.

    >>> branch_words(1, 0), branch_words(0, 3), branch_words(2, 1), branch_words(0, 0)
    ('then', 'else 3 ×', 'then 2 ×, else 1 ×', 'not run')
    """
    counts = [(name, count) for name, count in (("then", then), ("else", otherwise)) if count]
    if len(counts) == 1 and counts[0][1] == 1:
        return counts[0][0]
    return ", ".join(f"{name} {count:,} ×" for name, count in counts) or NOT_RUN
