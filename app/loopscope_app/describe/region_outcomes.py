"""Iteration counts of loops and branches of Ifs in a run, as words."""

from __future__ import annotations

import loopscope
from loopscope.executor import LoopRegion
from loopscope.explain import branch_history, region_at
from loopscope.ir import IF
from loopscope_app.describe.node_index import IndexedNode
from loopscope_app.describe.wording import times

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
