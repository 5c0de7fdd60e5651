"""What a run did, held against what a saved one recorded: the first difference in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.errors import shorten
from loopscope.executor.plan.numbers import Slot
from loopscope.ops.stored import packed
from loopscope.run_file.saved_run import SavedRun
from loopscope.timeline.control_flow import ControlFlowRecord


def difference_from(saved: SavedRun, run: Run) -> str:
    """The first thing in which a run that was computed again is not what was recorded; empty when
    all that was kept is the same.

    Only of runs that are over: of others there is nothing to compare yet. A run that was put back
    as it was recorded computed nothing.
    """
    if (
        run.values.is_of_a_file
        or run.state == "paused"
        or saved.description.state not in ("finished", "failed")
    ):
        return ""
    if run.state != saved.description.state:
        return f"The run {run.state} here, and it {saved.description.state} where it was saved{_made_with(saved)}."
    flow = _flow_difference(saved, run)
    if flow or saved.outputs is None or run.state != "finished":
        return flow
    now = output_entries(run)
    found = next(_output_differences(saved.outputs, now), "")
    return found and f"{found}{_made_with(saved)}."


def output_entries(run: Run) -> dict[str, np.ndarray]:
    """The outputs of a run that finished, by position, as arrays that any file can hold."""
    result = run.result
    return packed(
        {
            str(position): run.values.outermost(Slot(result.slot(one)))
            for position, one in enumerate(result.signatures)
        }
    )


def flow_records(run: Run) -> Iterator[tuple[str, int | str, str]]:
    """What each loop and branch did, in order."""
    return map(_plain, run.control_flow)


def _plain(record: ControlFlowRecord) -> tuple[str, int | str, str]:
    what = record.iterations if record.iterations is not None else record.branch
    return record.address, "" if what is None else what, record.ended_by or ""


def _flow_difference(saved: SavedRun, run: Run) -> str:
    if saved.description.control_flow is None:
        return ""
    for then, now in zip_longest(saved.description.control_flow, flow_records(run)):
        if then != now:
            address = (then or now or ("",))[0]
            return f"{shorten(address)}: it {_told(now)} here, and {_told(then)} where the run was saved{_made_with(saved)}."
    return ""


def _told(record: tuple[str, int | str, str] | None) -> str:
    if record is None:
        return "did not run"
    _, what, ending = record
    return (
        f"ran {what:,} times ({ending or 'not ended'})"
        if isinstance(what, int)
        else f"took {what or 'its body'}"
    )


def _output_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*then, *now)):
        one, other = then.get(name), now.get(name)
        if one is None or other is None or one.dtype != other.dtype or one.shape != other.shape:
            yield f"Output {name} has another type or shape here than where the run was saved"
        elif one.tobytes() != other.tobytes():
            apart = ""
            if one.dtype.kind in "iuf":
                with np.errstate(all="ignore"):
                    apart = f" by up to {np.nanmax(np.abs(one.astype(np.float64) - other.astype(np.float64))):.3g}"
            yield f"Output {name} differs{apart} from what was recorded"


def _made_with(saved: SavedRun) -> str:
    return f" (by Loopscope {shorten(saved.description.made_by, 20)} with numpy {shorten(saved.description.numpy, 20)})"
