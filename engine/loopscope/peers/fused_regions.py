"""Loops and branches that a runtime replaced by another operation, if a dependent output differs
and inner values agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.machine.regions import parts
from loopscope.executor.plan.dependencies import backward_slice
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction, LoopRegion
from loopscope.ir.model import SEQUENCE_MAP
from loopscope.peers.comparing import counted
from loopscope.peers.fate import RuntimeFate

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
