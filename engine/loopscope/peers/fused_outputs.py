"""First iteration in which an operation that replaces a loop in a runtime differs from the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.debug.run import Run
from loopscope.errors import elided
from loopscope.executor.plan.plan import Instruction, LoopRegion
from loopscope.peers.comparing import element_texts, first_apart
from loopscope.peers.fused_regions import slices_of
from loopscope.peers.probes import Probe
from loopscope.peers.row_feeds import rows_of


def outputs_of(run: Run, loops: Sequence[Instruction], probes: Sequence[Probe]) -> list[Probe]:
    """Return the probes that are outputs of loops of the outermost graph, without fingerprints."""
    main = run.plan.main
    own = [
        probe
        for probe in probes
        if probe.program is main and probe.position >= 0 and probe.fingerprint is None
    ]
    return sorted(
        (probe for probe in own if main.instructions[probe.position] in loops),
        key=lambda probe: (probe.position, probe.output),
    )


def first_difference(
    run: Run, answers: Mapping[Probe, np.ndarray], runtime: str, tolerance: float
) -> tuple[Instruction, str] | None:
    """Return the first loop whose outputs differ, with a sentence about the first difference; None
    if all agree.

    ``answers``: the runtime's values of the loop outputs from a run without requested inner values,
    in which it replaced the loops.
    """
    for probe in sorted(answers, key=lambda candidate: (candidate.position, candidate.output)):
        rows = rows_of(probe, answers[probe])
        if rows is None or bool(np.all(Deviations.of(probe.expected, rows).relative <= tolerance)):
            continue
        place = first_apart(probe.expected, rows, tolerance)
        if place is None:
            continue
        instruction = run.plan.main.instructions[probe.position]
        own, peer = element_texts(probe.expected, rows, place)
        axis = _token_axis(run, instruction, probe.expected.shape[1:])
        if axis is None:
            where = f"in its output {probe.output}"
        else:
            iteration = _first_difference_along(probe.expected[0], rows[0], axis, tolerance)
            where = f"at iteration {iteration:,}, along axis {axis} of its output {probe.output}"
        name = elided(instruction.node.name)
        return instruction, (
            f"What runs in place of '{name}' begins to differ {where}: "
            f"{peer} in {runtime}, {own} here."
        )
    return None


def _token_axis(run: Run, instruction: Instruction, shape: Sequence[int]) -> int | None:
    """Return the axis of an output with one part per slice or iteration; None if it is not
    unique.
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


def _first_difference_along(own: np.ndarray, peer: np.ndarray, axis: int, tolerance: float) -> int:
    """Return the first part along an axis that differs by more than ``tolerance`` times the largest
    magnitude.
    """
    scale = max(float(np.abs(side).max(initial=0)) for side in (own, peer))
    distances = (
        np.moveaxis(np.abs(own.astype(np.float64) - peer), axis, 0)
        .reshape(own.shape[axis], -1)
        .max(axis=1)
    )
    over = np.flatnonzero(~(distances <= tolerance * scale))
    return int(over[0]) if len(over) else int(np.argmax(distances))
