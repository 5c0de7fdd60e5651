"""A model before and after a repair: what its runtime computes, beside the definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loopscope.debug.debugger import Debugger
from loopscope.debug.inputs import Inputs, bind
from loopscope.errors import EngineError
from loopscope.executor.machine.limits import Limits
from loopscope.ir.model import Model
from loopscope.native.run_once import never
from loopscope.peers.comparing import apart, counted, not_compared
from loopscope.peers.differ import TOLERANCE
from loopscope.peers.other_runtimes import PACKAGES
from loopscope.peers.runtime_process import RuntimeProcess, expect_installed

_SEED = 1


@dataclass(frozen=True, slots=True)
class RepairComparison:
    """Outputs of a model before and after a repair, by the definition and in the runtime."""

    runtime: str
    """Name and version of the runtime."""
    outputs: int
    """Number of outputs."""
    before: int
    """Number of outputs that differ from the definition in the runtime, before the repair."""
    after: int
    """The same number, after the repair."""
    changed: int
    """Number of outputs that the repair changes by the definition."""

    @property
    def agrees(self) -> bool:
        """True if the runtime computes the repaired model as the definition requires."""
        return not self.after

    @property
    def sentence(self) -> str:
        """The comparison in two sentences."""
        outputs = counted(self.outputs, "output")
        text = (
            f"Before, {self.before:,} of {outputs} differ from the definition in {self.runtime}; "
            f"after, {'all agree' if self.agrees else f'{self.after:,} differ'}."
        )
        effect = (
            "By the definition, the repair changes no output for these inputs."
            if not self.changed
            else f"By the definition, the repair changes {counted(self.changed, 'output')} for "
            "these inputs."
        )
        return f"{text} {effect}"


def compare_repair(
    before: Model,
    after: Model,
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 120.0,
    stopped: Callable[[], bool] = never,
) -> RepairComparison:
    """Run a model and its repaired form in Loopscope and in the runtime of its format.

    ``seconds`` limits each run, and ``tolerance`` is relative to the largest magnitude of an
    output. The runtime's process ends when ``stopped`` returns True. Raise ``EngineError`` if one
    of them does not finish, or if the runtime is not installed.
    """
    runtime = PACKAGES[before.dialect]
    expect_installed(runtime)
    limits = Limits(seconds=seconds)
    own = [_outputs(model, inputs, limits) for model in (before, after)]
    with RuntimeProcess(runtime, seconds=seconds, stopped=stopped) as process:
        peers = [
            process.outputs(model, [bind(model, inputs)[port.layer] for port in model.inputs])
            for model in (before, after)
        ]
        version = process.version
    return RepairComparison(
        version,
        outputs=len(own[0]),
        before=_count(own[0], peers[0], tolerance),
        after=_count(own[1], peers[1], tolerance),
        changed=_count(own[0], own[1], tolerance),
    )


def _outputs(model: Model, inputs: Inputs, limits: Limits) -> tuple[Any, ...]:
    run = Debugger(model, inputs, limits=limits, seed=_SEED)
    run.run()
    if run.state != "finished":
        raise EngineError(f"the run does not finish: {run.failure or 'a limit was reached'}")
    return tuple(run.result.outputs)


def _count(left: tuple[Any, ...], right: tuple[Any, ...], tolerance: float) -> int:
    return sum(
        not not_compared(own, peer) and apart(own, peer, tolerance) is not None
        for own, peer in zip(left, right, strict=True)
    )
