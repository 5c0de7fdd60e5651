"""All ways through a run of one model agree, bit for bit, in any order: what one of them leaves
behind must not change another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase

import loopscope
from loopscope.debug.position import Cursor
from loopscope.debug.result import RunStopped
from loopscope.errors import EngineError
from loopscope.explain.executions import branch_history
from loopscope.explain.history import history
from loopscope.timeline.vectorised import Columns, Recorded
from tests.engine.drawn.graph import Choices
from tests.engine.drawn.models import drawn_model, same_bits

RECORDS = [
    loopscope.Record(),
    loopscope.Record(everything=True),
    loopscope.Record(budget_bytes=600),
    loopscope.Record(everything=True, budget_bytes=3000),
    loopscope.Record(state=False),
]
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""For tests that draw a seed: a smaller seed is no smaller model."""
_MOST_STEPS = 2000
_MOST_LOOKED_AT = 100


class Stepped:
    """What stepping through a model that has never run otherwise saw: the measure of all other
    ways.
    """

    def __init__(
        self, model: loopscope.Model, feeds: list[np.ndarray], changes: dict[str, Any] | None = None
    ) -> None:
        self.debugger = debugger = loopscope.Debugger(model, feeds, seed=1, changes=changes)
        self.trail: list[Cursor] = []
        self.values: dict[str, np.ndarray] = {}
        while debugger.state == "paused" and len(self.trail) < _MOST_STEPS:
            cursor = debugger.cursor
            self._look_at_parameters()
            debugger.step()
            if debugger.failure is None:
                self.trail.append(cursor)
                if cursor.kind == "operation":
                    self.values[cursor.address] = np.array(debugger.value(cursor.address))
        self.is_whole = debugger.state != "paused"
        self.flow = list(debugger.control_flow)
        self.outputs = debugger.result.outputs if debugger.state == "finished" else ()

    def _look_at_parameters(self) -> None:
        level = self.debugger.moment[-1]
        if level.position or level.program.parent is None:
            return
        for label, layer in level.program.layer_of_label.items():
            if layer in level.program.parameters:
                place = f"{self.debugger.timeline.address(level.program, level.row)}/{label}"
                self.values[place] = np.array(self.debugger.value(place))


class Agreement:
    """One drawn model, run in many ways."""

    def __init__(self, model: loopscope.Model, feeds: list[list[np.ndarray]], seed: int) -> None:
        self.c = Choices(seed)
        self.model = model
        # Plans belong to models: what is compared with has one of its own.
        self.twin = replace(model)
        self.stepped = [(one, Stepped(self.twin, one)) for one in feeds]

    @staticmethod
    def of(seed: int, *, numbers: bool = False) -> Agreement:
        """That of the model of a seed."""
        return Agreement(*drawn_model(seed, numbers=numbers), seed + 1)

    @property
    def is_short(self) -> bool:
        return all(one.is_whole for _, one in self.stepped)

    def check(self, ways: int) -> None:
        """So many ways, one after the other on one plan."""
        for _ in range(ways):
            feeds, expected = self.c.pick(self.stepped)
            self.c.pick(WAYS)(self, feeds, expected)

    # -- ways
    # -----------------------------------------------------------------------------------------------------

    def run(self, feeds: list[np.ndarray], expected: Stepped) -> None:
        optimise = loopscope.Optimise(prune=False, fold=self.c.chance(50), cse=self.c.chance(50))
        for _ in range(1 + self.c.integer(2)):
            if expected.debugger.state == "failed":
                with pytest.raises(RunStopped) as stop:
                    loopscope.run(self.model, feeds, seed=1, optimise=optimise)
                assert (stop.value.address, stop.value.cause) == (
                    expected.debugger.failed_address,
                    "error",
                )
                continue
            result = loopscope.run(self.model, feeds, seed=1, optimise=optimise)
            assert list(result.control_flow) == expected.flow
            _same_outputs(result, expected)

    def pruned(self, feeds: list[np.ndarray], expected: Stepped) -> None:
        """What no output needs does not run, and makes no difference to the outputs."""
        if expected.debugger.state == "finished":
            result = loopscope.run(self.model, feeds, seed=1)
            assert {one.address: one for one in expected.flow}.items() >= {
                one.address: one for one in result.control_flow
            }.items()
            _same_outputs(result, expected)

    def fetch(self, feeds: list[np.ndarray], expected: Stepped) -> None:
        """Some values in some iterations, and nothing that they do not need."""
        places = sorted(expected.values)
        fetches = (
            list(dict.fromkeys(self.c.pick(places) for _ in range(1 + self.c.integer(3))))
            if places
            else []
        )
        result = loopscope.run(
            self.model, feeds, fetches, seed=1, optimise=loopscope.Optimise(cse=self.c.chance(50))
        )
        for address, value in result.named.items():
            assert same_bits(value, expected.values[address]), address

    def session(self, feeds: list[np.ndarray], expected: Stepped) -> None:
        """With variables that were kept for a while and then forgotten."""
        session = loopscope.Session(self.model)
        if expected.debugger.state == "finished":
            try:
                session.run(feeds, seed=1)
                session.run(feeds, seed=2)
            except RunStopped:
                pass
            session.reset()
            _same_outputs(session.run(feeds, seed=1), expected)

    def debug(self, feeds: list[np.ndarray], expected: Stepped) -> None:
        debugger = loopscope.Debugger(self.model, feeds, seed=1, record=self.c.pick(RECORDS))
        debugger.run()
        self._same_run(debugger, expected)
        self._same_explanations(debugger, expected)

    def pause(self, feeds: list[np.ndarray], expected: Stepped) -> None:
        """Limits, some steps between them, and packing what was recorded where nobody expects
        it.
        """
        limits = loopscope.Limits(iterations=1 + self.c.integer(7))
        debugger = loopscope.Debugger(
            self.model, feeds, seed=1, record=self.c.pick(RECORDS), limits=limits
        )
        debugger.run()
        while debugger.state not in ("finished", "failed"):
            if self.c.chance(20):
                debugger.machine.recording.pack()
            for _ in range(self.c.pick([0, 0, 0, 1, 3])):
                debugger.step()
            self._same_moment(debugger, expected)
            debugger.run()
        self._same_run(debugger, expected)

    def move(self, feeds: list[np.ndarray], expected: Stepped) -> None:
        """Here and there, to where nobody has been and back."""
        debugger = loopscope.Debugger(self.model, feeds, seed=1, record=self.c.pick(RECORDS))
        for _ in range(8 if expected.trail else 0):
            at = self.c.integer(len(expected.trail))
            seek, run_to = (
                partial(debugger.seek, at),
                partial(debugger.run_to, expected.trail[at].address),
            )
            moves: list[Callable[[], object]] = [
                seek,
                run_to,
                debugger.step_over,
                debugger.step_out,
                debugger.next_iteration,
                debugger.step_back,
            ]
            self.c.pick(moves)()
            self._same_moment(debugger, expected)
        debugger.run()
        self._same_run(debugger, expected)

    def change(self, feeds: list[np.ndarray], expected: Stepped) -> None:
        """What if one or two values were others?"""
        places = [
            place
            for place in expected.values
            if place.count("/") > 1 or place.rpartition("/")[2][0] != "p"
        ]
        changes = (
            {
                place: self._another(expected.values[place])
                for place in (self.c.pick(places) for _ in range(2))
            }
            if places
            else {}
        )
        try:
            changed = Stepped(self.twin, feeds, changes)
        except EngineError:  # Of a value of which inference says that it cannot be there.
            return
        if changed.is_whole:
            debugger = loopscope.Debugger(
                self.model, feeds, seed=1, record=self.c.pick(RECORDS), changes=changes
            )
            debugger.run()
            self._same_run(debugger, changed)
            self._same_explanations(debugger, changed)

    def _another(self, was: np.ndarray) -> np.ndarray:
        if was.dtype == bool:
            return np.asarray(~was)
        number = (
            self.c.integer(5) if was.dtype.kind in "iu" else self.c.pick([-1.5, 0.25, 0.0, 2.0])
        )
        return np.full(was.shape, number, was.dtype)

    # -- what must be the same
    # ------------------------------------------------------------------------------------

    def _some(self, places: list[str]) -> list[str]:
        return (
            places
            if len(places) <= _MOST_LOOKED_AT
            else [self.c.pick(places) for _ in range(_MOST_LOOKED_AT)]
        )

    def _same_moment(self, debugger: loopscope.Debugger, expected: Stepped) -> None:
        cursor = debugger.cursor
        if cursor.step < len(expected.trail):
            assert cursor == expected.trail[cursor.step]
        seen = [
            one.address for one in expected.trail[: cursor.step] if one.address in expected.values
        ]
        for place in [self.c.pick(seen) for _ in range(3)] if seen else ():
            _same(debugger.value(place), expected.values[place], place)

    def _same_run(self, debugger: loopscope.Debugger, expected: Stepped) -> None:
        stepped = expected.debugger
        assert (debugger.state, debugger.failure, debugger.failed_address) == (
            stepped.state,
            stepped.failure,
            stepped.failed_address,
        )
        assert debugger.steps == len(expected.trail)
        assert (
            list(debugger.control_flow)
            == [debugger.control_flow[number] for number in range(len(expected.flow))]
            == expected.flow
        )
        if stepped.state == "finished":
            _same_outputs(debugger.result, expected)
        for place in self._some(list(expected.values)):
            _same(debugger.value(place), expected.values[place], place)
        for _ in range(3 if expected.trail else 0):
            step = self.c.integer(len(expected.trail))
            assert debugger.seek(step) == expected.trail[step]
            assert (
                debugger.seek(expected.trail[step].address).address == expected.trail[step].address
            )

    def _same_explanations(self, debugger: loopscope.Debugger, expected: Stepped) -> None:
        """Histories, columns and branch histories."""
        for place in self._some(
            [one for one in expected.values if re.search(r"\]/body/[^/]*$", one)]
        ):
            owner, _, rest = place.rpartition("[")
            iteration, _, name = rest.partition("]")
            found = history(debugger, f"{owner}[*]{name}")
            _same(
                (found.values if found.column is None else found.column)[int(iteration)],
                expected.values[place],
                f"history of {place}",
            )
        branches_of: dict[str, dict[str, bool]] = {}
        for record in expected.flow:
            if record.kind == "If":
                branches_of.setdefault(re.sub(r"\[\d+\]", "", record.address), {})[
                    record.address
                ] = record.branch == "then"
        for static, branches in branches_of.items():
            log = branch_history(debugger, static)
            assert {
                log.address(number): bool(taken) for number, taken in enumerate(log.taken)
            } == branches
        if debugger.state == "finished":
            self._same_columns(debugger, expected)

    def _same_columns(self, debugger: loopscope.Debugger, expected: Stepped) -> None:
        recorded = Recorded(debugger.timeline)
        for program in debugger.plan.programs[1:]:
            count = debugger.timeline.executions.rows[program.index]
            if not count:
                continue
            columns = Columns(recorded, program, np.arange(count))
            for instruction in program.instructions:
                column = columns.column(instruction.outputs[0]) if instruction.outputs else None
                if column is None:
                    continue
                for row in (0, count - 1, self.c.integer(count)):
                    place = f"{debugger.timeline.address(program, row)}/{instruction.label}"
                    if place in expected.values:
                        _same(column.of(count)[row], expected.values[place], f"column of {place}")


WAYS: list[Callable[[Agreement, list[np.ndarray], Stepped], None]] = [
    Agreement.run,
    Agreement.pruned,
    Agreement.fetch,
    Agreement.session,
    Agreement.debug,
    Agreement.debug,
    Agreement.pause,
    Agreement.move,
    Agreement.change,
]


def _same(mine: Any, theirs: Any, what: str) -> None:
    assert same_bits(mine, theirs), f"{what}: {mine!r} instead of {theirs!r}"


def _same_outputs(result: loopscope.Result, expected: Stepped) -> None:
    for number, (mine, theirs) in enumerate(zip(result.outputs, expected.outputs, strict=True)):
        _same(mine, theirs, f"output {number}")
