"""Text of the function of a loop nest: its iterations, inner loops and Ifs, and what is recorded,
line by line.

Identifiers are synthetic (``source_map.py``); text of the model never enters the source. When
an instruction fails or the run pauses, the function's local variables are written back into the
machine's explicit state, so that stepping can continue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from loopscope.executor.codegen import source_map
from loopscope.executor.codegen.emit_operation import CodeLines, Computing, used_once
from loopscope.executor.codegen.slot_proofs import constant_bound, fits
from loopscope.executor.codegen.source_map import (
    FRAME,
    LEFT,
    ROWS,
    RUN,
    TABLES,
    VALUES,
    CodePlace,
    Context,
    LoggedBranch,
    Loop,
    LoopNames,
)
from loopscope.executor.machine.regions import (
    concatenated,
    entering,
    holds_loops,
    is_true,
    iteration_bound,
    join,
    part,
    then_is_taken,
)
from loopscope.executor.machine.state import NO_BOUND
from loopscope.executor.plan.body_ports import Concatenated, LastValue
from loopscope.executor.plan.plan import Branch, CallRegion, IfRegion, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.executor.record.recording import ENDINGS, Recording

_MAX_PENDING = 4096
_CONDITION = ENDINGS.index("condition")


class Writer(CodeLines):
    """Writer of functions for a given recording."""

    def __init__(
        self,
        recording: Recording,
        computing: Computing,
        numbers: Mapping[Slot, np.dtype],
    ) -> None:
        super().__init__()
        self.recording = recording
        self.computing = computing
        self.numbers = numbers
        self.logged: list[LoggedBranch] = []

    def loop(self, region: LoopRegion, safepoint: Callable[..., int]) -> Loop:
        """Return the function of one loop nest."""
        names = LoopNames(region.table)
        context = Context(region.program, region, None, None, 0)
        self.constants |= {
            "iteration_bound": iteration_bound,
            "is_true": is_true,
            "then_is_taken": then_is_taken,
            "part": part,
        }
        self.constants |= {"entering": entering, "join": join, "fits": fits, "safepoint": safepoint}
        self.constants |= {
            source_map.NO_BOUND: NO_BOUND,
            "ENDINGS": {ending: number for number, ending in enumerate(ENDINGS)},
        }
        for carried in region.carried:
            self.moving.add(self.imported(carried.parameter))
        self._share_back_edge(region)
        for number in range(len(concatenated(region))):
            self.head.append(f"{names.add_piece(number)} = {FRAME}.collected[{number}].append")
        self.head += [f"{names.iteration} = {FRAME}.iteration", f"{names.bound} = {FRAME}.bound"]
        self.head += [f"{names.ending} = ENDINGS[{FRAME}.bound_ending]", f"{names.chunk} = 1"]
        self._core(region, context)
        for output in region.outputs:
            self.tail.append(f"{VALUES}[{output.result}] = {self._result(region, output.result)}")
        for slot in region.program.hidden:
            self.tail.append(f"{VALUES}[{slot}] = {self.value(slot)}")
        start = [f"def loop({RUN}, {FRAME}):", f"{VALUES} = {RUN}.values"]
        start += [
            f"{ROWS} = {RUN}.recording.rows",
            f"{TABLES} = {RUN}.recording.tables",
            f"{LEFT} = {RUN}.control.allowed",
        ]
        function = self.function(start, f"return {names.iteration}, {names.ending}, {LEFT}")
        function.logged = tuple(self.logged)
        return function

    # -- structure

    def _core(self, region: LoopRegion, context: Context) -> None:
        """Emit the iterations of a loop, in chunks, with a safepoint after each chunk."""
        names, body = LoopNames(region.table), region.program
        frame = FRAME if context.outer is None else "None"
        loop = self.constant(names.region, region)
        unlimited = f"{names.bound} == {source_map.NO_BOUND}"
        safepoint = (
            f"safepoint({RUN}, {frame}, {loop}, {names.chunk}, {names.iteration}, "
            f"{unlimited}, {LEFT})"
        )
        self.place = CodePlace(context, 0, "begin")
        self.emit("while True:")
        self.indent += 1
        self.emit(f"{names.chunk_end} = {names.iteration} + {names.chunk}")
        self.emit(f"if {names.chunk_end} > {names.bound}: {names.chunk_end} = {names.bound}")
        innermost = not holds_loops(body)
        if innermost:
            # Reserve the iterations of the whole chunk; those that do not run are added back at its
            # end.
            self.emit(
                f"if {names.chunk_end} - {names.iteration} > {LEFT}: "
                f"{names.chunk_end} = {names.iteration} + {LEFT}"
            )
            self.emit(f"{LEFT} -= {names.chunk_end} - {names.iteration}")
        self.emit(f"for {names.iteration} in range({names.iteration}, {names.chunk_end}):")
        self.indent += 1
        first_line = len(self.lines)
        if not innermost:
            self.place = CodePlace(context, 0, "boundary")
            self.emit(f"if not {LEFT}: {safepoint}")
            self.emit(f"{LEFT} -= 1")
            self.place = CodePlace(context, 0, "begin")
        self._begin_iteration(region)
        self._body(body, context)
        self.place = CodePlace(context, len(body.instructions), "operation")
        self._end_iteration(region)
        if len(self.lines) == first_line:
            self.emit("pass")
        self.indent -= 1
        self.place = CodePlace(context, 0, "boundary")
        self.emit("else:")
        self.indent += 1
        self.emit(f"{names.iteration} = {names.chunk_end}")
        self.emit(f"if {names.iteration} >= {names.bound}: break")
        self.emit(f"{names.chunk} = {safepoint}")
        self.emit("continue")
        self.indent -= 1
        if self._may_end(region):
            self.emit(f"{names.iteration} += 1")
            if innermost:
                self.emit(
                    f"{LEFT} += {names.chunk_end} - {names.iteration}; "
                    f"{names.chunk_end} = {names.iteration}"
                )
            self.emit(f"{names.ending} = {_CONDITION}")
            self.emit("break")
        self.indent -= 1

    def _begin_iteration(self, region: LoopRegion) -> None:
        names = LoopNames(region.table)
        for number, sliced in enumerate(region.sliced):
            constant = self.constant(names.sliced(number), sliced)
            source = self.value(sliced.source)
            self.emit(
                f"{self.assigned(sliced.parameter)} = "
                f"part({names.region}, {constant}, {source}, {names.iteration})"
            )
        for number, counter in enumerate(region.counters):
            if not region.program.takes(counter.parameter):
                continue
            call = self.constant(
                names.counter(number),
                counter.element_type.dtype.type if counter.is_plain else counter.number,
            )
            self.emit(f"{self.assigned(counter.parameter)} = {call}({names.iteration})")
        self._record(region.program, produced=False)

    def _end_iteration(self, region: LoopRegion) -> None:
        names = LoopNames(region.table)
        self._record(region.program, produced=True)
        for number, output in enumerate(concatenated(region)):
            self.emit(f"{names.add_piece(number)}({self.value(output.result)})")
        for slot in self._fleeting(region):
            self.emit(f"{source_map.last_of_slot(slot)} = {self.value(slot)}")
        if self._may_end(region):
            assert region.condition_result is not None
            self.emit(f"if not {self.value(region.condition_result)}: break")
        pairs = [
            (self.names[carried.parameter], self.value(carried.result))
            for carried in region.carried
        ]
        changed = [(to, value) for to, value in pairs if to != value]
        if changed:
            self.emit(
                f"{', '.join(to for to, _ in changed)} = {', '.join(value for _, value in changed)}"
            )

    def _share_back_edge(self, region: LoopRegion) -> None:
        """Let the last instruction of a body write the carried value into the variable that the
        next iteration reads.

        This requires that nothing reads the old value after that instruction.
        """
        if len(region.carried) != 1 or self._may_end(region):
            return
        (carried,) = region.carried
        writing = [
            instruction
            for instruction in region.program.instructions
            if not instruction.is_identity or carried.parameter in instruction.inputs
        ]
        if (
            writing
            and writing[-1].outputs == (carried.result,)
            and all(output.result != carried.parameter for output in region.outputs)
        ):
            self.names[carried.result] = self.names[carried.parameter]

    def _may_end(self, region: LoopRegion) -> bool:
        """Return True if the condition of a loop may become false, that is, if its Result is not a
        true constant.
        """
        slot = region.condition_result
        if slot is None:
            return False
        return not self._is_true(region.program, slot)

    def _is_true(self, program: Program, slot: Slot) -> bool:
        constant = self.computing.overrides.constant_of(program, slot)
        return constant is not None and np.size(constant) == 1 and is_true(constant)

    def _fleeting(self, region: LoopRegion) -> list[Slot]:
        """Return the output Results that are carried Parameters. Back edges overwrite them, so
        their last values are stored separately.
        """
        parameters = {carried.parameter for carried in region.carried}
        return sorted(
            {
                output.result
                for output in region.outputs
                if isinstance(output, LastValue) and output.result in parameters
            }
        )

    def _result(self, region: LoopRegion, slot: Slot) -> str:
        return source_map.last_of_slot(slot) if slot in self._fleeting(region) else self.value(slot)

    def _record(self, program: Program, *, produced: bool) -> None:
        rows = self.recording.rows.get(program.index)
        if rows is None:
            return
        for slot in rows.columns:
            if (slot in program.producer) == produced:
                name = source_map.record_of(program.index, slot)
                self.head.append(f"{name} = {ROWS}[{program.index}].columns[{slot}].pending")
                self.emit(f"{name}.append({self.value(slot)})")

    def _body(self, program: Program, context: Context) -> None:
        rows = self.recording.rows.get(program.index)
        self.inlined |= (used_once(program, context.region) & self.numbers.keys()).difference(
            rows.columns if rows else ()
        )
        for position, instruction in enumerate(program.instructions):
            self.place = CodePlace(context, position, "operation")
            match instruction.region:
                case None:
                    self.computing.compute(self, instruction, program)
                case LoopRegion() as region:
                    self._inner_loop(region, context, position)
                case IfRegion() as region:
                    self._inner_if(region, context, position)
                case _:
                    raise AssertionError(instruction.title)

    def _inner_loop(self, region: LoopRegion, outer: Context, position: int) -> None:
        names, table = LoopNames(region.table), region.table
        context = Context(region.program, region, None, outer, position)
        self.constant(names.region, region)
        self.head += [f"{names.chunk} = 1", f"{names.add_count} = {TABLES}[{table}].counts.append"]
        self.head += [f"{names.add_ending} = {TABLES}[{table}].endings.append"]
        self._bound(region, outer.program)
        self.emit(f"if {names.bound}:")
        self.indent += 1
        self.emit(f"if {names.bound} < 0: {names.bound} = {source_map.NO_BOUND}")
        self._enter_loop(region)
        self._core(region, context)
        self.place = CodePlace(context, len(region.program.instructions), "join")
        self._leave_loop(region)
        self.indent -= 1
        self.place = CodePlace(outer, position, "operation")
        self.emit("else:")
        self.indent += 1
        for output in region.outputs:
            if isinstance(output, LastValue) and output.initial is not None:
                self.emit(f"{VALUES}[{output.initial}] = {self.value(output.initial)}")
        targets = "".join(f"{self.assigned(output.slot)}, " for output in region.outputs)
        self.emit(f"{f'{targets} = ' if targets else ''}{RUN}.outputs_of_none({names.region})")
        self.indent -= 1
        self.emit(f"{names.add_count}({names.iteration}); {names.add_ending}({names.ending})")

    def _bound(self, region: LoopRegion, outer: Program) -> None:
        """Emit the iteration bound of an inner loop and its ending when it reaches the bound."""
        names, fixed = LoopNames(region.table), constant_bound(self.computing.overrides, region)
        if fixed is not None:
            self.emit(
                f"{names.bound} = {fixed}; {names.bound_ending} = 'trip_count'; "
                f"{names.ending} = {ENDINGS.index('trip_count')}"
            )
        else:
            trips = "None" if region.trip_count is None else self.value(region.trip_count)
            sources = "".join(f"{self.value(sliced.source)}, " for sliced in region.sliced)
            self.emit(
                f"{names.bound}, {names.bound_ending} = "
                f"iteration_bound({names.region}, {trips}, ({sources}))"
            )
            self.emit(f"{names.ending} = ENDINGS[{names.bound_ending}]")
        self.emit(f"{names.iteration} = 0")
        if region.condition is not None and not self._is_true(outer, region.condition):
            test = f"if {names.bound} and not is_true({self.value(region.condition)})"
            self.emit(f"{test}: {names.bound} = 0; {names.ending} = ENDINGS['initial_condition']")

    def _enter_loop(self, region: LoopRegion) -> None:
        names = LoopNames(region.table)
        for invariant in region.invariants:
            if invariant.parameter in region.declared:
                source = self.value(invariant.source)
                self.emit(
                    f"{self.assigned(invariant.parameter)} = "
                    f"entering({names.region}, {invariant.parameter}, {source})"
                )
            else:
                self.names[invariant.parameter] = self.value(invariant.source)
        for carried in region.carried:
            initial = (
                f"{RUN}.unfed({names.region}, {int(carried.layer)})"
                if carried.initial is None
                else self.value(carried.initial)
            )
            if carried.parameter in region.declared and carried.initial is not None:
                initial = f"entering({names.region}, {carried.parameter}, {initial})"
            self.emit(f"{self.assigned(carried.parameter)} = {initial}")
            self.moving.add(self.names[carried.parameter])
        self._share_back_edge(region)
        for unfed in region.unfed:
            self.emit(
                f"{self.assigned(unfed.parameter)} = "
                f"{RUN}.unfed({names.region}, {int(unfed.layer)})"
            )
        for number in range(len(concatenated(region))):
            self.emit(
                f"{names.pieces(number)} = []; "
                f"{names.add_piece(number)} = {names.pieces(number)}.append"
            )

    def _leave_loop(self, region: LoopRegion) -> None:
        names, number = LoopNames(region.table), 0
        for output in region.outputs:
            if isinstance(output, Concatenated):
                constant = self.constant(names.output(number), output)
                self.emit(
                    f"{self.assigned(output.slot)} = join({constant}, {names.pieces(number)})"
                )
                number += 1
            else:
                self.emit(f"{self.assigned(output.slot)} = {self._result(region, output.result)}")
        for logged in self.logged:
            if logged.program == region.program.index:
                self.emit(f"{source_map.log_of(logged.table)}.append(-{names.iteration})")
        rows = self.recording.rows.get(region.program.index)
        if rows is not None:
            # Pack now if the outer loop reaches its safepoint late: pending rows should fit into
            # the processor's cache.
            newest = source_map.record_of(region.program.index, next(iter(rows.columns)))
            self.emit(f"if len({newest}) > {_MAX_PENDING}: {RUN}.recording.pack(all_of_it=False)")

    def _inner_if(self, region: IfRegion, outer: Context, position: int) -> None:
        log = self._log(region, outer, position)
        for test, taken, branch in (
            (f"if {self._chosen(region)}:", 1, region.then),
            ("else:", 0, region.otherwise),
        ):
            context = Context(branch.program, None, branch, outer, position)
            self.place = CodePlace(outer, position, "operation")
            self.emit(test)
            self.indent += 1
            first = len(self.lines)
            if taken in log:
                self.emit(log[taken])
            self._branch(region, branch, context)
            if len(self.lines) == first:
                self.emit("pass")
            self.indent -= 1

    def _branch(self, region: IfRegion | CallRegion, branch: Branch, context: Context) -> None:
        self.place = CodePlace(context, 0, "begin")
        for parameter, source in branch.bindings:
            self.names[parameter] = self.value(source)
        for unfed in branch.unfed:
            name = self.constant(source_map.branch_of(branch.program.index), branch)
            self.emit(f"{self.assigned(unfed.parameter)} = {RUN}.unfed({name}, {int(unfed.layer)})")
        self._share_results(region, branch)
        self._record(branch.program, produced=False)
        self._body(branch.program, context)
        self.place = CodePlace(context, len(branch.program.instructions), "operation")
        self._record(branch.program, produced=True)
        for slot, result in zip(region.outputs, branch.results, strict=False):
            if self.assigned(slot) != self.value(result):
                self.emit(f"{self.assigned(slot)} = {self.value(result)}")

    def _chosen(self, region: IfRegion) -> str:
        """Return the test for the then branch. A proved number is tested without a call."""
        value = self.value(region.condition)
        return (
            value
            if region.condition in self.numbers
            else f"then_is_taken({self.constant(source_map.if_of(region.table), region)}, {value})"
        )

    def _log(self, region: IfRegion, outer: Context, position: int) -> Mapping[int, str]:
        """Return the line that logs a branch of an If, for each branch that is logged.

        Inside a loop only the rarer branch is logged; the executions of the second branch follow
        from it.
        """
        table = region.table
        rarer = self.recording.branch_log(region.table).rarer
        log = source_map.log_of(region.table)
        if outer.region is None:
            self.head.append(f"{log} = {TABLES}[{table}].pending")
            return {taken: f"{log}.append({taken})" for taken in (0, 1)}
        self.head.append(f"{log} = {TABLES}[{table}].iterations")
        self.logged.append(
            LoggedBranch(program=outer.program.index, position=position, table=table, branch=rarer)
        )
        return {rarer: f"{log}.append({LoopNames(outer.region.table).iteration})"}

    def _share_results(self, region: IfRegion | CallRegion, branch: Branch) -> None:
        """Let the instructions of a branch write its results directly into the output variables of
        the If.

        A variable that back edges overwrite may only be written by the last instruction of the
        branch.
        """
        last = len(branch.program.instructions) - 1
        for slot, result in zip(region.outputs, branch.results, strict=False):
            number, target = branch.program.producer.get(result), self.assigned(slot)
            if number is not None and (target not in self.moving or number == last):
                self.names.setdefault(result, target)
