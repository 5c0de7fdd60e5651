"""Summary of a run's loops and branches for a terminal: one line for each loop and If."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from loopscope.errors import counted, neutral
from loopscope.timeline import ControlFlowRecord
from loopscope_app.describe.wording import ending, record_sentence, times

_MAX_RECORDS = 100_000
_MAX_LINES = 40
_MAX_TAPE = 48
_ITERATION = re.compile(r"\[\d+\]")
_BODY = re.compile(r"/(?:body|then|else)/")


def control_flow_lines(records: Sequence[ControlFlowRecord]) -> Iterator[str]:
    """Yield lines in the order of the graph, indented by the nesting of bodies.

    A line describes a single execution by itself, and several executions by their counts. The line
    of an If also lists its branches in order.
    """
    executions: dict[str, list[ControlFlowRecord]] = {}
    for record in itertools.islice(records, _MAX_RECORDS):
        executions.setdefault(_ITERATION.sub("", record.address), []).append(record)
    for static, group in itertools.islice(executions.items(), _MAX_LINES):
        summary = _sentence(group)
        place = group[0].address if len(group) == 1 else static
        yield f"{'  ' * (1 + len(_BODY.findall(static)))}{neutral(place, len(place))}: {summary}"
    if len(executions) > _MAX_LINES:
        more = len(executions) - _MAX_LINES
        yield f"  ... and {more:,} more loops and branches (all of them with --json)"
    if len(records) > _MAX_RECORDS:
        yield (
            f"  Only the first {_MAX_RECORDS:,} of {len(records):,} executions are counted "
            "(all of them with --json)."
        )


def _sentence(records: Sequence[ControlFlowRecord]) -> str:
    """Describe all executions of one loop, If or function.

    >>> call = ControlFlowRecord(address="main/loop[0]/body/call", kind="Function")
    >>> _sentence([call] * 1200)
    'called 1,200 times'
    """
    if records[0].kind == "Function":
        return "called once" if len(records) == 1 else f"called {len(records):,} times"
    if len(records) == 1:
        return record_sentence(records[0])
    return _branches(records) if records[0].branch else _loops(records)


def _branches(records: Sequence[ControlFlowRecord]) -> str:
    """Describe several executions of an If.

    >>> from functools import partial
    >>> record = partial(ControlFlowRecord, address="main/if", kind="If")
    >>> _branches([record(branch="else"), record(branch="then"), record(branch="then")])
    'then 2 times, else 1 time: ETT'
    """
    totals = Counter(record.branch for record in records)
    tape = "".join((record.branch or "?")[0].upper() for record in records[:_MAX_TAPE])
    counts = ", ".join(
        f"{branch} {counted(totals[branch], 'time')}"
        for branch in ("then", "else")
        if totals[branch]
    )
    return f"{counts}: {tape}{'...' * (len(records) > _MAX_TAPE)}" if len(totals) > 1 else counts


def _loops(records: Sequence[ControlFlowRecord]) -> str:
    """Describe several executions of a loop.

    >>> from functools import partial
    >>> record = partial(ControlFlowRecord, address="main/loop", kind="Loop", ended_by="condition")
    >>> _loops([record(iterations=3), record(iterations=1)])
    '2 executions with 1 to 3 iterations, 4 in all; its condition became false'
    """
    counts = [record.iterations or 0 for record in records]
    range_text = (
        times(counts[0]) + " each"
        if min(counts) == max(counts)
        else f"{min(counts):,} to {times(max(counts))}"
    )
    endings = Counter(ending(record) for record in records)
    reasons = (
        ", ".join(endings)
        if len(endings) == 1
        else ", ".join(f"{reason} ({count:,})" for reason, count in endings.most_common())
    )
    return f"{len(records):,} executions with {range_text}, {sum(counts):,} in all; {reasons}"
