"""What a value may be computed from, whatever the run: back through operations, bodies and the
graphs around.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction, Program


def backward_slice(program: Program, slot: Slot) -> Iterator[Slot]:
    """A slot and all that may feed it, each once."""
    waiting, seen = [(program, slot)], set[Slot]()
    while waiting:
        graph, one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        yield one
        number = graph.producer.get(one)
        if number is not None:
            waiting += _feeding(graph, graph.instructions[number])
        elif graph.parent is not None and one in graph.parameter_slots:
            around = graph.parent.instructions[graph.owner]
            waiting += _feeding(graph.parent, around)


def _feeding(graph: Program, instruction: Instruction) -> list[tuple[Program, Slot]]:
    """The inputs of an operation; for one with bodies, their Results too."""
    inner = instruction.region.programs if instruction.region else ()
    return [(graph, slot) for slot in instruction.inputs] + [
        (body, slot) for body in inner for slot in body.results.values()
    ]
