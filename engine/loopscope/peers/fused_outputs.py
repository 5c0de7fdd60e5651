"""The iteration in which an operation that a runtime runs in place of a loop begins to differ
from the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.debug.run import Run
from loopscope.errors import elided
from loopscope.executor.plan.plan import Instruction, LoopRegion
from loopscope.peers.comparing import elements_told, first_apart
from loopscope.peers.fused_regions import slices_of
from loopscope.peers.probes import Probe
from loopscope.peers.row_feeds import rows_of


def outputs_of(run: Run, loops: Sequence[Instruction], probes: Sequence[Probe]) -> list[Probe]:
    """Return the probes that are outputs of loops of the outermost graph, as they are."""
    main = run.plan.main
    own = [
        one
        for one in probes
        if one.program is main and one.position >= 0 and one.fingerprint is None
    ]
    return sorted(
        (one for one in own if main.instructions[one.position] in loops),
        key=lambda one: (one.position, one.output),
    )


def beginning(
    run: Run, given: Mapping[Probe, np.ndarray], runtime: str, tolerance: float
) -> tuple[Instruction, str] | None:
    """Return the first loop whose outputs differ, with a sentence on where they begin to differ;
    None where all agree.

    ``given``: what the runtime gave for the outputs of the loops when it was asked for nothing
    inside, so that it replaced them.
    """
    for probe in sorted(given, key=lambda one: (one.position, one.output)):
        rows = rows_of(probe, given[probe])
        if rows is None or bool(np.all(Deviations.of(probe.expected, rows).relative <= tolerance)):
            continue
        place = first_apart(probe.expected, rows, tolerance)
        if place is None:
            continue
        instruction = run.plan.main.instructions[probe.position]
        here, there = elements_told(probe.expected, rows, place)
        axis = _token_axis(run, instruction, probe.expected.shape[1:])
        if axis is None:
            where = f"in its output {probe.output}"
        else:
            iteration = _first_apart_along(probe.expected[0], rows[0], axis, tolerance)
            where = f"at iteration {iteration:,}, along axis {axis} of its output {probe.output}"
        told = f"What runs in place of '{elided(instruction.node.name)}' begins to differ {where}: {there} in {runtime}, {here} here."
        return instruction, told
    return None


def _token_axis(run: Run, instruction: Instruction, shape: Sequence[int]) -> int | None:
    """The axis of an output that has a part for each slice or iteration; None where no axis or
    several do.
    """
    region = instruction.region
    if not isinstance(region, LoopRegion):
        return None
    counts = {
        slices_of(run, region),
        run.control_flow.record_of(region, 0, instruction.label).iterations,
    }
    axes = [axis for axis, length in enumerate(shape) if length in counts and length > 1]
    return axes[0] if len(axes) == 1 else None


def _first_apart_along(here: np.ndarray, there: np.ndarray, axis: int, tolerance: float) -> int:
    """The first part along an axis that differs by more than a part of the largest magnitude of
    the whole.
    """
    scale = max(float(np.abs(side).max(initial=0)) for side in (here, there))
    apart = (
        np.moveaxis(np.abs(here.astype(np.float64) - there), axis, 0)
        .reshape(here.shape[axis], -1)
        .max(axis=1)
    )
    over = np.flatnonzero(~(apart <= tolerance * scale))
    return int(over[0]) if len(over) else int(np.argmax(apart))
