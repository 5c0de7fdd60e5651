"""The loops and branches that a runtime runs as something else, where an output that comes from
them differs and all inside agrees.
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
"""What runs in place of a loop and looks neither at its trip count nor at its condition
(measured on OpenVINO 2026.4).
"""


@dataclass(frozen=True, slots=True, eq=False)
class Replaced:
    """A loop or branch that another operation runs."""

    instruction: Instruction
    sentence: str


def replaced_regions(
    run: Run, fates: Sequence[RuntimeFate], results: Sequence[Slot]
) -> Iterator[Replaced]:
    """Yield each loop or branch of the outermost graph that another operation runs and that any of
    the values in ``results`` comes from, with a sentence: what runs, and what the loop does here.
    """
    main = run.plan.main
    behind = {slot for result in results for slot in backward_slice(main, result)}
    found = {
        f"{main.address}/{one.label}": one
        for one in main.instructions
        if one.region and behind.intersection(one.outputs)
    }
    for fate in fates:
        if fate.address in found and fate.became in ("replaced", "merged"):
            yield Replaced(found[fate.address], _sentence(run, fate, found[fate.address]))


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
    """Return how many slices the inputs of a loop of the outermost graph have; None where it
    takes none.
    """
    if region.kind == SEQUENCE_MAP or not region.sliced:
        return None
    sources = (
        (one, run.values.get(run.timeline, run.plan.main, 0, one.source)) for one in region.sliced
    )
    return min(parts(region, one, np.asarray(source)) for one, source in sources)
