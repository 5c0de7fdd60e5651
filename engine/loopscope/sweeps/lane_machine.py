"""Lane machine: samples run side by side, each operation once for all, each loop with a mask of the
running lanes.

``regions.py`` defines what a loop does wherever all lanes agree. Where each lane has its own
result, this module repeats that definition for many lanes; tests on random models compare both with
serial runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.executor.machine import regions
from loopscope.executor.machine.execute import computing_columns
from loopscope.executor.plan.body_ports import LastValue, Sliced
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Plan,
    Program,
)
from loopscope.executor.plan.slots import Slot
from loopscope.executor.plan.uncomputed_values import Defaults
from loopscope.executor.record.recording import ENDINGS
from loopscope.ops.casting import cast
from loopscope.sweeps.job import Stop
from loopscope.sweeps.lane_data import (
    BranchTally,
    LoopTally,
    NotInLanes,
    are_finite,
    computed,
    condition_in_lanes,
)
from loopscope.sweeps.margins import Condition, distances
from loopscope.timeline.vectorised import RowValues

_MAX_DEPTH = 16
_NO_BOUND = 1 << 62
_FEW_LANES, _MANY_ITERATIONS = 8, 1 << 12
"""Maximum number of lanes, after this minimum of iterations, that run faster one by one."""


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
        """Create the lanes. ``conditions`` are those of the loops with margin columns, by table
        number.
        """
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
        """Lanes whose samples must run alone, because they have a NaN or run very long."""
        self._begun = 0
        """Number of iterations of all loops together; no lane has run more."""
        self._most_iterations = most_iterations
        self._finds_nan = finds_nan
        self._stop = stop
        self._conditions = conditions
        self._defaults = Defaults(plan)

    def run(self, count: int) -> None:
        """Run all lanes to the end. After ``NotInLanes``, ``Stopped`` or an error of a kernel the
        lanes cannot be used.
        """
        with computing_columns():
            self._graph(self.plan.main, np.arange(count), 0)

    def _graph(self, program: Program, lanes: np.ndarray, depth: int) -> None:
        if depth > _MAX_DEPTH:
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
        result = computed(instruction, operands, len(lanes))
        self.values[instruction.outputs[0]] = result
        if self._finds_nan and not np.all(finite := are_finite(result.values)):
            not_finite = (
                ~np.asarray(finite).reshape(len(lanes), -1).all(axis=1)
                if result.varies
                else slice(None)
            )
            self.left[lanes[not_finite]] = True

    # -- If

    def _enter(self, branch: Branch, places: np.ndarray | None) -> None:
        """Bind the Parameters of a branch, in some of the lanes or (None) in all."""
        for parameter, outer in branch.bindings:
            self.values[parameter] = (
                self.values[outer] if places is None else self.values[outer].at(places)
            )
        for unfed in branch.unfed:
            self.values[unfed.parameter] = RowValues(
                self._defaults.parameter(branch.program.address, unfed.layer), False
            )

    def _if(self, region: IfRegion, lanes: np.ndarray, depth: int) -> None:
        then_mask = condition_in_lanes(
            self.values[region.condition], len(lanes), first_decides=region.first_decides
        )
        tally = self.branches[region.table]
        branch_results: list[tuple[np.ndarray, list[RowValues]]] = []
        for branch, mask, counter in (
            (region.then, then_mask, tally.then),
            (region.otherwise, ~then_mask, tally.otherwise),
        ):
            places = np.flatnonzero(mask)
            if len(places):
                whole = len(places) == len(lanes)
                inside = lanes if whole else lanes[places]
                counter[inside] += 1
                self._enter(branch, None if whole else places)
                self._graph(branch.program, inside, depth + 1)
                branch_results.append((places, [self.values[slot] for slot in branch.results]))
        self._merge(len(lanes), region.outputs, branch_results)

    def _merge(
        self,
        lanes: int,
        slots: Iterable[Slot],
        parts: Sequence[tuple[np.ndarray, Sequence[RowValues]]],
    ) -> None:
        """Set the outputs of a region from the values of groups of lanes."""
        for number, slot in enumerate(slots):
            self.values[slot] = merged(
                lanes, [(places, columns[number]) for places, columns in parts]
            )

    # -- loops

    def _loop(self, region: LoopRegion, lanes: np.ndarray, depth: int) -> None:
        bound, endings = self._bounds(region, len(lanes))
        count = np.zeros(len(lanes), np.int64)
        running = np.flatnonzero(bound != 0)
        ended: list[tuple[np.ndarray, list[RowValues]]] = []
        if len(running) < len(lanes):
            places = np.flatnonzero(bound == 0)
            ended.append((places, self._of_none(region, places)))
        carried = [
            self._initial(region, port.parameter, port.initial, port.layer).at(running)
            for port in region.carried
        ]
        fixed = self._fixed(region, running)
        inside = lanes[running]
        first_bound = bound.min(initial=_NO_BOUND, where=bound != 0)
        iteration = 0
        while len(running):
            self._stop.check()
            self.values.update(fixed)
            self.values.update(
                zip((port.parameter for port in region.carried), carried, strict=True)
            )
            self._begin(region, iteration, running)
            self._graph(region.program, inside, depth + 1)
            iteration += 1
            if region.condition_result is None:
                continues = np.ones(len(running), bool)
            else:
                continues = self._tested(region, region.condition_result, inside, running, endings)
            if iteration >= first_bound:
                continues &= bound[running] > iteration
            continues &= ~self._given_up(inside, iteration)
            carried = [self.values[port.result] for port in region.carried]
            finished = np.flatnonzero(~continues)
            if len(finished):
                continuing = np.flatnonzero(continues)
                count[running[finished]] = iteration
                results = [self.values[output.result].at(finished) for output in region.outputs]
                ended.append((running[finished], results))
                carried, running = [port.at(continuing) for port in carried], running[continuing]
                inside = lanes[running]
                fixed = {slot: port.at(continuing) for slot, port in fixed.items()}
        self.loops[region.table].add(lanes, count, endings)
        self._merge(len(lanes), (output.slot for output in region.outputs), ended)

    def _tested(
        self,
        region: LoopRegion,
        condition: Slot,
        lanes: np.ndarray,
        running: np.ndarray,
        endings: np.ndarray,
    ) -> np.ndarray:
        """Return True for the lanes that may continue; record the ending of those that may not."""
        continues = condition_in_lanes(self.values[condition], len(running))
        finished = np.flatnonzero(~continues)
        endings[running[finished]] = ENDINGS.index("condition")
        self._narrow(region, lanes, finished)
        return continues

    def _narrow(self, region: LoopRegion, lanes: np.ndarray, ended: np.ndarray) -> None:
        """Record the margins by which the condition ended some of the running lanes."""
        condition = self._conditions.get(region.table)
        if condition is not None and len(ended):
            margins = distances(
                condition,
                lambda slot: np.asarray(self.values[slot].of(len(lanes))).reshape(len(lanes))[
                    ended
                ],
            )
            self.loops[region.table].narrow(lanes[ended], margins)

    def _bounds(self, region: LoopRegion, lanes: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the maximum iteration count of each lane, and its ending at that count; computed
        once per trip count.
        """
        if not all(isinstance(output, LastValue) for output in region.outputs):
            raise NotInLanes("an output that grows with the iterations")
        sources = [
            column.values[0] if column.varies else column.values
            for column in (self.values[item.source] for item in region.sliced)
        ]
        if not all(isinstance(item, np.ndarray) for item in sources):
            raise NotInLanes("slices of a value other than an array")
        trips = None if region.trip_count is None else self.values[region.trip_count]
        if trips is None or not trips.varies:
            limits = [
                regions.iteration_bound(region, None if trips is None else trips.values, sources)
            ]
            limit_of_lane = np.zeros(lanes, np.int64)
        else:
            if trips.values.size != lanes:
                raise NotInLanes("a trip count of several elements")
            different, limit_of_lane = np.unique(trips.values.reshape(lanes), return_inverse=True)
            limits = [regions.iteration_bound(region, item, sources) for item in different]
        bound = np.array(
            [_NO_BOUND if item == regions.UNLIMITED else item for item, _ in limits], np.int64
        )[limit_of_lane]
        endings = np.array([ENDINGS.index(ending) for _, ending in limits], np.int64)[limit_of_lane]
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
        """Convert a column to the element type that a TensorIterator's Parameter declares."""
        declared = region.declared.get(parameter)
        if declared is None or np.asarray(column.values).dtype == declared.dtype:
            return column
        return RowValues(cast(np.asarray(column.values), declared), column.varies)

    def _fixed(self, region: LoopRegion, running: np.ndarray) -> dict[Slot, RowValues]:
        """Return the values that are the same in all iterations: invariants and unfed
        Parameters.
        """
        values = {
            parameter_source.parameter: self._entering(
                region, parameter_source.parameter, self.values[parameter_source.source]
            ).at(running)
            for parameter_source in region.invariants
        }
        for parameter_source in region.unfed:
            values[parameter_source.parameter] = RowValues(
                self._defaults.parameter(region.program.address, parameter_source.layer), False
            )
        return values

    def _begin(self, region: LoopRegion, iteration: int, running: np.ndarray) -> None:
        for sliced in region.sliced:
            self.values[sliced.parameter] = self._part(region, sliced, iteration, running)
        for counter in region.counters:
            self.values[counter.parameter] = RowValues(counter.number(iteration), False)

    def _part(
        self, region: LoopRegion, sliced: Sliced, iteration: int, running: np.ndarray
    ) -> RowValues:
        source = self.values[sliced.source]
        if not source.varies:
            return RowValues(regions.part(region, sliced, source.values, iteration), False)
        values = source.values if len(running) == len(source.values) else source.values[running]
        axis = sliced.axis + values.ndim if sliced.axis < 0 else sliced.axis + 1
        begin = regions.part_begin(region, sliced, values.shape[axis], iteration)
        index = begin if not sliced.whole_parts else slice(begin, begin + sliced.part_size)
        return self._entering(
            region, sliced.parameter, RowValues(values[(slice(None),) * axis + (index,)], True)
        )

    def _of_none(self, region: LoopRegion, places: np.ndarray) -> list[RowValues]:
        columns: list[RowValues] = []
        for output in region.outputs:
            if not isinstance(output, LastValue) or output.initial is None:
                raise NotInLanes("the output of a loop that never ran")
            columns.append(self.values[output.initial].at(places))
        return columns

    def _given_up(self, lanes: np.ndarray, iteration: int) -> np.ndarray:
        """Return the lanes that stop here because their results are not used."""
        self._begun += 1
        if self._begun > self._most_iterations or (
            len(lanes) <= _FEW_LANES and iteration >= _MANY_ITERATIONS
        ):
            self.left[lanes] = True
        given_up: np.ndarray = self.left[lanes] if self.left.any() else np.zeros(len(lanes), bool)
        return given_up


def merged(lanes: int, parts: Sequence[tuple[np.ndarray, RowValues]]) -> RowValues:
    """Return a value of all lanes from the values of groups of lanes; ``NotInLanes`` if they differ
    in shape or type.
    """
    if len(parts) == 1:
        return parts[0][1]
    first = np.asarray(parts[0][1].values)
    shape = first.shape[parts[0][1].varies :]
    result = np.empty((lanes, *shape), first.dtype)
    for places, column in parts:
        values = np.asarray(column.values)
        if (values.shape[column.varies :], values.dtype) != (shape, first.dtype):
            raise NotInLanes("values of different shapes")
        result[places] = values
    return RowValues(result, True)
