"""Values that only decide: nothing reads them but one condition, so that generated code writes
them into the condition itself.
"""

from __future__ import annotations

from collections import Counter

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program


def used_once(program: Program, loop: LoopRegion | None) -> set[Slot]:
    """Slots of a graph that nothing reads but one If, to choose its branch, or ``loop``, whose
    body it is, to go on.
    """
    regions = [program.instructions[number].region for number in program.regions]
    questions = [region.condition for region in regions if isinstance(region, IfRegion)]
    read = Counter(slot for instruction in program.instructions for slot in instruction.reads)
    read.update(program.results.values())
    if loop is not None and loop.condition_result is not None:
        questions.append(loop.condition_result)
        read.update(one.result for one in (*loop.carried, *loop.outputs))
    once: set[Slot] = set()
    for slot in questions:
        while (
            read[slot] == 1
            and (number := program.producer.get(slot)) is not None
            and program.instructions[number].region is None
        ):
            once.add(slot)
            if not program.instructions[number].is_identity:
                break
            (slot,) = program.instructions[number].inputs
    return once
