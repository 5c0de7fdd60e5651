"""What a run's loops and branches did and why, as JSON: all that the screen says of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import ExecutionHistory, Fact, Margin, Verdict, deciding, executions, verdict
from loopscope_app.command.value_data import strict, value_data

_FIRST, _LAST = 4, 4
"""Executions of each loop and If that are explained; `loopscope why` explains any other."""


def explained(debugger: loopscope.Debugger, most: int | None = None) -> list[dict[str, Any]]:
    """An entry for each loop and If of the model, an outer one before those inside it; also
    those that never ran. ``most``: of so many.
    """
    return [_region(debugger, region) for region in islice(executions(debugger), most)]


def _region(debugger: loopscope.Debugger, region: ExecutionHistory) -> dict[str, Any]:
    chosen = sorted(
        {*range(min(_FIRST, region.count)), *range(max(0, region.count - _LAST), region.count)}
    )
    told: dict[str, Any] = {
        "address": region.static,
        "kind": region.kind,
        "executions": region.count,
    }
    if region.kind == "If":
        told["tape"] = [list(run) for run in region.tape()]
    verdicts = [_verdict_or_reason(debugger, region.address(number)) for number in chosen]
    return {**told, "verdicts": verdicts, "verdicts_left_out": region.count - len(chosen)}


def _verdict_or_reason(debugger: loopscope.Debugger, address: str) -> dict[str, Any]:
    """One execution that cannot be explained, such as one that holds what was not kept, takes
    nothing from the others.
    """
    try:
        return verdict_data(debugger, verdict(debugger, address))
    except EngineError as error:
        return {"address": address, "sentence": str(error), "decided_by": [], "proof": []}


def verdict_data(debugger: loopscope.Debugger, found: Verdict) -> dict[str, Any]:
    """A verdict: its sentence, what decided, and the whole proof, each operand with its value."""
    record = found.record
    told: dict[str, Any] = {
        "address": found.address,
        "kind": record.kind,
        "sentence": found.sentence,
    }
    if record.kind == "If":
        told["branch"] = record.branch
    else:
        told |= {
            "iterations": record.iterations,
            "ended_by": record.ended_by,
            "endless": record.endless,
            "declared": found.declared,
        }
    if found.pattern is not None:
        told["pattern"] = found.pattern.sentence
    told["margin"] = _margin(found.margin)
    return {
        **told,
        "decided_by": _facts(debugger, deciding(found.proof)),
        "proof": _facts(debugger, found.proof),
    }


def _margin(margin: Margin | None) -> dict[str, Any] | None:
    """How narrowly floats were compared, and the types in which the comparison would come out
    otherwise.
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
    """The value at an address; why there is none, where there is none."""
    try:
        return value_data(debugger.value(address))
    except EngineError as error:
        return {"kind": "nothing", "sentence": str(error)}
