"""What a saved run says of itself: the content of ``run.json``, written, and read field by
field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from loopscope.debug.breakpoints import Pause
from loopscope.debug.cursor import DebuggerState
from loopscope.errors import shorten
from loopscope.executor.machine.limits import Limits
from loopscope.executor.plan.optimisation_flags import Optimise
from loopscope.executor.record.recording import Record
from loopscope.ir.model import Model

FORMAT, VERSION_OF_FORMAT = "loopscope run", 2
MOST_PAUSES = 1000
"""Breakpoints, and watches, of a run."""
_LONGEST = 100_000
"""Characters of one text."""
_LARGEST = 2**128
Made = TypeVar("Made")
_STATES: tuple[DebuggerState, ...] = ("paused", "finished", "failed", "limit")


@dataclass(frozen=True, slots=True)
class Description:
    """``run.json``: all of a run but its model and its arrays."""

    made_by: str
    """Version of Loopscope."""
    numpy: str
    """Version of numpy."""
    model: str
    """Name of the model, for people."""
    files: Mapping[str, str]
    """SHA-256 of every other file in the archive."""
    seed: int
    limits: Limits
    record: Record
    optimise: Optimise
    state: DebuggerState
    step: int
    """Where the cursor is."""
    steps: int
    """That had been computed."""
    changes: tuple[str, ...]
    """Addresses of the values that were set by hand; the arrays are in ``changes/``, by
    position.
    """
    breakpoints: tuple[Pause, ...]
    watches: tuple[str, ...]
    look: Mapping[str, str]
    """What the app showed, as parameters of its address."""
    control_flow: tuple[tuple[str, int | str, str], ...] | None
    """Address, iterations or branch, and ending of each region that ran; None where that was
    more than the budget.
    """
    outputs_kept: bool
    weights_kept: bool
    """False: of the model's Consts only those of a few elements have their data."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedRun:
    """A run as a file holds it, with what is needed to run it again."""

    description: Description
    model: Model
    document: bytes
    """The content of the file of an ONNX model; empty for others."""
    inputs: tuple[Any, ...]
    """In the order of the model's inputs."""
    changes: Mapping[str, Any]
    outputs: Mapping[str, Any] | None
    """As ``loopscope.ops.stored.packed`` names them; None when the run was not over, or they
    were more than the budget.
    """
    recording: bytes
    """``recording.json``; empty where what was recorded was more than the budget, or the file is
    of version 1 of the format.
    """
    recorded: Mapping[str, Any]
    """The values that it names."""


def to_json(one: Description) -> bytes:
    limits, record, optimise = one.limits, one.record, one.optimise
    data = {
        "format": FORMAT,
        "version": VERSION_OF_FORMAT,
        "made_by": one.made_by,
        "numpy": one.numpy,
        "model": one.model,
        "files": dict(one.files),
        "seed": one.seed,
        "limits": {
            "iterations": limits.iterations,
            "seconds": limits.seconds,
            "memory_bytes": limits.memory_bytes,
        },
        "record": {
            "everything": record.everything,
            "state": record.state,
            "budget_bytes": record.budget_bytes,
            "recompute": record.recompute,
        },
        "optimise": {"prune": optimise.prune, "fold": optimise.fold, "cse": optimise.cse},
        "state": one.state,
        "step": one.step,
        "steps": one.steps,
        "changes": list(one.changes),
        "breakpoints": [
            [pause.pattern, pause.condition, pause.kind, pause.on] for pause in one.breakpoints
        ],
        "watches": list(one.watches),
        "look": dict(one.look),
        "control_flow": None
        if one.control_flow is None
        else [list(record) for record in one.control_flow],
        "outputs_kept": one.outputs_kept,
        "weights_kept": one.weights_kept,
    }
    return json.dumps(data, indent=1).encode()


def of_json(document: bytes) -> Description:
    """``ValueError`` names the field that is not what the format says."""
    try:
        data = json.loads(document)
    except (ValueError, RecursionError):
        raise ValueError("its run.json is not JSON") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(
            f'its run.json does not begin as that of a run does: "format": "{FORMAT}" is expected'
        )
    version = data.get("version")
    if type(version) is not int or version < 1:
        _refuse("version", version, "a whole number from 1 on")
    if version > VERSION_OF_FORMAT:
        maker = _text(data.get("made_by", "a later version"), "made_by")
        raise ValueError(
            f"it was saved by Loopscope {shorten(maker, 40)} in version {version} of the format, and this Loopscope reads "
            f"versions 1 to {VERSION_OF_FORMAT}: open it with a newer Loopscope"
        )
    limits, record, optimise = (_table(data, name) for name in ("limits", "record", "optimise"))
    return Description(
        made_by=_text(data.get("made_by"), "made_by"),
        numpy=_text(data.get("numpy"), "numpy"),
        model=_text(data.get("model"), "model"),
        files=_texts(data, "files"),
        seed=_number(data.get("seed"), "seed", lowest=-_LARGEST),
        limits=Limits(
            iterations=_bound(limits, "iterations", int),
            seconds=_bound(limits, "seconds", float),
            memory_bytes=_bound(limits, "memory_bytes", int),
        ),
        record=Record(
            everything=_flag(record, "everything"),
            state=_flag(record, "state"),
            budget_bytes=_number(record.get("budget_bytes"), "budget_bytes"),
            recompute=version == 1 or _flag(record, "recompute"),
        ),
        optimise=Optimise(
            prune=_flag(optimise, "prune"), fold=_flag(optimise, "fold"), cse=_flag(optimise, "cse")
        ),
        state=_state(data.get("state")),
        step=_number(data.get("step"), "step"),
        steps=_number(data.get("steps"), "steps"),
        changes=_list(data, "changes", lambda one: _text(one, "changes")),
        breakpoints=_list(data, "breakpoints", _pause),
        watches=_list(data, "watches", lambda one: _text(one, "watches")),
        look=_texts(data, "look"),
        control_flow=None
        if data.get("control_flow") is None
        else _list(data, "control_flow", _ran, most=10_000_000),
        outputs_kept=_flag(data, "outputs_kept"),
        weights_kept=version == 1 or _flag(data, "weights_kept"),
    )


def _refuse(field: str, found: object, expected: str) -> NoReturn:
    raise ValueError(
        f"its run.json has {shorten(repr(found), 60)} as {field!r}, and {expected} is expected"
    )


def _text(one: object, field: str) -> str:
    if not isinstance(one, str) or len(one) > _LONGEST:
        _refuse(field, one, f"a text of at most {_LONGEST:,} characters")
    return one


def _number(one: object, field: str, lowest: int = 0) -> int:
    if type(one) is not int or not lowest <= one <= _LARGEST:
        _refuse(field, one, f"a whole number from {lowest} on")
    return one


def _flag(table: Mapping[str, object], field: str) -> bool:
    one = table.get(field)
    if not isinstance(one, bool):
        _refuse(field, one, "true or false")
    return one


def _bound(table: Mapping[str, object], field: str, kind: type[int] | type[float]) -> Any:
    one = table.get(field)
    if one is not None and not (
        type(one) in (int, kind) and isinstance(one, (int, float)) and 0 <= one <= _LARGEST
    ):
        _refuse(field, one, "a number from 0 on, or null")
    return one


def _state(one: object) -> DebuggerState:
    for state in _STATES:
        if one == state:
            return state
    _refuse("state", one, ", ".join(_STATES))


def _table(data: Mapping[str, object], field: str) -> Mapping[str, object]:
    one = data.get(field)
    if not isinstance(one, dict):
        _refuse(field, one, "a table")
    return one


def _texts(data: Mapping[str, object], field: str) -> Mapping[str, str]:
    return {_text(name, field): _text(value, field) for name, value in _table(data, field).items()}


def _list(
    data: Mapping[str, object], field: str, made: Callable[[object], Made], most: int = MOST_PAUSES
) -> tuple[Made, ...]:
    found = data.get(field)
    if not isinstance(found, list) or len(found) > most:
        _refuse(field, found, f"a list of at most {most:,}")
    return tuple(map(made, found))


def _pause(one: object) -> Pause:
    match one:
        case [
            str(pattern),
            str(condition),
            "address" | "nan" | "infinity" | "shape" as kind,
            bool(on),
        ]:
            return Pause(_text(pattern, "breakpoints"), _text(condition, "breakpoints"), kind, on)
    _refuse(
        "breakpoints", one, "place, condition, address, nan, infinity or shape, and true or false"
    )


def _ran(one: object) -> tuple[str, int | str, str]:
    match one:
        case [str(address), int(what) | str(what), str(ending)]:
            return address, what, ending
    _refuse("control_flow", one, "address, iterations or branch, and ending")
