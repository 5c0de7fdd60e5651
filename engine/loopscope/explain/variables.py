"""Who wrote what a variable held: the last Assign that ran before a ReadValue."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import Plan, Program

Writer = tuple[Program, int, int]
"""Program, row and number of an instruction."""


class Writers:
    """The Assigns of a model, by variable."""

    def __init__(self, run: Run) -> None:
        self._timeline = run.timeline
        self._assigns: defaultdict[int, list[tuple[Program, int]]] = defaultdict(list)
        for program, number, variable in _assigns(run.plan):
            self._assigns[variable].append((program, number))

    def before(self, program: Program, row: int, number: int) -> Writer | None:
        """The last Assign of its variable that ran before a ReadValue did; None where none had,
        and it read its initial value.
        """
        variable = program.instructions[number].variable
        step = self._timeline.step_at(program, row, number)
        found = [
            (self._step_of(one[0], one[2], one[1]), one)
            for one in self._last_before(step, self._assigns.get(variable or 0, ()))
        ]
        return max(found, key=lambda one: one[0])[1] if found else None

    def _last_before(self, step: int, assigns: Sequence[tuple[Program, int]]) -> Iterator[Writer]:
        """Of each of them the last time that it ran before a step."""
        for program, number in assigns:
            rows = range(self._timeline.executions.rows[program.index])
            row = bisect_left(rows, step, key=partial(self._step_of, program, number)) - 1
            if row >= 0:
                yield program, row, number

    def _step_of(self, program: Program, number: int, row: int) -> int:
        return self._timeline.step_at(program, row, number)


def _assigns(plan: Plan) -> Iterator[tuple[Program, int, int]]:
    for program in plan.programs:
        for number, instruction in enumerate(program.instructions):
            if instruction.variable is not None and writes(program, number):
                yield program, number, instruction.variable


def writes(program: Program, number: int) -> bool:
    """Whether an instruction is an Assign."""
    instruction = program.instructions[number]
    return instruction.assigns
