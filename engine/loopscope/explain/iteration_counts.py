"""Counts that end a loop: the trip count, and the number of parts of sliced inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.debug.overrides_by_address import is_changed
from loopscope.debug.run import Run
from loopscope.executor.machine.regions import parts
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import LoopRegion, Program
from loopscope.explain.facts import Fact
from loopscope.explain.provenance import ProvenanceWalk, SlotPart
from loopscope.ir.address import decode
from loopscope.ir.model import SEQUENCE_MAP


def trip_fact(run: Run, program: Program, row: int, slot: Slot) -> Fact:
    """Return the fact about a loop's trip count: its value and the values that it was computed
    from.
    """
    walk = ProvenanceWalk(run)
    place = SlotPart(program, row, slot)
    count = f"{int(np.asarray(walk.value(place)).reshape(-1)[0]):,}"
    by_hand = is_changed(run, program, row, slot)
    operands = (
        ()
        if walk.is_fixed(place)
        else tuple(walk.address(source) for source, _ in walk.sources_of(place))
    )
    text = (
        f"{_name(walk, place)} was set to {count} by hand"
        if by_hand
        else f"the trip count {_name(walk, place)} is {count}"
    )
    return Fact(walk.address(place), walk.operation(place), text, operands, by_hand)


def trip_count_name(run: Run, program: Program, row: int, slot: Slot) -> str:
    """Return the words for a trip count, including its name unless it is a Const."""
    walk = ProvenanceWalk(run)
    place = SlotPart(program, row, slot)
    return "the trip count" if walk.is_fixed(place) else f"the trip count {_name(walk, place)}"


def slice_facts(run: Run, program: Program, row: int, region: LoopRegion) -> tuple[Fact, ...]:
    """Return the facts about the sliced inputs of a loop with the fewest parts."""
    walk = ProvenanceWalk(run)
    counted: list[tuple[int, Fact]] = []
    for sliced in region.sliced:
        place = SlotPart(program, row, sliced.source)
        source = walk.value(place)
        if region.kind == SEQUENCE_MAP and not isinstance(source, tuple):
            continue
        count = parts(region, sliced, source)
        where = "" if isinstance(source, tuple) else f" along axis {sliced.axis}"
        text = f"{_name(walk, place)} has {count:,} part{'' if count == 1 else 's'}{where}"
        counted.append((count, Fact(walk.address(place), walk.operation(place), text, ())))
    fewest = min((count for count, _ in counted), default=0)
    return tuple(dict.fromkeys(fact for count, fact in counted if count == fewest))


def ran_out(facts: Sequence[Fact], count: int) -> str:
    """Return the clause about the sliced inputs that ran out or have no parts."""
    names = list(dict.fromkeys(f"`{decode(fact.address.rpartition('/')[2])}`" for fact in facts))
    joined = " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""
    is_plural = len(names) > 1
    verb = "ran out" if count else "have no parts" if is_plural else "has no parts"
    return f"the sliced input{'s' if is_plural else ''}{f' {joined}' if joined else ''} {verb}"


def _name(walk: ProvenanceWalk, place: SlotPart) -> str:
    return f"`{decode(walk.address(place).rpartition('/')[2])}`"
