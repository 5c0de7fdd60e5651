"""Values that only one condition reads, which generated code inlines into the condition."""

from __future__ import annotations

from collections import Counter

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program


def used_once(program: Program, loop: LoopRegion | None) -> set[Slot]:
    """Return the slots of a graph that only one condition reads.

    The condition chooses the branch of an If, or continues ``loop``, whose body the graph is.
    """
    regions = [program.instructions[number].region for number in program.regions]
    conditions = [region.condition for region in regions if isinstance(region, IfRegion)]
    read_counts = Counter(
        slot for instruction in program.instructions for slot in instruction.reads
    )
    read_counts.update(program.results.values())
    if loop is not None and loop.condition_result is not None:
        conditions.append(loop.condition_result)
        read_counts.update(port.result for port in (*loop.carried, *loop.outputs))
    slots: set[Slot] = set()
    for slot in conditions:
        while (
            read_counts[slot] == 1
            and (number := program.producer.get(slot)) is not None
            and program.instructions[number].region is None
        ):
            slots.add(slot)
            if not program.instructions[number].is_identity:
                break
            (slot,) = program.instructions[number].inputs
    return slots
