"""Values of a run: read from the machine or the recording if stored, else recomputed exactly."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from loopscope.errors import EngineError, NotKept, ValueUnavailable
from loopscope.executor.drive import run_region
from loopscope.executor.machine import overriding, regions
from loopscope.executor.machine.execute import cause_of, computing, execute
from loopscope.executor.machine.limits import Limits, RunControl
from loopscope.executor.machine.machine import Failure, Machine
from loopscope.executor.machine.state import Frame
from loopscope.executor.plan.body_ports import LastValue
from loopscope.executor.plan.numbers import ProgramIndex, Slot
from loopscope.executor.plan.overrides import Override, Overrides
from loopscope.executor.plan.plan import Instruction, Program
from loopscope.executor.record.columns import RecordedRows
from loopscope.executor.record.recording import NOTHING, Recording
from loopscope.ir.readable import readable
from loopscope.ops.values import NOT_KEPT, WEIGHTS_NOT_KEPT
from loopscope.timeline.timeline import Timeline

_Key = tuple[ProgramIndex, int]
"""Graph and number of a row."""

_MAX_BYTES = 64 * 2**20
_MAX_ROWS = 512
_NUMBER_BYTES = 64
"""Approximate bytes of a value that is not an array."""


@dataclass(slots=True, eq=False)
class _Need:
    """Replay of one row: the requested slots, and the instructions to run for them."""

    program: Program
    row: int
    iteration: int | None
    slots: set[Slot]
    numbers: list[int]
    first_row: int
    """Row to replay from; equal to ``row`` if the carried state at ``row`` is available."""
    before: int | None = None
    """An instruction before which random states and variables are requested too."""
    from_outside: bool = False
    """True if the random states and variables at the first row are not available and must come from
    the enclosing graph.
    """


class RunValues:
    """Access to the values of a run, with a bounded cache of recomputed values."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._cache: OrderedDict[_Key, dict[Slot, Any]] = OrderedDict()
        self.cached_bytes = 0
        """Bytes of the cached values."""
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
        self.cached_bytes = 0

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
        needs = self._needs(timeline, program, row, slot)
        try:
            with computing():
                outer: dict[Slot, Any] = {}
                for need in reversed(needs):
                    outer = self._compute(timeline, need, outer)
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
        has_ended = (
            executions.calls(program.parent, program.owner) > execution
            and program.index not in executions.open
        )
        return next(
            (
                self._at_hand(timeline, program.parent, execution, output)
                for output in output_slots
                if has_ended
            ),
            None,
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
        cached = self._cache.get((program.index, row))
        if cached is not None and slot in cached:
            self._cache.move_to_end((program.index, row))
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

    # -- planning a replay

    def _needs(self, timeline: Timeline, program: Program, row: int, slot: Slot) -> list[_Need]:
        """Return what each level must compute for the level inside it, from the requested row
        outwards.
        """
        needs: list[_Need] = []
        slots, before = {slot}, None
        while program.parent is not None:
            outer_row, iteration = timeline.executions.parent_row(program, row)
            needs.append(self._need(program, row, iteration, slots, before))
            slots, before = (
                self._outer_slots(program),
                program.owner if needs[-1].from_outside else None,
            )
            program, row = program.parent, outer_row
        needs.append(_Need(program, 0, None, slots, [], 0, before))
        return needs

    def _need(
        self,
        program: Program,
        row: int,
        iteration: int | None,
        slots: set[Slot],
        before: int | None,
    ) -> _Need:
        carried = program.loop.carried if program.loop is not None else ()
        rows = self.machine.recording.rows.get(program.index)
        first_row = row
        entry = [port.parameter for port in carried] + list(program.hidden)
        if iteration and entry:
            self._carry_on(program, row, rows)
            while first_row > row - iteration and not self._entry_kept(
                program, first_row, entry, rows
            ):
                first_row -= 1
        requested = set(slots)
        if first_row < row:
            requested |= {port.result for port in carried}
        # Run all instructions: a variable may be assigned after the requested values are computed.
        if first_row < row and program.hidden:
            replayed = list(range(len(program.instructions)))
        else:
            replayed = self._closure(program, requested, row if first_row == row else None)
        need = _Need(program, row, iteration, slots, replayed, first_row, before)
        if replayed or before is not None:
            need.from_outside = not self._entry_kept(program, first_row, program.hidden, rows)
        return need

    def _carry_on(self, program: Program, row: int, rows: RecordedRows | None) -> None:
        """Reuse the carried values of the previous row if they are cached, so that reading rows in
        order replays each row once.
        """
        carried, cache = program.loop.carried if program.loop is not None else (), self._cache
        before = cache.get((program.index, row - 1), {})
        if (
            program.hidden
            or self.machine.overrides.items
            or not all(port.result in before for port in carried)
        ):
            return
        if not self._entry_kept(program, row, [port.parameter for port in carried], rows):
            self._keep(
                (program.index, row),
                {port.parameter: before[port.result] for port in carried},
            )

    def _entry_kept(
        self, program: Program, row: int, entry: Sequence[Slot], rows: RecordedRows | None
    ) -> bool:
        cached = self._cache.get((program.index, row), {})
        return all(
            slot in cached or (rows is not None and not rows.forget and rows.has_kept(row, slot))
            for slot in entry
        )

    def _closure(self, program: Program, slots: set[Slot], row: int | None = None) -> list[int]:
        """Return the instructions that the slots depend on, in order; with random states or
        variables, all up to the last.

        Values that are recorded in ``row`` are not computed.
        """
        needed: set[int] = set()
        waiting = list(slots)
        while waiting:
            slot = waiting.pop()
            number = program.producer.get(slot)
            if number is None or number in needed or self._is_recorded(program, row, slot):
                continue
            needed.add(number)
            waiting += program.instructions[number].reads
        if program.hidden and needed:
            return list(range(max(needed) + 1))
        return sorted(needed)

    def _is_recorded(self, program: Program, row: int | None, slot: Slot) -> bool:
        rows = (
            None
            if row is None or program.hidden
            else self.machine.recording.rows.get(program.index)
        )
        return row is not None and rows is not None and not rows.forget and rows.has_kept(row, slot)

    def _outer_slots(self, program: Program) -> set[Slot]:
        """Return the slots of the enclosing graph that the Parameters of a row may read."""
        if program.branch is not None:
            return {source for _, source in program.branch.bindings}
        return set() if program.loop is None else set(program.loop.outer_slots)

    # -- replay

    def _compute(self, timeline: Timeline, need: _Need, outer: dict[Slot, Any]) -> dict[Slot, Any]:
        program = need.program
        if program.parent is None:
            return self._of_outermost(need)
        values = list(self.machine.values)
        overriding.undo_constants(self.machine.overrides, self.machine.plan.main, values)
        for slot, value in outer.items():
            values[slot] = value
        start = need.first_row
        first_iteration = 0 if need.iteration is None else need.iteration - (need.row - start)
        self._bind(program, start, first_iteration, values)
        if not need.from_outside:
            for slot in program.hidden:
                values[slot] = self._kept(program, start, slot)
        if start == need.row:
            self._load(need, values)
        overrides = self.machine.overrides
        outer_iterations = timeline.iterations(program, start) if overrides.items else ()
        for row in range(start, need.row + 1):
            iteration = None if need.iteration is None else need.iteration - (need.row - row)
            if row > start:
                assert iteration is not None
                assert program.loop is not None
                regions.carry(program.loop, values)
                regions.bind_iteration(program.loop, iteration, values)
            numbers = need.numbers if row < need.row else self._last_numbers(need)
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
        for number in self._last_numbers(need):
            known.update((slot, values[slot]) for slot in program.instructions[number].outputs)
        known.update((slot, values[slot]) for slot in need.slots)
        self._keep((program.index, need.row), known)
        return (
            known
            if need.before is None
            else known | {slot: values[slot] for slot in program.hidden}
        )

    def _of_outermost(self, need: _Need) -> dict[Slot, Any]:
        """Return values of the outermost graph.

        Random states and variables before an instruction are recomputed by running the earlier
        instructions that use them.
        """
        machine = self.machine
        known = {slot: self.outermost(slot) for slot in need.slots}
        if need.before is None:
            return known
        values = list(machine.values)
        overriding.undo_constants(machine.overrides, machine.plan.main, values)
        for slot, value in machine.begun_with.items():
            values[slot] = value
        numbers = [
            number
            for number in range(need.before)
            if _uses_hidden(need.program.instructions[number])
        ]
        if machine.overrides.items:
            self._run_changed(machine.overrides, need.program, (), numbers, values)
        else:
            for number in numbers:
                self.run_one(need.program, number, values)
        return known | {slot: values[slot] for slot in need.program.hidden}

    def _last_numbers(self, need: _Need) -> list[int]:
        if need.before is not None:
            return list(range(need.before))
        return (
            need.numbers if need.first_row == need.row else self._closure(need.program, need.slots)
        )

    def _bind(self, program: Program, row: int, iteration: int, values: list[Any]) -> None:
        """Bind the Parameters of a row."""
        defaults = self.machine.defaults
        if program.branch is not None:
            regions.bind_branch(program.branch, values, defaults)
        elif program.loop is not None:
            regions.bind_entry(program.loop, values, defaults)
            for carried in program.loop.carried if iteration else ():
                values[carried.parameter] = self._kept(program, row, carried.parameter)
            regions.bind_iteration(program.loop, iteration, values)

    def _load(self, need: _Need, values: list[Any]) -> None:
        """Load the stored values of the row that are requested or read, and not recomputed."""
        program, numbers = need.program, set(self._last_numbers(need))
        slots = need.slots.union(*(program.instructions[number].reads for number in numbers))
        for slot in slots & program.producer.keys():
            if program.producer[slot] not in numbers:
                values[slot] = self._kept(program, need.row, slot)

    def _kept(self, program: Program, row: int, slot: Slot) -> Any:
        cached = self._cache.get((program.index, row))
        if cached is not None and slot in cached:
            return cached[slot]
        rows = self.machine.recording.rows.get(program.index)
        return rows.kept(row, slot) if rows is not None else None

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
        overriding.begin(overrides, machine.defaults, program, iterations, values)
        inside = overrides.inside(program, iterations)
        for number in numbers:
            self.run_one(
                program, number, values, inside, anew=program.index in overrides.by_program
            )
            overriding.put(
                overrides, program, iterations, program.instructions[number].outputs, values
            )

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

    def _keep(self, row: _Key, known: dict[Slot, Any]) -> None:
        cached = self._cache.setdefault(row, {})
        self.cached_bytes += sum(
            getattr(value, "nbytes", _NUMBER_BYTES)
            for slot, value in known.items()
            if slot not in cached
        )
        cached.update(known)
        self._cache.move_to_end(row)
        while len(self._cache) > 1 and (
            self.cached_bytes > _MAX_BYTES or len(self._cache) > _MAX_ROWS
        ):
            _, dropped = self._cache.popitem(last=False)
            self.cached_bytes -= sum(
                getattr(value, "nbytes", _NUMBER_BYTES) for value in dropped.values()
            )


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
