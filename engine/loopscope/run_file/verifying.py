"""Comparison of a run with a saved run, and a sentence about their first difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.errors import shorten
from loopscope.executor.plan.numbers import Slot
from loopscope.ir.readable import significant
from loopscope.ops.stored import packed
from loopscope.run_file.saved_run import SavedRun
from loopscope.timeline.control_flow import ControlFlowRecord


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
    return map(_flow_record, run.control_flow)


def _flow_record(record: ControlFlowRecord) -> tuple[str, int | str, str]:
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
