"""Repetition of a short run with every value recorded, for a file without weights.

Without weights, nothing that was not recorded can be computed later.
"""

from __future__ import annotations

from dataclasses import replace

from loopscope.debug.debugger import Debugger
from loopscope.executor.record.recording import Record

SHORT_SECONDS = 10.0
"""Duration in seconds above which a run is not repeated but saved as it was recorded."""
_STEPS_ONE_BY_ONE = 20_000


def record_everything(debugger: Debugger, budget_bytes: int) -> Debugger:
    """Return the same run with every value recorded.

    Return the given run if it recorded everything, took too long, or ends differently when
    repeated.
    """
    machine, beginning = debugger.machine, debugger.beginning
    has_everything = beginning.record.everything and not beginning.record.recompute
    too_long = machine.control.used_seconds > SHORT_SECONDS or (
        debugger.state == "paused" and debugger.steps > _STEPS_ONE_BY_ONE
    )
    if has_everything or too_long or debugger.plan.lacks_weights:
        return debugger
    repeated = Debugger(
        debugger.model,
        dict(
            enumerate(
                machine.values[debugger.plan.main.parameters[item.layer]]
                for item in debugger.model.inputs
            )
        ),
        limits=replace(beginning.limits, seconds=2 * SHORT_SECONDS),
        record=Record(everything=True, recompute=False, budget_bytes=budget_bytes),
        seed=beginning.seed,
        changes={item.address: item.value for item in debugger.changes},
        optimise=debugger.plan.optimise,
    )
    if debugger.state == "paused":
        repeated.seek(debugger.steps)
    else:
        repeated.run()
    return (
        repeated
        if (repeated.state, repeated.steps) == (debugger.state, debugger.steps)
        else debugger
    )
