"""The machine: runs a plan one instruction at a time over an explicit state that can be copied, and loops through generated code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.errors import shorten
from engine.ir.element_type import ElementType
from engine.ir.model import LayerId
from engine.ops.bounds import at_most
from engine.run.codegen import tiering as generated
from engine.run.machine.cycle_detection import CycleDetector
from engine.run.machine.execute import check_held, computing, describe, execute
from engine.run.machine.limits import Control, Limits, Paused
from engine.run.machine.regions import UNLIMITED, empty_join, entering, iteration_bound, join, part, truth
from engine.run.memory import keep_freed_memory
from engine.run.plan.defaults import Defaults
from engine.run.plan.overrides import Overrides
from engine.run.plan.plan import Branch, CallRegion, Concatenated, IfRegion, Instruction, LastValue, LoopRegion, Plan, Program, settle
from engine.run.record.recording import ENDINGS, NOTHING, LoopTable, Record, Recording

State = Literal["paused", "finished", "failed"]
_NO_BOUND = 1 << 62


@dataclass(eq=False, slots=True)
class Frame:
    """One graph that is being run: where it stands, and for a loop's body its iteration and what it has collected."""

    program: Program
    position: int = 0
    """Number of the instruction that runs next; the number of instructions when the graph is done."""
    region: LoopRegion | None = None
    """Set when this is the body of a loop."""
    branch: Branch | None = None
    """Set when this is a branch."""
    iteration: int = 0
    bound: int = 0
    """Iterations at most; a huge number for no limit."""
    bound_ending: str = "trip_count"
    collected: tuple[list[Any], ...] = ()
    watch: CycleDetector | None = None
    is_behind: bool = False
    """Its last iteration is complete, and what generated code computed in it did not all come into the slots."""


class Failure(Exception):
    """An instruction failed; the machine stands at it."""


@dataclass(eq=False)
class Machine:
    """One run of a plan."""

    plan: Plan
    values: list[Any]
    recording: Recording
    control: Control
    defaults: Defaults
    frames: list[Frame] = field(default_factory=list[Frame])
    state: State = "paused"
    failure: str = ""
    last: Instruction | None = None
    """What ran last; None after the end of a body, and after generated code."""
    keeps: bool = True
    """False: values of the outermost graph go as soon as nothing in it needs them any more, outputs apart."""
    changes: Overrides | None = None
    """What a person sets in this run; None for nothing."""
    begun_with: Mapping[int, Any] = field(default_factory=dict[int, Any])
    """Random states and variables at the start, by slot."""

    @staticmethod
    def start(
        plan: Plan,
        inputs: dict[int, Any],
        *,
        limits: Limits,
        record: Record = NOTHING,
        entropy: int = 0,
        variables: dict[int, Any] | None = None,
        keeps: bool = True,
    ) -> Machine:
        """A machine before its first instruction; ``inputs`` and ``variables`` are values by slot."""
        keep_freed_memory()
        values = plan.fresh_values(entropy)
        for slot, value in {**inputs, **(variables or {})}.items():
            values[slot] = settle(value)
        machine = Machine(plan, values, Recording(plan, record), Control(limits), Defaults(plan), keeps=keeps, changes=plan.changes)
        machine.begun_with = {slot: values[slot] for slot in plan.main.hidden}
        machine.frames.append(Frame(plan.main))
        machine._begin_row(plan.main)
        if not plan.main.instructions:
            machine._finish_main()
        return machine

    # -- stepping -------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Runs one instruction, begins one region, or ends one body execution. ``Failure`` leaves the machine at the place."""
        frame = self.frames[-1]
        if frame.position == len(frame.program.instructions):
            self.last = None
            self._end_body(frame)
        else:
            self.last = frame.program.instructions[frame.position]
            self._run(frame, self.last)

    def _run(self, frame: Frame, instruction: Instruction) -> None:
        try:
            if instruction.region is None:
                execute(instruction, self.values, anew=self.changes is not None and frame.program.index in self.changes.by_program)
                if self.control.limits.memory_bytes is not None:
                    check_held(instruction, self.values, self.plan.constant_numbers, self.control.limits.memory_bytes)
                self._go_on(frame)
            else:
                self._enter(frame, instruction)
        except Paused:
            raise
        except Exception as error:
            raise self.failed(describe(instruction, self.values, error)) from error

    def failed(self, message: str) -> Failure:
        """The error to raise when the instruction at which the machine stands has failed."""
        self.state = "failed"
        self.failure = message
        return Failure(message)

    def _finish_main(self) -> None:
        self.state = "finished"

    # -- regions --------------------------------------------------------------------------------------------------

    def _enter(self, frame: Frame, instruction: Instruction) -> None:
        match instruction.region:
            case LoopRegion() as region:
                self._enter_loop(frame, region)
            case IfRegion() as region:
                taken = truth(self.values[region.condition])
                self.recording.branch_log(region.table).branches.append(taken)
                self._enter_branch(region.then if taken else region.otherwise)
            case CallRegion() as region:
                self._enter_branch(region.branch)
            case None:
                raise AssertionError(instruction.label)

    def open_frame(self, program: Program, region: LoopRegion | None, branch: Branch | None) -> Frame:
        """A frame on top of the others; what is in its slots is up to the caller."""
        self.frames.append(Frame(program, 0, region, branch))
        return self.frames[-1]

    def unfed(self, owner: LoopRegion | Branch, layer: LayerId) -> Any:
        """The zeros of a Parameter that nothing feeds."""
        return self.defaults.parameter(owner.program.address, layer)

    def _enter_branch(self, branch: Branch) -> None:
        values = self.values
        for parameter, outer in branch.bindings:
            values[parameter] = values[outer]
        for parameter, layer in branch.unfed:
            values[parameter] = self.defaults.parameter(branch.program.address, layer)
        self.frames.append(Frame(branch.program, branch=branch))
        self._begin_row(branch.program)

    def _enter_loop(self, outer: Frame, region: LoopRegion) -> None:
        values = self.values
        trips = None if region.trip_count is None else values[region.trip_count]
        bound, ending = iteration_bound(region, trips, [values[sliced.source] for sliced in region.sliced])
        if bound != 0 and region.condition is not None and not truth(values[region.condition]):
            bound, ending = 0, "initial_condition"
        if bound == 0:
            self._write_down(region, 0, ending)
            for output, value in zip(region.outputs, self.zero_outputs(region), strict=True):
                values[output.slot] = value
            self._go_on(outer)
            return
        for parameter, source_slot in region.invariants:
            values[parameter] = entering(region, parameter, values[source_slot])
        for carried in region.carried:
            values[carried.parameter] = (
                self.defaults.parameter(region.program.address, carried.layer)
                if carried.initial is None
                else entering(region, carried.parameter, values[carried.initial])
            )
        for parameter, layer in region.unfed:
            values[parameter] = self.defaults.parameter(region.program.address, layer)
        collected: tuple[list[Any], ...] = tuple([] for output in region.outputs if isinstance(output, Concatenated))
        frame = Frame(region.program, 0, region, None, 0, _NO_BOUND if bound == UNLIMITED else bound, ending, collected)
        self.frames.append(frame)
        self._begin_iteration(frame, region)
        self._check_iterations()

    def _begin_iteration(self, frame: Frame, region: LoopRegion) -> None:
        values = self.values
        for sliced in region.sliced:
            values[sliced.parameter] = part(region, sliced, values[sliced.source], frame.iteration)
        for counter in region.counters:
            values[counter.parameter] = counter.number(frame.iteration)
        self._begin_row(region.program)

    def _check_iterations(self) -> None:
        """At the beginning of an iteration: ``Paused`` when as many as allowed have begun before it."""
        if self.control.left(len(self.frames)) == 0:
            self.control.check_left(self.control.left(sum(frame.region is not None for frame in self.frames) - 1))

    def _begin_row(self, program: Program) -> None:
        """What a row begins with is there: it is changed where a person wants it, and written down."""
        if self.changes is not None:
            self.changes.begin(self.plan, self.defaults, program, self._iterations(), self.values)
        rows = self.recording.rows.get(program.index)
        if rows is not None:
            for slot in rows.columns.keys() - program.producer.keys():
                rows.columns[slot].pending.append(self.values[slot])

    def _end_body(self, frame: Frame) -> None:
        """A body is done: a branch hands out its results; a loop looks at its condition and goes on or hands out its outputs."""
        rows = self.recording.rows.get(frame.program.index)
        if rows is not None:
            for slot in rows.columns.keys() & frame.program.producer.keys():
                rows.columns[slot].pending.append(self.values[slot])
        if frame.branch is not None:
            self._leave_branch(frame.branch)
        elif frame.region is not None:
            self._end_iteration(frame, frame.region)

    def _leave_branch(self, branch: Branch) -> None:
        self.frames.pop()
        outer = self.frames[-1]
        region = outer.program.instructions[outer.position].region
        assert isinstance(region, (IfRegion, CallRegion))
        for slot, result in zip(region.outputs, branch.results, strict=False):
            self.values[slot] = self.values[result]
        self._go_on(outer)

    def _end_iteration(self, frame: Frame, region: LoopRegion) -> None:
        values = self.values
        try:
            for output, collected in zip(_concatenated(region), frame.collected, strict=True):
                collected.append(values[output.result])
            go = region.condition_result is None or truth(values[region.condition_result])
            self.control.iterations += 1
            if go and frame.iteration + 1 < frame.bound:
                fired = [values[carried.result] for carried in region.carried]
                for carried, value in zip(region.carried, fired, strict=True):
                    values[carried.parameter] = value
                frame.iteration += 1
                frame.position = 0
                self._begin_iteration(frame, region)
                self._check_iterations()
            else:
                self.finish_loop(frame, frame.iteration + 1, frame.bound_ending if go else "condition")
        except Paused:
            raise
        except Exception as error:
            raise self.failed(f"{shorten(str(error), 400)}") from error

    def finish_loop(self, frame: Frame, count: int, ending: str) -> None:
        """A loop has ended after ``count`` iterations: its outputs are made and its frame goes."""
        region = frame.region
        assert region is not None
        values = self.values
        joined = iter(frame.collected)
        made = [join(output, next(joined)) if isinstance(output, Concatenated) else values[output.result] for output in region.outputs]
        self._write_down(region, count, ending)
        for output, value in zip(region.outputs, made, strict=True):
            values[output.slot] = value
        self.frames.pop()
        self._go_on(self.frames[-1])

    def _write_down(self, region: LoopRegion, count: int, ending: str) -> None:
        table = self.recording.tables[region.table]
        assert isinstance(table, LoopTable)
        table.counts.append(count)
        table.endings.append(ENDINGS.index(ending))

    def _go_on(self, frame: Frame) -> None:
        """The instruction at which a frame stands is done."""
        if self.changes is not None:
            self.changes.put(frame.program, self._iterations(), frame.program.instructions[frame.position].outputs, self.values)
        if frame.program.parent is None:
            if not self.keeps:
                for slot in frame.program.done_with[frame.position]:
                    self.values[slot] = None
            if frame.position + 1 == len(frame.program.instructions):
                self._finish_main()
        frame.position += 1

    def _iterations(self) -> tuple[int, ...]:
        """Those of the open loops, outermost first."""
        return tuple(frame.iteration for frame in self.frames if frame.region is not None)

    def next_change(self, iteration: int) -> int | None:
        """The first iteration of the loop on top, not before the given one, in which a person sets anything."""
        if self.changes is None:
            return None
        return self.changes.next_in([frame.program for frame in self.frames if frame.region], (*self._iterations()[:-1], iteration))

    def last_change(self) -> int:
        """The last such iteration of the loop on top; -1 for none."""
        if self.changes is None:
            return -1
        return self.changes.last_in([frame.program for frame in self.frames if frame.region], self._iterations())

    def zero_outputs(self, region: LoopRegion) -> list[Any]:
        """The outputs of a loop whose body never ran."""
        return [self._zero_output(region, output) for output in region.outputs]

    def _zero_output(self, region: LoopRegion, output: LastValue | Concatenated) -> Any:
        address = region.program.address
        if isinstance(output, Concatenated):
            element_type, shape = self.defaults.known_result(address, output.layer)
            return empty_join(output, shape, (element_type or ElementType.F32).dtype)
        if output.initial is not None:
            return self.values[output.initial]
        if output.carried_without_initial is not None:
            layer = next(carried.layer for carried in region.carried if carried.parameter == output.carried_without_initial)
            return self.defaults.parameter(address, layer)
        return self.defaults.result(address, output.layer)

    # -- running --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs to the end. ``Paused`` and ``Failure`` leave the machine at the place, and it can go on after a pause."""
        self.control.begin()
        try:
            with computing(), at_most(self.control.most_elements):
                while self.state == "paused":
                    self.control.check(self.recording.bytes)
                    self.advance(unwatched=True)
        finally:
            self.control.end()

    def run_region(self) -> None:
        """Runs the one region that the outermost frame stands at, and stops after it. Its frame may be any graph's."""
        outermost = self.frames[0]
        target = outermost.position + 1
        self.step()
        while len(self.frames) > 1 or outermost.position < target:
            self.advance(unwatched=True)

    def advance(self, *, unwatched: bool) -> None:
        """One step, or (``unwatched``) the rest of the loop on top through generated code."""
        frame = self.frames[-1]
        if unwatched and frame.region is not None and generated.may_run(frame) and self.next_change(frame.iteration) != frame.iteration:
            generated.run(self, frame, frame.region)
        else:
            self.step()

    def reenter(self, frame: Frame, region: LoopRegion) -> None:
        """Puts a loop that generated code left between two iterations at the beginning of the next."""
        frame.position = 0
        self._begin_iteration(frame, region)


def _concatenated(region: LoopRegion) -> list[Concatenated]:
    return [output for output in region.outputs if isinstance(output, Concatenated)]
