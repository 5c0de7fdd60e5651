"""What ``loopscope run`` says about a run: for people, and as strict JSON."""

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
from loopscope_app.command.control_flow_lines import control_flow_lines
from loopscope_app.command.explained import explained
from loopscope_app.command.value_data import value_data

SCHEMA = 1
"""Version of what the commands say as JSON; ``answers.schema.json`` describes it."""
_LINES_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run went: ``finished``, ``failed``, ``limit``, ``stopped`` by Ctrl+C, or ``refused``
    before it began.
    """

    state: str
    message: str = ""
    address: str = ""
    result: Result | None = None
    odd: tuple[NotFinite, ...] = ()
    """The first NaN, the first infinity, or both, as far as they were searched for."""
    debugger: loopscope.Debugger | None = None
    """The run, when it was recorded, so that it can be explained."""


def as_json(outcome: Outcome, model: Model | None) -> Iterator[str]:
    """One JSON object in pieces: the records of a run may be millions, and only their text is kept.
    What cannot be told raises before anything is printed, since the pieces are joined first.
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
            yield ', "explained": ' + json.dumps(explained(outcome.debugger), allow_nan=False)
        left = outcome.result.left_out
        yield ', "optimised": ' + json.dumps(
            {name: getattr(left, name) for name in ("removed", "folded", "computed_once")}
        )
    if outcome.result is not None and outcome.result.printed:
        yield ', "printed": ' + json.dumps(
            [{"address": line.address, "text": line.text} for line in outcome.result.printed]
        )
    for odd in outcome.odd:
        found = {
            "address": odd.address or None,
            "step": odd.step,
            "source": odd.source or None,
            "certain": odd.is_certain,
            "sentence": odd.sentence,
        }
        yield f', "first_{odd.kind}": ' + json.dumps(found)
    yield "}"


def as_text(outcome: Outcome, model: Model | None) -> Iterator[str]:
    """Lines for a terminal: how it went, the control flow, the outputs."""
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
    """The last lines of the model's Prints."""
    if lines:
        yield "printed"
    if len(lines) > _LINES_SHOWN:
        yield f"  {len(lines) - _LINES_SHOWN:,} lines (all of them with --json) ..."
    for line in lines[-_LINES_SHOWN:]:
        yield f"  {neutral(line.text, len(line.text))}"


def value_line(value: Any) -> str:
    """A value in one line of the terminal."""
    if value is None or not is_tensor(value):
        shown = value_preview(NO_VALUE if value is None else value)
        return neutral(shown, len(shown))
    array = np.asarray(value)
    shown = np.array2string(
        array, threshold=12, edgeitems=3 if array.ndim < 2 else 1, precision=6
    ).replace("\n", "")
    return f"{type_name(array.dtype)} {list(array.shape)}  {neutral(shown, len(shown))}"


def describe(signature: Signature, value: Any) -> dict[str, Any]:
    """An output as JSON: its value when it is short, what is in it when it is long."""
    return {"name": signature.name, "names": list(signature.names), **value_data(value)}
