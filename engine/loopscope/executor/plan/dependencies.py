"""Static data dependences of a value: back through operations, bodies and enclosing graphs."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction, Program


def backward_slice(program: Program, slot: Slot) -> Iterator[Slot]:
    """Yield a slot and all slots that may feed it, each once."""
    waiting, seen = [(program, slot)], set[Slot]()
    while waiting:
        graph, source = waiting.pop()
        if source in seen:
            continue
        seen.add(source)
        yield source
        number = graph.producer.get(source)
        if number is not None:
            waiting += _feeding(graph, graph.instructions[number])
        elif graph.parent is not None and source in graph.parameter_slots:
            owner = graph.parent.instructions[graph.owner]
            waiting += _feeding(graph.parent, owner)


def _feeding(graph: Program, instruction: Instruction) -> list[tuple[Program, Slot]]:
    """Return the inputs of an operation, with the Results of its bodies."""
    inner = instruction.region.programs if instruction.region else ()
    return [(graph, slot) for slot in instruction.inputs] + [
        (body, slot) for body in inner for slot in body.results.values()
    ]
