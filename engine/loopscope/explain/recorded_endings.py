"""Sentences about the loops and decisions of a trace: what the recorder knows, without proof."""

from __future__ import annotations

from loopscope.ir.recorded_rows import RecordedEnding
from loopscope.timeline.control_flow import ControlFlowRecord


def ending_sentence(ending: RecordedEnding, record: ControlFlowRecord) -> str:
    """Return the verdict on a loop of a trace as a sentence."""
    count, total = record.iterations or 0, ending.total
    times = f"{count:,} iteration{'' if count == 1 else 's'}"
    counted = f"{count:,} of {total:,} iterations" if total is not None else times
    if not ending.executed:
        return "Did not run: the program did not reach this loop."
    if record.ended_by is None or record.ended_by in ("limit", "stopped"):
        return f"Running: {times} shown so far."
    if not ending.complete:
        return f"The recording ends after {counted}."
    if ending.reason:
        return f"Ended after {counted}: {ending.reason}."
    if record.ended_by == "condition":
        return f"Ended after {counted}: the program left the loop."
    return f"Ran all {times}." if count != 1 else "Ran its one iteration."


def decision_sentence(record: ControlFlowRecord) -> str:
    """Return the verdict on a decision of a trace as a sentence."""
    value = "true" if record.branch == "then" else "false"
    return f"Took the {record.branch} branch: the decision was recorded as {value}."
