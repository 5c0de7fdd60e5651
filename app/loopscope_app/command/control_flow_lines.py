"""What the loops and branches of a run did, in lines for a terminal: one for each loop and If,
however often it ran.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from loopscope.errors import neutral
from loopscope.timeline import ControlFlowRecord
from loopscope_app.describe.wording import ending, record_sentence, times

_LOOKED_AT = 100_000
_LINES = 40
_TAPE = 48
_ITERATION = re.compile(r"\[\d+\]")
_BODY = re.compile(r"/(?:body|then|else)/")


def control_flow_lines(records: Sequence[ControlFlowRecord]) -> Iterator[str]:
    """Lines in the order of the graph, indented as the bodies lie in each other.

    One execution is told by itself; of several the counts, for an If with the branches in their
    order.
    """
    executions: dict[str, list[ControlFlowRecord]] = {}
    for record in itertools.islice(records, _LOOKED_AT):
        executions.setdefault(_ITERATION.sub("", record.address), []).append(record)
    for static, found in itertools.islice(executions.items(), _LINES):
        told = _sentence(found)
        place = found[0].address if len(found) == 1 else static
        yield f"{'  ' * (1 + len(_BODY.findall(static)))}{neutral(place, len(place))}: {told}"
    if len(executions) > _LINES:
        yield f"  ... and {len(executions) - _LINES:,} more loops and branches (all of them with --json)"
    if len(records) > _LOOKED_AT:
        yield f"  The counts are those of the first {_LOOKED_AT:,} executions of {len(records):,} (all of them with --json)."


def _sentence(found: Sequence[ControlFlowRecord]) -> str:
    """Describe all executions of one loop, If or function.

    >>> _sentence([ControlFlowRecord(address=f"main/loop[{number}]/body/call", kind="Function") for number in range(1200)])
    'called 1,200 times'
    """
    if found[0].kind == "Function":
        return "called once" if len(found) == 1 else f"called {len(found):,} times"
    if len(found) == 1:
        return record_sentence(found[0])
    return _branches(found) if found[0].branch else _loops(found)


def _branches(found: Sequence[ControlFlowRecord]) -> str:
    """
    >>> _branches([ControlFlowRecord(address="main/if", kind="If", branch=branch) for branch in ("else", "then", "then")])
    'then 2 times, else 1 time: ETT'
    """
    taken = Counter(record.branch for record in found)
    tape = "".join((record.branch or "?")[0].upper() for record in found[:_TAPE])
    counts = ", ".join(
        f"{branch} {taken[branch]:,} time{'s' * (taken[branch] != 1)}"
        for branch in ("then", "else")
        if taken[branch]
    )
    return f"{counts}: {tape}{'...' * (len(found) > _TAPE)}" if len(taken) > 1 else counts


def _loops(found: Sequence[ControlFlowRecord]) -> str:
    """
    >>> _loops([ControlFlowRecord(address="main/loop", kind="Loop", iterations=count, ended_by="condition") for count in (3, 1)])
    '2 executions with 1 to 3 iterations, 4 in all; its condition became false'
    """
    counts = [record.iterations or 0 for record in found]
    each = (
        times(counts[0]) + " each"
        if min(counts) == max(counts)
        else f"{min(counts):,} to {times(max(counts))}"
    )
    why = Counter(ending(record) for record in found)
    reasons = (
        ", ".join(why)
        if len(why) == 1
        else ", ".join(f"{reason} ({count:,})" for reason, count in why.most_common())
    )
    return f"{len(found):,} executions with {each}, {sum(counts):,} in all; {reasons}"
