"""Explanation of a run's loops and branches as JSON: everything that the screen shows about
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import ExecutionHistory, Fact, Margin, Verdict, deciding, executions, verdict
from loopscope_app.command.value_data import strict, value_data

_FIRST_EXECUTIONS, _LAST_EXECUTIONS = 4, 4
"""Number of executions of each loop and If that are explained; `loopscope why` explains any."""


def explain_regions(debugger: loopscope.Debugger, limit: int | None = None) -> list[dict[str, Any]]:
    """Return an entry for each loop and If, outer ones first, including those that never ran.

    ``limit`` bounds the number of entries.
    """
    return [_region(debugger, region) for region in islice(executions(debugger), limit)]


def _region(debugger: loopscope.Debugger, region: ExecutionHistory) -> dict[str, Any]:
    chosen = sorted(
        {
            *range(min(_FIRST_EXECUTIONS, region.count)),
            *range(max(0, region.count - _LAST_EXECUTIONS), region.count),
        }
    )
    entry: dict[str, Any] = {
        "address": region.static,
        "kind": region.kind,
        "executions": region.count,
    }
    if region.kind == "If":
        entry["tape"] = [list(run) for run in region.tape()]
    verdicts = [_verdict_or_reason(debugger, region.address(number)) for number in chosen]
    return {**entry, "verdicts": verdicts, "verdicts_left_out": region.count - len(chosen)}


def _verdict_or_reason(debugger: loopscope.Debugger, address: str) -> dict[str, Any]:
    """Return the verdict of one execution, or the reason why there is none, such as values not
    stored.
    """
    try:
        return verdict_data(debugger, verdict(debugger, address))
    except EngineError as error:
        return {"address": address, "sentence": str(error), "decided_by": [], "proof": []}


def verdict_data(debugger: loopscope.Debugger, result: Verdict) -> dict[str, Any]:
    """Return a verdict: its sentence, the deciding facts, and the whole proof with operand
    values.
    """
    record = result.record
    data: dict[str, Any] = {
        "address": result.address,
        "kind": record.kind,
        "sentence": result.sentence,
    }
    if record.kind == "If":
        data["branch"] = record.branch
    else:
        data |= {
            "iterations": record.iterations,
            "ended_by": record.ended_by,
            "endless": record.endless,
            "declared": result.declared,
        }
    if result.pattern is not None:
        data["pattern"] = result.pattern.sentence
    data["margin"] = _margin(result.margin)
    return {
        **data,
        "decided_by": _facts(debugger, deciding(result.proof)),
        "proof": _facts(debugger, result.proof),
    }


def _margin(margin: Margin | None) -> dict[str, Any] | None:
    """Return how narrowly floats were compared, and the types in which the comparison would
    flip.
    """
    return (
        None
        if margin is None
        else {"distance": strict(margin.distance), "otherwise": list(margin.otherwise)}
    )


def _facts(debugger: loopscope.Debugger, facts: Iterable[Fact]) -> list[dict[str, Any]]:
    return [
        {
            "address": fact.address,
            "operation": fact.operation,
            "text": fact.text,
            "depth": fact.depth,
            "by_hand": fact.by_hand,
            "margin": _margin(fact.margin),
            "operands": [
                {"address": address, **value_or_reason(debugger, address)}
                for address in fact.operands
            ],
        }
        for fact in facts
    ]


def value_or_reason(debugger: loopscope.Debugger, address: str) -> dict[str, Any]:
    """Return the value at an address, or the reason why there is none."""
    try:
        return value_data(debugger.value(address))
    except EngineError as error:
        return {"kind": "nothing", "sentence": str(error)}
