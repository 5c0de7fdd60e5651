"""Values of a run: read from the machine or the recording if stored, else recomputed exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from loopscope.errors import EngineError, NotKept, ValueUnavailable
from loopscope.executor.drive import run_region
from loopscope.executor.machine import regions, state
from loopscope.executor.machine.execute import cause_of, computing, execute
from loopscope.executor.machine.limits import Limits, RunControl
from loopscope.executor.machine.machine import Failure, Machine
from loopscope.executor.machine.state import Frame
from loopscope.executor.plan.body_ports import LastValue
from loopscope.executor.plan.plan import Instruction, Program
from loopscope.executor.plan.slots import Slot
from loopscope.executor.plan.uncomputed_values import Override, Overrides
from loopscope.executor.record.recording import NOTHING, Recording
from loopscope.ir.readable import readable
from loopscope.ops.values import NOT_KEPT, WEIGHTS_NOT_KEPT
from loopscope.timeline.replay_plan import ReplayPlanner, RowCache, RowReplay
from loopscope.timeline.timeline import Timeline


class RunValues:
    """Access to the values of a run, with a bounded cache of recomputed values."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._cache = RowCache()
        self._planner = ReplayPlanner(machine, self._cache)
        self.missing: set[Slot] = set()
        """Slots of the outermost graph of a loaded run that have run, but whose values are computed
        when requested.
        """
        self.is_of_a_file = False
        """True if the recording comes from a file and cannot be trusted."""

    def forget_computed(self) -> None:
        """Clear the cache. A caller that has passed through a whole run will not return to these
        values soon.
        """
        self._cache.clear()

    @property
    def cached_bytes(self) -> int:
        """Bytes of the cached values."""
        return self._cache.total_bytes

    def get(self, timeline: Timeline, program: Program, row: int, slot: Slot) -> Any:
        """Return the value of a slot in a row. The caller ensures that it was computed."""
        change = self._change(timeline, program, row, slot)
        value = (
            self._kept_or_computed(timeline, program, row, slot) if change is None else change.value
        )
        if value is NOT_KEPT:
            raise NotKept(
                f"not kept: {_address_of(timeline, program, row, slot)} {WEIGHTS_NOT_KEPT}"
            )
        return value

    def _kept_or_computed(self, timeline: Timeline, program: Program, row: int, slot: Slot) -> Any:
        stored = self._at_hand(timeline, program, row, slot)
        if stored is not None:
            return stored
        replays = self._planner.plan(timeline, program, row, slot)
        try:
            with computing():
                outer: dict[Slot, Any] = {}
                for replay in reversed(replays):
                    outer = self._compute(timeline, replay, outer)
        except Exception as error:
            if self.machine.plan.lacks_weights and isinstance(error, (NotKept, Failure)):
                carried = self._carried_on(timeline, program, row, slot)
                if carried is not None:
                    return carried
                raise NotKept(
                    f"not kept: {_address_of(timeline, program, row, slot)} {WEIGHTS_NOT_KEPT}"
                ) from None
            # Other errors mean that the recording differs from what the model computes.
            if self.is_of_a_file and not isinstance(error, EngineError):
                raise ValueUnavailable(
                    "what the file recorded gives no "
                    f"{_address_of(timeline, program, row, slot)}: {cause_of(error)}"
                ) from None
            raise
        return outer[slot]

    def _carried_on(self, timeline: Timeline, program: Program, row: int, slot: Slot) -> Any | None:
        """Return a carried value or last value from where the loop passed it: the next iteration,
        or the enclosing graph.

        Return None if the value is not passed on or not available there.
        """
        region, executions = program.loop, timeline.executions
        if region is None or program.parent is None:
            return None
        execution, _ = executions.parent_row(program, row)
        _, end = executions.rows_of(region, execution)
        rows = self.machine.recording.rows.get(program.index)
        if row + 1 < end:
            parameters = [
                port.parameter
                for port in region.carried
                if port.result == slot and port.parameter not in self.machine.overrides.slots
            ]
            return next(
                (
                    rows.kept(row + 1, parameter)
                    for parameter in parameters
                    if rows is not None and not rows.forget
                ),
                None,
            )
        output_slots = [
            port.slot
            for port in region.outputs
            if isinstance(port, LastValue) and port.result == slot
        ]
        # The last row of a loop that is still open is at hand, so that this loop has ended.
        if not output_slots:
            return None
        stored = self._at_hand(timeline, program.parent, execution, output_slots[0])
        return (
            self._carried_on(timeline, program.parent, execution, output_slots[0])
            if stored is None
            else stored
        )

    def complete(self, slots: Iterable[Slot] | None = None) -> None:
        """Compute the missing values (by default all) that the available weights allow; mark the
        others as not stored.
        """
        for slot in sorted(self.missing if slots is None else self.missing.intersection(slots)):
            try:
                self.outermost(slot)
            except NotKept:
                self.machine.values[slot] = NOT_KEPT
                self.missing.discard(slot)

    def outermost(self, slot: Slot) -> Any:
        """Return the value of a slot of the outermost graph, which has run."""
        if slot in self.missing:
            try:
                self._fill(slot)
            except Failure as error:
                if not self.machine.plan.lacks_weights:
                    raise ValueUnavailable(
                        f"what the file recorded does not go with its model: {error}"
                    ) from None
                raise NotKept(f"not kept: this value {WEIGHTS_NOT_KEPT}") from None
        return self.machine.values[slot]

    def _fill(self, slot: Slot) -> None:
        """Run the instructions that a missing value of the outermost graph depends on, if their
        results are missing too.
        """
        machine, main = self.machine, self.machine.plan.main
        needed: set[int] = set()
        waiting = [slot]
        while waiting:
            dependency = waiting.pop()
            if dependency in self.missing and main.producer[dependency] not in needed:
                needed.add(main.producer[dependency])
                waiting += main.instructions[main.producer[dependency]].reads
        values = list(machine.values)
        with computing():
            if machine.overrides.items:
                self._run_changed(machine.overrides, main, (), sorted(needed), values)
            else:
                for number in sorted(needed):
                    self.run_one(main, number, values)
        for number in needed:
            for dependency in main.instructions[number].outputs:
                machine.values[dependency] = values[dependency]
                self.missing.discard(dependency)

    # -- stored values

    def _at_hand(self, timeline: Timeline, program: Program, row: int, slot: Slot) -> Any | None:
        if program.parent is None:
            return self.outermost(slot)
        frame = timeline.executions.open.get(program.index)
        if (
            frame is not None
            and not frame.is_behind
            and row == timeline.executions.rows[program.index] - 1
        ):
            number = program.producer.get(slot)
            if number is None or number < frame.position:
                return self.machine.values[slot]
        cached = self._cache.row((program.index, row))
        if slot in cached:
            self._cache.mark_used((program.index, row))
            return cached[slot]
        rows = self.machine.recording.rows.get(program.index)
        if rows is not None and not rows.forget:
            return rows.kept(row, slot)
        if (
            slot not in program.producer
            and slot not in program.parameter_slots
            and slot not in program.hidden
        ):
            plan = self.machine.plan
            return (
                plan.constant[slot]
                if slot in self.machine.overrides.slots
                else self.machine.values[slot]
            )
        return None

    def _change(
        self, timeline: Timeline, program: Program, row: int, slot: Slot
    ) -> Override | None:
        """Return the override of a slot in a row."""
        overrides = self.machine.overrides
        if slot not in overrides.slots:
            return None
        return overrides.at(program, timeline.iterations(program, row), slot)

    # -- replay

    def _compute(
        self, timeline: Timeline, replay: RowReplay, outer: dict[Slot, Any]
    ) -> dict[Slot, Any]:
        program = replay.program
        if program.parent is None:
            return self._of_outermost(replay)
        values = list(self.machine.values)
        state.undo_constants(self.machine.overrides, self.machine.plan.main, values)
        for slot, value in outer.items():
            values[slot] = value
        start = replay.first_row
        first_iteration = 0 if replay.iteration is None else replay.iteration - (replay.row - start)
        self._bind(program, start, first_iteration, values)
        if not replay.from_outside:
            for slot in program.hidden:
                values[slot] = self._planner.kept(program, start, slot)
        if start == replay.row:
            self._load(replay, values)
        overrides = self.machine.overrides
        outer_iterations = timeline.iterations(program, start) if overrides.items else ()
        for row in range(start, replay.row + 1):
            iteration = None if replay.iteration is None else replay.iteration - (replay.row - row)
            if row > start:
                assert iteration is not None
                assert program.loop is not None
                regions.carry(program.loop, values)
                regions.bind_iteration(program.loop, iteration, values)
            numbers = replay.numbers if row < replay.row else self._planner.last_numbers(replay)
            if overrides.items:
                self._run_changed(
                    overrides,
                    program,
                    outer_iterations if iteration is None else (*outer_iterations[:-1], iteration),
                    numbers,
                    values,
                )
                continue
            for number in numbers:
                self.run_one(program, number, values)
        known = {slot: values[slot] for slot in program.parameters.values()}
        for number in self._planner.last_numbers(replay):
            known.update((slot, values[slot]) for slot in program.instructions[number].outputs)
        known.update((slot, values[slot]) for slot in replay.slots)
        self._cache.keep((program.index, replay.row), known)
        return (
            known
            if replay.before is None
            else known | {slot: values[slot] for slot in program.hidden}
        )

    def _of_outermost(self, replay: RowReplay) -> dict[Slot, Any]:
        """Return values of the outermost graph.

        Random states and variables before an instruction are recomputed by running the earlier
        instructions that use them.
        """
        machine = self.machine
        known = {slot: self.outermost(slot) for slot in replay.slots}
        if replay.before is None:
            return known
        values = list(machine.values)
        state.undo_constants(machine.overrides, machine.plan.main, values)
        for slot, value in machine.begun_with.items():
            values[slot] = value
        numbers = [
            number
            for number in range(replay.before)
            if _uses_hidden(replay.program.instructions[number])
        ]
        if machine.overrides.items:
            self._run_changed(machine.overrides, replay.program, (), numbers, values)
        else:
            for number in numbers:
                self.run_one(replay.program, number, values)
        return known | {slot: values[slot] for slot in replay.program.hidden}

    def _bind(self, program: Program, row: int, iteration: int, values: list[Any]) -> None:
        """Bind the Parameters of a row."""
        defaults = self.machine.defaults
        if program.branch is not None:
            regions.bind_branch(program.branch, values, defaults)
        elif program.loop is not None:
            regions.bind_entry(program.loop, values, defaults)
            for carried in program.loop.carried if iteration else ():
                values[carried.parameter] = self._planner.kept(program, row, carried.parameter)
            regions.bind_iteration(program.loop, iteration, values)

    def _load(self, replay: RowReplay, values: list[Any]) -> None:
        """Load the stored values of the row that are requested or read, and not recomputed."""
        program, numbers = replay.program, set(self._planner.last_numbers(replay))
        slots = replay.slots.union(*(program.instructions[number].reads for number in numbers))
        for slot in slots & program.producer.keys():
            if program.producer[slot] not in numbers:
                values[slot] = self._planner.kept(program, replay.row, slot)

    def _run_changed(
        self,
        overrides: Overrides,
        program: Program,
        iterations: tuple[int, ...],
        numbers: Sequence[int],
        values: list[Any],
    ) -> None:
        """Run some instructions of a row, whose Parameters are bound, with the overrides of that
        row.
        """
        machine = self.machine
        state.begin(overrides, machine.defaults, program, iterations, values)
        inside = overrides.inside(program, iterations)
        for number in numbers:
            self.run_one(
                program, number, values, inside, anew=program.index in overrides.by_program
            )
            state.put(overrides, program, iterations, program.instructions[number].outputs, values)

    def run_one(
        self,
        program: Program,
        number: int,
        values: list[Any],
        inside: Overrides | None = None,
        *,
        anew: bool = False,
    ) -> None:
        """Run one instruction over the values of all slots; a region runs with its bodies,
        unrecorded.
        """
        instruction = program.instructions[number]
        if instruction.region is None:
            execute(instruction, values, anew=anew)
            return
        machine = self.machine
        recording, control = Recording(machine.plan, NOTHING), RunControl(Limits(None, None, None))
        quiet = Machine(
            machine.plan,
            values,
            recording,
            control,
            machine.defaults,
            inside or Overrides(machine.plan),
        )
        quiet.frames.append(Frame(program, position=number))
        run_region(quiet)


def _uses_hidden(instruction: Instruction) -> bool:
    """Return True if an instruction or its bodies use a random state or a variable."""
    bodies = instruction.region.programs if instruction.region else ()
    return (
        instruction.state is not None
        or instruction.variable is not None
        or any(program.hidden for program in bodies)
    )


def _address_of(timeline: Timeline, program: Program, row: int, slot: Slot) -> str:
    """Return the readable address of a value."""
    layer = next(
        (layer for (layer, _), candidate in program.slots.items() if candidate == slot), None
    )
    label = next(
        (text for text, candidate in program.layer_of_label.items() if candidate == layer),
        "this value",
    )
    return readable(f"{timeline.address(program, row)}/{label}")
