"""The content of ``run.json``, and the comparison of a run with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NoReturn, TypeVar

import numpy as np

from loopscope.debug.breakpoints import Pause
from loopscope.debug.position import DebuggerState
from loopscope.debug.run import Run
from loopscope.errors import shorten
from loopscope.executor.machine.limits import Limits
from loopscope.executor.plan.optimisation_flags import Optimise
from loopscope.executor.plan.slots import Slot
from loopscope.executor.record.recording import Record
from loopscope.ir.model import Model
from loopscope.ir.readable import significant
from loopscope.ops.stored import packed
from loopscope.timeline.timeline import ControlFlowRecord

FORMAT, VERSION_OF_FORMAT = "loopscope run", 2
MOST_PAUSES = 1000
"""Maximum number of breakpoints, and of watches, of a saved run."""
_MAX_TEXT = 100_000
"""Maximum number of characters of a text."""
_MAX_NUMBER = 2**128
Item = TypeVar("Item")
_STATES: tuple[DebuggerState, ...] = ("paused", "finished", "failed", "limit")


@dataclass(frozen=True, slots=True)
class Description:
    """The content of ``run.json``: everything about a run except its model and its arrays."""

    made_by: str
    """Version of Loopscope that saved the run."""
    numpy: str
    """Version of numpy that computed the run."""
    model: str
    """Name of the model, for display."""
    files: Mapping[str, str]
    """SHA-256 of every other file in the archive."""
    seed: int
    limits: Limits
    record: Record
    optimise: Optimise
    state: DebuggerState
    step: int
    """Step of the cursor."""
    steps: int
    """Number of computed steps."""
    changes: tuple[str, ...]
    """Addresses of values that were set by hand; their arrays are in ``changes/``, by position."""
    breakpoints: tuple[Pause, ...]
    watches: tuple[str, ...]
    look: Mapping[str, str]
    """View of the app, as parameters of its address."""
    control_flow: tuple[tuple[str, int | str, str], ...] | None
    """Address, iterations or branch, and ending of each executed region.

    None if over the budget.
    """
    outputs_kept: bool
    weights_kept: bool
    """False if only Consts of a few elements have their data."""
    opened: tuple[str, ...] = ()
    """Addresses of operators of the file's ONNX model that are loops in the run."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedRun:
    """A run as stored in a file, with everything needed to run it again."""

    description: Description
    model: Model
    document: bytes
    """File content of an ONNX model; empty for other models."""
    inputs: tuple[Any, ...]
    """Values in the order of the model's inputs."""
    changes: Mapping[str, Any]
    outputs: Mapping[str, Any] | None
    """Outputs, named as by ``loopscope.ops.stored.packed``.

    None if the run was not finished or the outputs exceeded the budget.
    """
    recording: bytes
    """Content of ``recording.json``.

    Empty if the recording exceeded the budget or the file has version 1 of the format.
    """
    recorded: Mapping[str, Any]
    """Values of the entries that ``recording`` refers to."""


def to_json(description: Description) -> bytes:
    limits, record, optimise = description.limits, description.record, description.optimise
    data = {
        "format": FORMAT,
        "version": VERSION_OF_FORMAT,
        "made_by": description.made_by,
        "numpy": description.numpy,
        "model": description.model,
        "files": dict(description.files),
        "seed": description.seed,
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
        "state": description.state,
        "step": description.step,
        "steps": description.steps,
        "changes": list(description.changes),
        "breakpoints": [
            [pause.pattern, pause.condition, pause.kind, pause.on]
            for pause in description.breakpoints
        ],
        "watches": list(description.watches),
        "look": dict(description.look),
        "control_flow": None
        if description.control_flow is None
        else [list(record) for record in description.control_flow],
        "outputs_kept": description.outputs_kept,
        "weights_kept": description.weights_kept,
        "opened": list(description.opened),
    }
    return json.dumps(data, indent=1).encode()


def of_json(document: bytes) -> Description:
    """Parse ``run.json``; ``ValueError`` names the first field that violates the format."""
    try:
        data = json.loads(document)
    except (ValueError, RecursionError):
        raise ValueError("its run.json is not JSON") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f'its run.json is not that of a run: expected "format": "{FORMAT}"')
    version = data.get("version")
    if type(version) is not int or version < 1:
        _refuse("version", version, "a whole number from 1 on")
    if version > VERSION_OF_FORMAT:
        maker = _text(data.get("made_by", "a later version"), "made_by")
        raise ValueError(
            f"it was saved by Loopscope {shorten(maker, 40)} in version {version} of the format, "
            f"and this Loopscope reads versions 1 to {VERSION_OF_FORMAT}: "
            "open it with a newer Loopscope"
        )
    limits, record, optimise = (_table(data, name) for name in ("limits", "record", "optimise"))
    return Description(
        made_by=_text(data.get("made_by"), "made_by"),
        numpy=_text(data.get("numpy"), "numpy"),
        model=_text(data.get("model"), "model"),
        files=_texts(data, "files"),
        seed=_number(data.get("seed"), "seed", lowest=-_MAX_NUMBER),
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
        changes=_list(data, "changes", lambda text: _text(text, "changes")),
        breakpoints=_list(data, "breakpoints", _pause),
        watches=_list(data, "watches", lambda text: _text(text, "watches")),
        look=_texts(data, "look"),
        control_flow=None
        if data.get("control_flow") is None
        else _list(data, "control_flow", _flow_record, limit=10_000_000),
        outputs_kept=_flag(data, "outputs_kept"),
        weights_kept=version == 1 or _flag(data, "weights_kept"),
        opened=_list(data, "opened", lambda text: _text(text, "opened"))
        if "opened" in data
        else (),
    )


def _refuse(field: str, value: object, expected: str) -> NoReturn:
    raise ValueError(
        f"its run.json has {shorten(repr(value), 60)} as {field!r}, expected {expected}"
    )


def _text(value: object, field: str) -> str:
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        _refuse(field, value, f"a text of at most {_MAX_TEXT:,} characters")
    return value


def _number(value: object, field: str, lowest: int = 0) -> int:
    if type(value) is not int or not lowest <= value <= _MAX_NUMBER:
        _refuse(field, value, f"a whole number from {lowest} on")
    return value


def _flag(table: Mapping[str, object], field: str) -> bool:
    value = table.get(field)
    if not isinstance(value, bool):
        _refuse(field, value, "true or false")
    return value


def _bound(table: Mapping[str, object], field: str, kind: type[int] | type[float]) -> Any:
    value = table.get(field)
    if value is not None and not (
        type(value) in (int, kind) and isinstance(value, (int, float)) and 0 <= value <= _MAX_NUMBER
    ):
        _refuse(field, value, "a number from 0 on, or null")
    return value


def _state(value: object) -> DebuggerState:
    for state in _STATES:
        if value == state:
            return state
    _refuse("state", value, ", ".join(_STATES))


def _table(data: Mapping[str, object], field: str) -> Mapping[str, object]:
    value = data.get(field)
    if not isinstance(value, dict):
        _refuse(field, value, "a table")
    return value


def _texts(data: Mapping[str, object], field: str) -> Mapping[str, str]:
    return {_text(name, field): _text(value, field) for name, value in _table(data, field).items()}


def _list(
    data: Mapping[str, object],
    field: str,
    parse: Callable[[object], Item],
    limit: int = MOST_PAUSES,
) -> tuple[Item, ...]:
    items = data.get(field)
    if not isinstance(items, list) or len(items) > limit:
        _refuse(field, items, f"a list of at most {limit:,}")
    return tuple(map(parse, items))


def _pause(value: object) -> Pause:
    match value:
        case [
            str(pattern),
            str(condition),
            "address" | "nan" | "infinity" | "shape" as kind,
            bool(on),
        ]:
            return Pause(_text(pattern, "breakpoints"), _text(condition, "breakpoints"), kind, on)
    _refuse(
        "breakpoints", value, "place, condition, address, nan, infinity or shape, and true or false"
    )


def _flow_record(value: object) -> tuple[str, int | str, str]:
    match value:
        case [str(address), int(what) | str(what), str(ending)]:
            return address, what, ending
    _refuse("control_flow", value, "address, iterations or branch, and ending")


def difference_from(saved: SavedRun, run: Run) -> str:
    """Return a sentence about the first difference of a recomputed run from its recording.

    Return "" if everything that was stored is equal. Only completed runs are compared. A run that
    was restored as recorded has computed nothing.
    """
    if (
        run.values.is_of_a_file
        or run.state == "paused"
        or saved.description.state not in ("finished", "failed")
    ):
        return ""
    if run.state != saved.description.state:
        return (
            f"The run {run.state} here, and it {saved.description.state} where it was saved"
            f"{_version_words(saved)}."
        )
    flow = _flow_difference(saved, run)
    if flow or saved.outputs is None or run.state != "finished":
        return flow
    outputs = output_entries(run)
    sentence = next(_output_differences(saved.outputs, outputs), "")
    return sentence and f"{sentence}{_version_words(saved)}."


def output_entries(run: Run) -> dict[str, np.ndarray]:
    """Return the outputs of a finished run by position, as arrays that any file can store."""
    result = run.result
    return packed(
        {
            str(position): run.values.outermost(Slot(result.slot(signature)))
            for position, signature in enumerate(result.signatures)
        }
    )


def flow_records(run: Run) -> Iterator[tuple[str, int | str, str]]:
    """Return the address, count or branch, and ending of each executed region, in order."""
    return map(_plain_record, run.control_flow)


def _plain_record(record: ControlFlowRecord) -> tuple[str, int | str, str]:
    outcome = record.iterations if record.iterations is not None else record.branch
    return record.address, "" if outcome is None else outcome, record.ended_by or ""


def _flow_difference(saved: SavedRun, run: Run) -> str:
    if saved.description.control_flow is None:
        return ""
    for recorded, computed in zip_longest(saved.description.control_flow, flow_records(run)):
        if recorded != computed:
            address = (recorded or computed or ("",))[0]
            return (
                f"{shorten(address)}: it {_flow_words(computed)} here, "
                f"and {_flow_words(recorded)} where the run was saved{_version_words(saved)}."
            )
    return ""


def _flow_words(record: tuple[str, int | str, str] | None) -> str:
    if record is None:
        return "did not run"
    _, outcome, ending = record
    return (
        f"ran {outcome:,} times ({ending or 'not ended'})"
        if isinstance(outcome, int)
        else f"took {outcome or 'its body'}"
    )


def _output_differences(recorded: Mapping[str, Any], computed: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*recorded, *computed)):
        recorded_array, array = recorded.get(name), computed.get(name)
        if (
            array is None
            or recorded_array is None
            or array.dtype != recorded_array.dtype
            or array.shape != recorded_array.shape
        ):
            yield f"Output {name} has another type or shape here than in the saved run"
        elif array.tobytes() != recorded_array.tobytes():
            amount = ""
            if array.dtype.kind in "iuf":
                with np.errstate(all="ignore"):
                    distance = np.abs(array.astype(np.float64) - recorded_array.astype(np.float64))
                    amount = f" by up to {significant(np.nanmax(distance), 3)}"
            yield f"Output {name} differs{amount} from what was recorded"


def _version_words(saved: SavedRun) -> str:
    description = saved.description
    loopscope, numpy = shorten(description.made_by, 20), shorten(description.numpy, 20)
    return f" (by Loopscope {loopscope} with numpy {numpy})"
