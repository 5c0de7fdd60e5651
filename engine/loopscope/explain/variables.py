"""Writers of variables: the last Assign that ran before a ReadValue."""

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
    """Assigns of a model, by variable."""

    def __init__(self, run: Run) -> None:
        self._timeline = run.timeline
        self._assigns: defaultdict[int, list[tuple[Program, int]]] = defaultdict(list)
        for program, number, variable in _assigns(run.plan):
            self._assigns[variable].append((program, number))

    def before(self, program: Program, row: int, number: int) -> Writer | None:
        """Return the last Assign of the variable that ran before a ReadValue.

        Return None if there was none, so that the ReadValue returned its initial value.
        """
        variable = program.instructions[number].variable
        step = self._timeline.step_at(program, row, number)
        candidates = [
            (self._step_of(writer[0], writer[2], writer[1]), writer)
            for writer in self._last_before(step, self._assigns.get(variable or 0, ()))
        ]
        return max(candidates, key=lambda candidate: candidate[0])[1] if candidates else None

    def _last_before(self, step: int, assigns: Sequence[tuple[Program, int]]) -> Iterator[Writer]:
        """Yield the last execution of each Assign before a step."""
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
    """Return True if an instruction is an Assign."""
    instruction = program.instructions[number]
    return instruction.assigns
