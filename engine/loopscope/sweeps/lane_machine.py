"""Samples side by side: every operation runs once for all of them, each loop with a mask of the
lanes that go on.

What a loop means is asked of ``regions.py`` where it is asked once for all lanes, and said a second
time, for many at once, where each lane has its own answer; drawn models hold both to the rows of
runs one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.executor.machine import regions
from loopscope.executor.machine.execute import computing_columns
from loopscope.executor.plan.body_ports import LastValue, Sliced
from loopscope.executor.plan.defaults import Defaults
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Plan,
    Program,
)
from loopscope.executor.record.endings import ENDINGS
from loopscope.ops.casting import cast
from loopscope.sweeps.lane_counters import BranchTally, LoopTally
from loopscope.sweeps.lane_values import NotInLanes, are_finite, computed, condition_in_lanes
from loopscope.sweeps.margins import Condition, distances
from loopscope.sweeps.stopping import Stop
from loopscope.timeline.vectorised import RowValues

_DEEPEST = 16
_NO_BOUND = 1 << 62
_FEW, _PATIENT = 8, 1 << 12
"""Where so few lanes are left in a loop after so many iterations, running them one by one is
faster.
"""


class Lanes:
    """Many samples of a model that run side by side."""

    def __init__(
        self,
        plan: Plan,
        values: Mapping[Slot, RowValues],
        count: int,
        *,
        most_iterations: int,
        finds_nan: bool,
        stop: Stop,
        conditions: Mapping[int, Condition],
    ) -> None:
        """``conditions``: of the loops whose margins are told, by their tables."""
        self.plan = plan
        self.values: dict[Slot, RowValues] = {
            slot: RowValues(value, False) for slot, value in plan.constants
        }
        self.values.update(values)
        self.loops: dict[int, LoopTally] = {}
        self.branches: dict[int, BranchTally] = {}
        for _, instruction in plan.regions:
            if isinstance(instruction.region, LoopRegion):
                self.loops[instruction.region.table] = LoopTally.of(count)
            elif isinstance(instruction.region, IfRegion):
                self.branches[instruction.region.table] = BranchTally.of(count)
        self.left = np.zeros(count, bool)
        """Lanes whose samples must run alone: they have a NaN, or they run very long."""
        self._begun = 0
        """Iterations of all loops together: no lane has had more."""
        self._most_iterations = most_iterations
        self._finds_nan = finds_nan
        self._stop = stop
        self._conditions = conditions
        self._defaults = Defaults(plan)

    def run(self, count: int) -> None:
        """Runs all lanes to the end. ``NotInLanes``, ``Stopped``, or what a kernel raises,
        leaves nothing to use.
        """
        with computing_columns():
            self._graph(self.plan.main, np.arange(count), 0)

    def _graph(self, program: Program, lanes: np.ndarray, depth: int) -> None:
        if depth > _DEEPEST:
            raise NotInLanes("nested too deeply")
        for instruction in program.instructions:
            match instruction.region:
                case None:
                    self._operation(instruction, lanes)
                case LoopRegion() as region:
                    self._loop(region, lanes, depth)
                case IfRegion() as region:
                    self._if(region, lanes, depth)
                case CallRegion() as region:
                    self._enter(region.branch, None)
                    self._graph(region.branch.program, lanes, depth + 1)
                    for slot, result in zip(region.outputs, region.branch.results, strict=False):
                        self.values[slot] = self.values[result]

    def _operation(self, instruction: Instruction, lanes: np.ndarray) -> None:
        if instruction.same_as:
            for slot, same in zip(instruction.outputs, instruction.same_as, strict=True):
                self.values[slot] = self.values[same]
            return
        try:
            operands = [self.values[slot] for slot in instruction.inputs]
        except KeyError:
            raise NotInLanes("an input that is left out") from None
        made = computed(instruction, operands, len(lanes))
        self.values[instruction.outputs[0]] = made
        if self._finds_nan and not np.all(finite := are_finite(made.values)):
            odd = (
                ~np.asarray(finite).reshape(len(lanes), -1).all(axis=1)
                if made.varies
                else slice(None)
            )
            self.left[lanes[odd]] = True

    # -- If
    # -------------------------------------------------------------------------------------------------------

    def _enter(self, branch: Branch, places: np.ndarray | None) -> None:
        """A branch receives its values, in some of the lanes or (None) in all."""
        for parameter, outer in branch.bindings:
            self.values[parameter] = (
                self.values[outer] if places is None else self.values[outer].at(places)
            )
        for unfed in branch.unfed:
            self.values[unfed.parameter] = RowValues(
                self._defaults.parameter(branch.program.address, unfed.layer), False
            )

    def _if(self, region: IfRegion, lanes: np.ndarray, depth: int) -> None:
        taken = condition_in_lanes(
            self.values[region.condition], len(lanes), first_decides=region.first_decides
        )
        tally = self.branches[region.table]
        made: list[tuple[np.ndarray, list[RowValues]]] = []
        for branch, wanted, times in (
            (region.then, taken, tally.then),
            (region.otherwise, ~taken, tally.otherwise),
        ):
            places = np.flatnonzero(wanted)
            if len(places):
                whole = len(places) == len(lanes)
                inside = lanes if whole else lanes[places]
                times[inside] += 1
                self._enter(branch, None if whole else places)
                self._graph(branch.program, inside, depth + 1)
                made.append((places, [self.values[slot] for slot in branch.results]))
        for number, slot in enumerate(region.outputs):
            self.values[slot] = merged(
                len(lanes), [(places, columns[number]) for places, columns in made]
            )

    # -- loops
    # ----------------------------------------------------------------------------------------------------

    def _loop(self, region: LoopRegion, lanes: np.ndarray, depth: int) -> None:
        bound, endings = self._bounds(region, len(lanes))
        count = np.zeros(len(lanes), np.int64)
        going = np.flatnonzero(bound != 0)
        ended: list[tuple[np.ndarray, list[RowValues]]] = []
        if len(going) < len(lanes):
            ended.append(
                (np.flatnonzero(bound == 0), self._of_none(region, np.flatnonzero(bound == 0)))
            )
        carried = [
            self._initial(region, one.parameter, one.initial, one.layer).at(going)
            for one in region.carried
        ]
        fixed = self._fixed(region, going)
        inside, least, iteration = lanes[going], bound.min(initial=_NO_BOUND, where=bound != 0), 0
        while len(going):
            self._stop.check()
            self.values.update(fixed)
            self.values.update(zip((one.parameter for one in region.carried), carried, strict=True))
            self._begin(region, iteration, going)
            self._graph(region.program, inside, depth + 1)
            iteration += 1
            stays = np.ones(len(going), bool)
            if region.condition_result is not None:
                stays = condition_in_lanes(self.values[region.condition_result], len(going))
                over = np.flatnonzero(~stays)
                endings[going[over]] = ENDINGS.index("condition")
                self._narrow(region, inside, over)
            if iteration >= least:
                stays &= bound[going] > iteration
            stays &= ~self._given_up(inside, iteration)
            carried = [self.values[one.result] for one in region.carried]
            over = np.flatnonzero(~stays)
            if len(over):
                on = np.flatnonzero(stays)
                count[going[over]] = iteration
                ended.append(
                    (
                        going[over],
                        [self.values[output.result].at(over) for output in region.outputs],
                    )
                )
                carried, going = [one.at(on) for one in carried], going[on]
                inside, fixed = lanes[going], {slot: one.at(on) for slot, one in fixed.items()}
        self.loops[region.table].add(lanes, count, endings)
        for number, output in enumerate(region.outputs):
            self.values[output.slot] = merged(
                len(lanes), [(places, columns[number]) for places, columns in ended]
            )

    def _narrow(self, region: LoopRegion, lanes: np.ndarray, ended: np.ndarray) -> None:
        """Notes how narrowly the condition ended some of the lanes that were going on."""
        condition = self._conditions.get(region.table)
        if condition is not None and len(ended):
            found = distances(
                condition,
                lambda slot: np.asarray(self.values[slot].of(len(lanes))).reshape(len(lanes))[
                    ended
                ],
            )
            self.loops[region.table].narrow(lanes[ended], found)

    def _bounds(self, region: LoopRegion, lanes: int) -> tuple[np.ndarray, np.ndarray]:
        """How many iterations each lane may run, and how it ends when it gets there; asked once
        for each trip count that there is.
        """
        if not all(isinstance(output, LastValue) for output in region.outputs):
            raise NotInLanes("an output that grows with the iterations")
        sources = [
            column.values[0] if column.varies else column.values
            for column in (self.values[one.source] for one in region.sliced)
        ]
        if not all(isinstance(one, np.ndarray) for one in sources):
            raise NotInLanes("slices of what is no array")
        trips = None if region.trip_count is None else self.values[region.trip_count]
        if trips is None or not trips.varies:
            known = [
                regions.iteration_bound(region, None if trips is None else trips.values, sources)
            ]
            which = np.zeros(lanes, np.int64)
        else:
            if trips.values.size != lanes:
                raise NotInLanes("a trip count of several elements")
            different, which = np.unique(trips.values.reshape(lanes), return_inverse=True)
            known = [regions.iteration_bound(region, one, sources) for one in different]
        bound = np.array(
            [_NO_BOUND if one == regions.UNLIMITED else one for one, _ in known], np.int64
        )[which]
        endings = np.array([ENDINGS.index(ending) for _, ending in known], np.int64)[which]
        if region.condition is not None:
            refused = ~condition_in_lanes(self.values[region.condition], lanes) & (bound != 0)
            bound[refused], endings[refused] = 0, ENDINGS.index("initial_condition")
        return bound, endings

    def _initial(
        self, region: LoopRegion, parameter: Slot, initial: Slot | None, layer: Any
    ) -> RowValues:
        if initial is None:
            return RowValues(self._defaults.parameter(region.program.address, layer), False)
        return self._entering(region, parameter, self.values[initial])

    @staticmethod
    def _entering(region: LoopRegion, parameter: Slot, column: RowValues) -> RowValues:
        """In the element type that a TensorIterator's Parameter declares."""
        wanted = region.declared.get(parameter)
        if wanted is None or np.asarray(column.values).dtype == wanted.dtype:
            return column
        return RowValues(cast(np.asarray(column.values), wanted), column.varies)

    def _fixed(self, region: LoopRegion, going: np.ndarray) -> dict[Slot, RowValues]:
        """What is the same in all iterations: invariants, what nothing feeds, and the tensors
        that slices are taken of.
        """
        found = {
            one.parameter: self._entering(region, one.parameter, self.values[one.source]).at(going)
            for one in region.invariants
        }
        for one in region.unfed:
            found[one.parameter] = RowValues(
                self._defaults.parameter(region.program.address, one.layer), False
            )
        return found

    def _begin(self, region: LoopRegion, iteration: int, going: np.ndarray) -> None:
        for sliced in region.sliced:
            self.values[sliced.parameter] = self._part(region, sliced, iteration, going)
        for counter in region.counters:
            self.values[counter.parameter] = RowValues(counter.number(iteration), False)

    def _part(
        self, region: LoopRegion, sliced: Sliced, iteration: int, going: np.ndarray
    ) -> RowValues:
        source = self.values[sliced.source]
        if not source.varies:
            return RowValues(regions.part(region, sliced, source.values, iteration), False)
        values = source.values if len(going) == len(source.values) else source.values[going]
        axis = sliced.axis + values.ndim if sliced.axis < 0 else sliced.axis + 1
        begin = regions.part_begin(region, sliced, values.shape[axis], iteration)
        taken = begin if not sliced.whole_parts else slice(begin, begin + sliced.part_size)
        return self._entering(
            region, sliced.parameter, RowValues(values[(slice(None),) * axis + (taken,)], True)
        )

    def _of_none(self, region: LoopRegion, places: np.ndarray) -> list[RowValues]:
        found: list[RowValues] = []
        for output in region.outputs:
            if not isinstance(output, LastValue) or output.initial is None:
                raise NotInLanes("what a loop gives that never ran")
            found.append(self.values[output.initial].at(places))
        return found

    def _given_up(self, lanes: np.ndarray, iteration: int) -> np.ndarray:
        """Lanes that need not go on here: what they give is not looked at."""
        self._begun += 1
        if self._begun > self._most_iterations or (len(lanes) <= _FEW and iteration >= _PATIENT):
            self.left[lanes] = True
        given_up: np.ndarray = self.left[lanes] if self.left.any() else np.zeros(len(lanes), bool)
        return given_up


def merged(lanes: int, parts: Sequence[tuple[np.ndarray, RowValues]]) -> RowValues:
    """A value of all lanes from those of some; ``NotInLanes`` when they differ in shape or type."""
    if len(parts) == 1:
        return parts[0][1]
    first = np.asarray(parts[0][1].values)
    shape = first.shape[parts[0][1].varies :]
    made = np.empty((lanes, *shape), first.dtype)
    for places, column in parts:
        values = np.asarray(column.values)
        if (values.shape[column.varies :], values.dtype) != (shape, first.dtype):
            raise NotInLanes("values of different shapes")
        made[places] = values
    return RowValues(made, True)
