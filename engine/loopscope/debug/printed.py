"""Printed lines of a run: the lines of its Print operations, reconstructed from the recording."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from loopscope.executor.plan.plan import Plan, Program
from loopscope.timeline.run_values import RunValues
from loopscope.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """One line, and the execution that printed it."""

    step: int
    address: str
    text: str


def lines(
    timeline: Timeline, values: RunValues, before: int, limit: int | None = None
) -> tuple[PrintedLine, ...]:
    """Return the lines before a step, in the order in which they were printed; at most the last
    ``limit``.
    """
    executions: list[tuple[int, Program, int, int]] = []
    for program, number in _print_instructions(timeline.machine.plan):
        count = _executions(timeline, program, number, before)
        max_shown = program.instructions[number].shows_first
        count = count if max_shown < 0 else min(count, max_shown)
        first = 0 if limit is None else max(0, count - limit)
        executions += [
            (timeline.step_at(program, row, number), program, number, row)
            for row in range(first, count)
        ]
    if limit is not None:
        executions = heapq.nlargest(limit, executions, key=_step)
    return tuple(_line(timeline, values, *execution) for execution in sorted(executions, key=_step))


def _step(execution: tuple[int, Program, int, int]) -> int:
    return execution[0]


def _print_instructions(plan: Plan) -> Iterator[tuple[Program, int]]:
    for program in plan.programs:
        for number, instruction in enumerate(program.instructions):
            if instruction.shows is not None:
                yield program, number


def _executions(timeline: Timeline, program: Program, number: int, before: int) -> int:
    """Return the number of executions of an instruction before a step, by bisection over rows."""
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
