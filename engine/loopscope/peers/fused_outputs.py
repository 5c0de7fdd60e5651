"""Loops and branches that a runtime replaced by another operation, and the steps that differ.

One counts as replaced if a dependent output differs and inner values agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.debug.run import Run
from loopscope.errors import elided
from loopscope.executor.machine.regions import parts
from loopscope.executor.plan.analyses import backward_slice
from loopscope.executor.plan.body_ports import Concatenated, LastValue
from loopscope.executor.plan.plan import Instruction, LoopRegion
from loopscope.executor.plan.slots import Slot
from loopscope.ir.model import SEQUENCE_MAP
from loopscope.peers.comparing import counted, element_texts, first_apart
from loopscope.peers.fate import RuntimeFate
from loopscope.peers.other_runtimes import rows_of
from loopscope.peers.probes import Probe, plain_probe


@dataclass(frozen=True, slots=True, eq=False)
class Replacements:
    """Operations that replace loops and branches in a runtime."""

    sentences: tuple[str, ...]
    values: Mapping[Probe, np.ndarray]
    """Runtime's values of the outputs of loops that it replaced."""


_WRITING = frozenset(
    {
        "ScatterElements",
        "ScatterElementsUpdate",
        "ScatterND",
        "ScatterNDUpdate",
        "ScatterUpdate",
    }
)
"""Operations that write the values of an iteration into a carried tensor."""
_UPDATES = 2
"""Input of these operations with the values."""


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


def steps(run: Run, values: Mapping[Probe, np.ndarray]) -> Iterator[tuple[Probe, np.ndarray]]:
    """Yield a body value of each replaced loop, with the runtime's values of its iterations.

    ``values``: outputs of replaced loops. Only outputs whose parts are the values of the iterations
    are divided into them.
    """
    for output, peer in values.items():
        instruction = run.plan.main.instructions[output.position]
        region, rows = instruction.region, rows_of(output, peer)
        axis = _token_axis(run, instruction, output.expected.shape[1:])
        if rows is None or axis is None or not isinstance(region, LoopRegion):
            continue
        step = _step_probe(run, region, region.outputs[output.output])
        if step is None:
            continue
        own, parts = (_parts(array[0], axis, step) for array in (output.expected, rows))
        if own is not None and parts is not None and np.array_equal(own, step.expected):
            yield step, parts


def _step_probe(run: Run, region: LoopRegion, output: LastValue | Concatenated) -> Probe | None:
    """Return the probe of the value that each iteration adds to a loop output."""
    body, slot = region.program, output.result
    position = body.producer.get(slot)
    if position is not None and body.instructions[position].node.type in _WRITING:
        slot = body.instructions[position].inputs[_UPDATES]
        position = body.producer.get(slot)
    elif isinstance(output, LastValue):
        return None
    count = run.timeline.executions.rows[body.index]
    if position is None or not count:
        return None
    source = body.instructions[position]
    probe = Probe(
        body,
        source.node.id,
        source.outputs.index(slot),
        slot,
        position,
        expected=np.zeros(0),
        lengths=(count,),
        places=np.arange(count),
    )
    return plain_probe(run, probe)


def _parts(array: np.ndarray, axis: int, step: Probe) -> np.ndarray | None:
    """Return the parts of a loop output along an axis, in the shape of the step's values; None if
    they do not fit.
    """
    parts = np.moveaxis(array, axis, 0)[: len(step.expected)]
    return parts.reshape(step.expected.shape) if parts.size == step.expected.size else None


_READS_ALL_SLICES = frozenset({"GatedDeltaNet"})
"""Operations that replace a loop and ignore its trip count and condition (measured on OpenVINO
2026.4).
"""


@dataclass(frozen=True, slots=True, eq=False)
class Replaced:
    """A loop or branch that another operation replaces."""

    instruction: Instruction
    sentence: str


def replaced_regions(
    run: Run, fates: Sequence[RuntimeFate], results: Sequence[Slot]
) -> Iterator[Replaced]:
    """Yield each replaced loop or branch of the outermost graph on which any of ``results``
    depends.

    The sentence names the replacing operation and the loop's iteration count here.
    """
    main = run.plan.main
    sources = {slot for result in results for slot in backward_slice(main, result)}
    regions = {
        f"{main.address}/{instruction.label}": instruction
        for instruction in main.instructions
        if instruction.region and sources.intersection(instruction.outputs)
    }
    for fate in fates:
        if fate.address in regions and fate.became in ("replaced", "merged"):
            yield Replaced(regions[fate.address], _sentence(run, fate, regions[fate.address]))


def _sentence(run: Run, fate: RuntimeFate, instruction: Instruction) -> str:
    region = instruction.region
    if not isinstance(region, LoopRegion):
        return fate.sentence
    record = run.control_flow.record_of(region, 0, fate.address)
    ran = record.iterations or 0
    match record.ended_by:
        case "trip_count" | "zero_trip_count":
            why = f" (trip count {ran:,})"
        case "condition":
            why = " (then its condition is false)"
        case "initial_condition":
            why = " (its condition is false at the start)"
        case _:
            why = ""
    slices = slices_of(run, region)
    reads = (
        f", which reads all {counted(slices, 'slice')}"
        if slices is not None and fate.runs_as in _READS_ALL_SLICES
        else ""
    )
    return (
        f"{fate.sentence.removesuffix('.')}{reads}; the loop runs {counted(ran, 'iteration')}{why}."
    )


def slices_of(run: Run, region: LoopRegion) -> int | None:
    """Return the number of slices of a loop's inputs in the outermost graph; None without sliced
    inputs.
    """
    if region.kind == SEQUENCE_MAP or not region.sliced:
        return None
    sources = (
        (sliced, run.values.get(run.timeline, run.plan.main, 0, sliced.source))
        for sliced in region.sliced
    )
    return min(parts(region, sliced, np.asarray(source)) for sliced, source in sources)
