"""Reports of a run: text for a terminal, and strict JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import loopscope
from loopscope.debug import PrintedLine, Result
from loopscope.errors import neutral
from loopscope.explain import NotFinite
from loopscope.ir import Model, Signature, type_name
from loopscope.ops import NO_VALUE, is_tensor
from loopscope.view import value_preview
from loopscope_app.command.command_line import SCHEMA
from loopscope_app.command.control_flow_lines import control_flow_lines
from loopscope_app.command.explanation_data import explain_regions
from loopscope_app.command.value_data import value_data

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
