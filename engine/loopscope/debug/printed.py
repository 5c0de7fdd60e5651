"""What a run has shown so far: the lines of its Print operations, found in what is recorded of
it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from loopscope.executor.plan.plan import Plan, Program
from loopscope.timeline.run_values import RunValues
from loopscope.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """One line, and the execution that has shown it."""

    step: int
    address: str
    text: str


def lines(
    timeline: Timeline, values: RunValues, before: int, most: int | None = None
) -> tuple[PrintedLine, ...]:
    """The lines up to a step, in the order in which they were shown; at most so many, the last
    ones.
    """
    found: list[tuple[int, Program, int, int]] = []
    for program, number in _printing(timeline.machine.plan):
        count, most_shown = (
            _executions(timeline, program, number, before),
            program.instructions[number].shows_first,
        )
        count = count if most_shown < 0 else min(count, most_shown)
        first = 0 if most is None else max(0, count - most)
        found += [
            (timeline.step_at(program, row, number), program, number, row)
            for row in range(first, count)
        ]
    latest = (
        sorted(found, key=_step)
        if most is None
        else sorted(heapq.nlargest(most, found, key=_step), key=_step)
    )
    return tuple(_line(timeline, values, *one) for one in latest)


def _step(found: tuple[int, Program, int, int]) -> int:
    return found[0]


def _printing(plan: Plan) -> Iterator[tuple[Program, int]]:
    for program in plan.programs:
        for number, instruction in enumerate(program.instructions):
            if instruction.shows is not None:
                yield program, number


def _executions(timeline: Timeline, program: Program, number: int, before: int) -> int:
    """How many executions of an instruction were done before a step: later rows are later in
    time.
    """
    low, high = 0, timeline.executions.rows[program.index]
    while low < high:
        middle = (low + high) // 2
        if timeline.step_at(program, middle, number) < before:
            low = middle + 1
        else:
            high = middle
    return low


def _line(
    timeline: Timeline, values: RunValues, step: int, program: Program, number: int, row: int
) -> PrintedLine:
    instruction = program.instructions[number]
    assert instruction.shows is not None
    text = instruction.shows(
        *(values.get(timeline, program, row, slot) for slot in instruction.inputs)
    )
    return PrintedLine(step, f"{timeline.address(program, row)}/{instruction.label}", text)
