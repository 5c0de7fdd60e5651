"""Reports of a run: text for a terminal, a line for each loop and If, and strict JSON."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import loopscope
from loopscope.debug import PrintedLine, Result
from loopscope.errors import counted, neutral
from loopscope.explain import NotFinite
from loopscope.ir import Model, Signature, type_name
from loopscope.ops import NO_VALUE, is_tensor
from loopscope.timeline import ControlFlowRecord
from loopscope.view import value_preview
from loopscope_app.command.answer_data import explain_regions, value_data
from loopscope_app.command.command_line import SCHEMA
from loopscope_app.describe.wording import ending, record_sentence, times

_LINES_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a run.

    ``state`` is ``finished``, ``failed``, ``limit``, ``stopped`` (by Ctrl+C) or ``refused`` (before
    the run began).
    """

    state: str
    message: str = ""
    address: str = ""
    result: Result | None = None
    odd: tuple[NotFinite, ...] = ()
    """Results of the searches for the first NaN and the first infinity."""
    debugger: loopscope.Debugger | None = None
    """The recorded run, which can be explained; None if the run was not recorded."""


def as_json(outcome: Outcome, model: Model | None) -> Iterator[str]:
    """Yield one JSON object in pieces, because a run may have millions of records.

    The caller joins the pieces before printing, so that an error prints nothing.
    """
    yield f'{{"schema": {SCHEMA}, "state": ' + json.dumps(outcome.state)
    if outcome.message:
        yield (
            ', "message": '
            + json.dumps(outcome.message)
            + ', "address": '
            + json.dumps(outcome.address)
        )
    if outcome.result is not None:
        outputs = (
            outcome.result.outputs if outcome.state == "finished" and model is not None else ()
        )
        pairs = zip(outcome.result.signatures if outputs else (), outputs, strict=True)
        described = [describe(signature, value) for signature, value in pairs]
        yield ', "outputs": ' + json.dumps(described, allow_nan=False) + ', "control_flow": ['
        for position, record in enumerate(outcome.result.control_flow):
            fields = {
                name: getattr(record, name)
                for name in ("address", "kind", "iterations", "ended_by", "branch")
            }
            yield (", " if position else "") + json.dumps(fields)
        yield "]"
        if outcome.debugger is not None:
            yield ', "explained": ' + json.dumps(explain_regions(outcome.debugger), allow_nan=False)
        pruning = outcome.result.left_out
        yield ', "optimised": ' + json.dumps(
            {name: getattr(pruning, name) for name in ("removed", "folded", "computed_once")}
        )
    if outcome.result is not None and outcome.result.printed:
        yield ', "printed": ' + json.dumps(
            [{"address": line.address, "text": line.text} for line in outcome.result.printed]
        )
    for odd in outcome.odd:
        report = {
            "address": odd.address or None,
            "step": odd.step,
            "source": odd.source or None,
            "certain": odd.is_certain,
            "sentence": odd.sentence,
        }
        yield f', "first_{odd.kind}": ' + json.dumps(report)
    yield "}"


def as_text(outcome: Outcome, model: Model | None) -> Iterator[str]:
    """Yield lines for a terminal: the state, the control flow, the outputs."""
    yield (
        outcome.state
        if not outcome.message
        else f"{outcome.state}: {neutral(outcome.message, len(outcome.message))}"
    )
    if outcome.result is None or model is None:
        return
    yield from control_flow_lines(outcome.result.control_flow)
    yield from (
        f"  {neutral(sentence, len(sentence))}" for sentence in outcome.result.left_out.sentences()
    )
    yield from _printed(outcome.result.printed)
    for odd in outcome.odd:
        yield neutral(odd.sentence, len(odd.sentence))
    if outcome.state != "finished":
        return
    yield "outputs"
    for signature, value in zip(outcome.result.signatures, outcome.result.outputs, strict=True):
        yield f"  {neutral(next(iter(signature.names), signature.name))}  {value_line(value)}"


def _printed(lines: Sequence[PrintedLine]) -> Iterator[str]:
    """Yield the last lines that Print operations of the model wrote."""
    if lines:
        yield "printed"
    if len(lines) > _LINES_SHOWN:
        yield f"  {len(lines) - _LINES_SHOWN:,} lines (all of them with --json) ..."
    for line in lines[-_LINES_SHOWN:]:
        yield f"  {neutral(line.text, len(line.text))}"


def value_line(value: Any) -> str:
    """Return a value as one line for a terminal."""
    if value is None or not is_tensor(value):
        text = value_preview(NO_VALUE if value is None else value)
        return neutral(text, len(text))
    array = np.asarray(value)
    text = np.array2string(
        array, threshold=12, edgeitems=3 if array.ndim < 2 else 1, precision=6
    ).replace("\n", "")
    return f"{type_name(array.dtype)} {list(array.shape)}  {neutral(text, len(text))}"


def describe(signature: Signature, value: Any) -> dict[str, Any]:
    """Return an output as JSON: the value if it is short, else a summary."""
    return {"name": signature.name, "names": list(signature.names), **value_data(value)}


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
