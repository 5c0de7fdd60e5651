"""A short run made once more with every value recorded, for a file without weights, from which
nothing can be computed again.
"""

from __future__ import annotations

from dataclasses import replace

from loopscope.debug.debugger import Debugger
from loopscope.executor.record.recording import Record

SHORT_SECONDS = 10.0
"""A run that took longer is kept as it was recorded."""
_STEPS_ONE_BY_ONE = 20_000


def with_everything(debugger: Debugger, budget_bytes: int) -> Debugger:
    """The same run with every value recorded; the given one where that has everything, took
    long, or does not come out the same.
    """
    machine, beginning = debugger.machine, debugger.beginning
    has_everything = beginning.record.everything and not beginning.record.recompute
    too_long = machine.control.used_seconds > SHORT_SECONDS or (
        debugger.state == "paused" and debugger.steps > _STEPS_ONE_BY_ONE
    )
    if has_everything or too_long or debugger.plan.lacks_weights:
        return debugger
    again = Debugger(
        debugger.model,
        dict(
            enumerate(
                machine.values[debugger.plan.main.parameters[one.layer]]
                for one in debugger.model.inputs
            )
        ),
        limits=replace(beginning.limits, seconds=2 * SHORT_SECONDS),
        record=Record(everything=True, recompute=False, budget_bytes=budget_bytes),
        seed=beginning.seed,
        changes={one.address: one.value for one in debugger.changes},
        optimise=debugger.plan.optimise,
    )
    if debugger.state == "paused":
        again.seek(debugger.steps)
    else:
        again.run()
    return again if (again.state, again.steps) == (debugger.state, debugger.steps) else debugger
