"""Writes the function of a loop nest: its iterations, the loops and Ifs inside, what is recorded of them, line by line.

Identifiers are synthetic (``v12`` is slot 12); no text of the model enters the source. When an instruction fails or the run
pauses, the function's local variables are written back into the machine's explicit state, so that stepping can go on there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from engine.run.codegen.emit_operation import Computing
from engine.run.codegen.emitter import Lines
from engine.run.codegen.inlining import used_once
from engine.run.codegen.shape_proofs import constant_bound, fits
from engine.run.codegen.source_map import Context, LoggedBranch, Loop, Place
from engine.run.machine.regions import entering, holds_loops, iteration_bound, join, part, then_is_taken, truth
from engine.run.plan.plan import Branch, IfRegion, LoopRegion, Program
from engine.run.plan.ports import Concatenated, LastValue
from engine.run.record.recording import ENDINGS, Recording

_MOST_PENDING = 4096
_CONDITION = ENDINGS.index("condition")


class Writer(Lines):
    """Writes the function of one loop nest for what a recording records."""

    def __init__(self, region: LoopRegion, recording: Recording, computing: Computing, numbers: Mapping[int, np.dtype]) -> None:
        super().__init__()
        self.region = region
        self.recording = recording
        self.computing = computing
        self.numbers = numbers
        self.noted: list[LoggedBranch] = []

    def loop(self, safepoint: Callable[..., int]) -> Loop:
        region, table = self.region, self.region.table
        context = Context(region.program, region, None, None, 0)
        self.constants |= {"bound": iteration_bound, "truth": truth, "chosen": then_is_taken}
        self.constants |= {"part": part, "entering": entering, "join": join}
        self.constants |= {"BIG": 1 << 62, "fits": fits, "P": safepoint, "E": {ending: number for number, ending in enumerate(ENDINGS)}}
        for carried in region.carried:
            self.moving.add(self.imported(carried.parameter))
        self._share_back_edge(region)
        collected = [output for output in region.outputs if isinstance(output, Concatenated)]
        for number in range(len(collected)):
            self.head.append(f"a{table}_{number} = F.collected[{number}].append")
        self.head += [f"i{table} = F.iteration", f"n{table} = F.bound", f"e{table} = E[F.bound_ending]", f"s{table} = 1"]
        self._core(region, context)
        for output in region.outputs:
            self.tail.append(f"V[{output.result}] = {self._result(region, output.result)}")
        for slot in region.program.hidden:
            self.tail.append(f"V[{slot}] = {self.value(slot)}")
        start = ["def loop(M, F):", "V = M.values", "R = M.recording.rows", "T = M.recording.tables", "l = M.control.allowed"]
        made = self.function(start, f"return i{table}, e{table}, l")
        made.noted = tuple(self.noted)
        return made

    # -- structure ------------------------------------------------------------------------------------------------

    def _core(self, region: LoopRegion, context: Context) -> None:
        """The iterations of a loop, in stretches between which the machine is asked whether to go on."""
        t = region.table
        last = len(region.program.instructions)
        frame = "F" if context.outer is None else "None"
        safepoint = f"P(M, {frame}, {self.constant(f'K{t}', region)}, s{t}, i{t}, n{t} == BIG, l)"
        self.place = Place(context, 0, "begin")
        self.emit("while True:")
        self.indent += 1
        self.emit(f"q{t} = i{t} + s{t}")
        self.emit(f"if q{t} > n{t}: q{t} = n{t}")
        innermost = not holds_loops(region.program)
        if innermost:
            # So many may run in one go; what is left of them at the end is given back.
            self.emit(f"if q{t} - i{t} > l: q{t} = i{t} + l")
            self.emit(f"l -= q{t} - i{t}")
        self.emit(f"for i{t} in range(i{t}, q{t}):")
        self.indent += 1
        if not innermost:
            self.place = Place(context, 0, "boundary")
            self.emit(f"if not l: {safepoint}")
            self.emit("l -= 1")
            self.place = Place(context, 0, "begin")
        self._begin_iteration(region, context)
        self._body(region.program, context)
        self.place = Place(context, last, "operation")
        self._end_iteration(region)
        self.indent -= 1
        self.place = Place(context, 0, "boundary")
        self.emit("else:")
        self.emit(f" i{t} = q{t}")
        self.emit(f" if i{t} >= n{t}: break")
        self.emit(f" s{t} = {safepoint}")
        self.emit(" continue")
        if self._may_end(region):
            self.emit(f"i{t} += 1")
            if innermost:
                self.emit(f"l += q{t} - i{t}; q{t} = i{t}")
            self.emit(f"e{t} = {_CONDITION}")
            self.emit("break")
        self.indent -= 1

    def _begin_iteration(self, region: LoopRegion, context: Context) -> None:
        t = region.table
        for number, sliced in enumerate(region.sliced):
            constant = self.constant(f"S{t}_{number}", sliced)
            source = self.value(sliced.source)
            self.emit(f"{self.assigned(sliced.parameter)} = part(K{t}, {constant}, {source}, i{t})")
        for number, counter in enumerate(region.counters):
            if not region.program.takes(counter.parameter):
                continue
            if counter.shape:
                call = self.constant(f"N{t}_{number}", counter.number)
            else:
                call = self.constant(f"N{t}_{number}", counter.element_type.dtype.type)
            self.emit(f"{self.assigned(counter.parameter)} = {call}(i{t})")
        self._record(region.program, produced=False)

    def _end_iteration(self, region: LoopRegion) -> None:
        t = region.table
        self._record(region.program, produced=True)
        number = 0
        for output in region.outputs:
            if isinstance(output, Concatenated):
                self.emit(f"a{t}_{number}({self.value(output.result)})")
                number += 1
        for slot in self._fleeting(region):
            self.emit(f"r{slot} = {self.value(slot)}")
        if self._may_end(region):
            assert region.condition_result is not None
            self.emit(f"if not {self.value(region.condition_result)}: break")
        pairs = [(self.names[carried.parameter], self.value(carried.result)) for carried in region.carried]
        moved = [(to, value) for to, value in pairs if to != value]
        if moved:
            self.emit(f"{', '.join(to for to, _ in moved)} = {', '.join(value for _, value in moved)}")

    def _share_back_edge(self, region: LoopRegion) -> None:
        """Lets the last instruction of a body write what is carried where the next iteration reads it, if nothing needs the old value."""
        if len(region.carried) != 1 or self._may_end(region):
            return
        (carried,) = region.carried
        writing = [one for one in region.program.instructions if one.symbol != "{0}" or carried.parameter in one.inputs]
        if writing and writing[-1].outputs == (carried.result,) and all(output.result != carried.parameter for output in region.outputs):
            self.names[carried.result] = self.names[carried.parameter]

    def _may_end(self, region: LoopRegion) -> bool:
        """Whether the condition of a loop may become false: not where a true constant is its Result."""
        slot = region.condition_result
        if slot is None:
            return False
        return not self._is_true(region.program, slot)

    def _is_true(self, program: Program, slot: int) -> bool:
        return (constant := self.computing.overrides.constant_of(program, slot)) is not None and np.size(constant) == 1 and truth(constant)

    def _fleeting(self, region: LoopRegion) -> list[int]:
        """Results that are carried Parameters themselves: the back edges overwrite them, so last values are set aside."""
        parameters = {carried.parameter for carried in region.carried}
        return sorted({output.result for output in region.outputs if isinstance(output, LastValue) and output.result in parameters})

    def _result(self, region: LoopRegion, slot: int) -> str:
        return f"r{slot}" if slot in self._fleeting(region) else self.value(slot)

    def _record(self, program: Program, *, produced: bool) -> None:
        rows = self.recording.rows.get(program.index)
        if rows is None:
            return
        for slot in rows.columns:
            if (slot in program.producer) == produced:
                self.head.append(f"w{program.index}_{slot} = R[{program.index}].columns[{slot}].pending")
                self.emit(f"w{program.index}_{slot}.append({self.value(slot)})")

    def _body(self, program: Program, context: Context) -> None:
        rows = self.recording.rows.get(program.index)
        self.asked |= (used_once(program, context.region) & self.numbers.keys()).difference(rows.columns if rows else ())
        for position, instruction in enumerate(program.instructions):
            self.place = Place(context, position, "operation")
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
        t = region.table
        context = Context(region.program, region, None, outer, position)
        self.constant(f"K{t}", region)
        trips = "None" if region.trip_count is None else self.value(region.trip_count)
        sources = "".join(f"{self.value(sliced.source)}, " for sliced in region.sliced)
        self.head += [f"s{t} = 1", f"C{t} = T[{t}].counts.append", f"D{t} = T[{t}].endings.append"]
        fixed = constant_bound(self.computing.overrides, region)
        if fixed is not None:
            self.emit(f"n{t} = {fixed}; w{t} = 'trip_count'; e{t} = {ENDINGS.index('trip_count')}; i{t} = 0")
        else:
            self.emit(f"n{t}, w{t} = bound(K{t}, {trips}, ({sources}))")
            self.emit(f"e{t} = E[w{t}]; i{t} = 0")
        if region.condition is not None and not self._is_true(outer.program, region.condition):
            self.emit(f"if n{t} and not truth({self.value(region.condition)}): n{t} = 0; e{t} = E['initial_condition']")
        self.emit(f"if n{t}:")
        self.indent += 1
        self.emit(f"if n{t} < 0: n{t} = BIG")
        self._enter_loop(region)
        self._core(region, context)
        self.place = Place(context, len(region.program.instructions), "join")
        self._leave_loop(region)
        self.indent -= 1
        self.place = Place(outer, position, "operation")
        self.emit("else:")
        for output in region.outputs:
            if isinstance(output, LastValue) and output.initial is not None:
                self.emit(f" V[{output.initial}] = {self.value(output.initial)}")
        targets = "".join(f"{self.assigned(output.slot)}, " for output in region.outputs)
        self.emit(f" {f'{targets} = ' if targets else ''}M.outputs_of_none(K{t})")
        self.emit(f"C{t}(i{t}); D{t}(e{t})")

    def _enter_loop(self, region: LoopRegion) -> None:
        t = region.table
        for invariant in region.invariants:
            if invariant.parameter in region.declared:
                source = self.value(invariant.source)
                self.emit(f"{self.assigned(invariant.parameter)} = entering(K{t}, {invariant.parameter}, {source})")
            else:
                self.names[invariant.parameter] = self.value(invariant.source)
        for carried in region.carried:
            initial = f"M.unfed(K{t}, {int(carried.layer)})" if carried.initial is None else self.value(carried.initial)
            if carried.parameter in region.declared and carried.initial is not None:
                initial = f"entering(K{t}, {carried.parameter}, {initial})"
            self.emit(f"{self.assigned(carried.parameter)} = {initial}")
            self.moving.add(self.names[carried.parameter])
        self._share_back_edge(region)
        for unfed in region.unfed:
            self.emit(f"{self.assigned(unfed.parameter)} = M.unfed(K{t}, {int(unfed.layer)})")
        number = 0
        for output in region.outputs:
            if isinstance(output, Concatenated):
                self.emit(f"c{t}_{number} = []; a{t}_{number} = c{t}_{number}.append")
                number += 1

    def _leave_loop(self, region: LoopRegion) -> None:
        t = region.table
        number = 0
        for output in region.outputs:
            if isinstance(output, Concatenated):
                constant = self.constant(f"J{t}_{number}", output)
                self.emit(f"{self.assigned(output.slot)} = join({constant}, c{t}_{number})")
                number += 1
            else:
                self.emit(f"{self.assigned(output.slot)} = {self._result(region, output.result)}")
        for noted in self.noted:
            if noted.program == region.program.index:
                self.emit(f"B{noted.table}.append(-i{t})")
        rows = self.recording.rows.get(region.program.index)
        if rows is not None:
            # Where the outer loop is slow to ask, what the inner one writes down would leave the processor's cache.
            self.emit(f"if len(w{region.program.index}_{next(iter(rows.columns))}) > {_MOST_PENDING}: M.recording.pack(all_of_it=False)")

    def _inner_if(self, region: IfRegion, outer: Context, position: int) -> None:
        tape = self._tape(region, outer, position)
        for test, taken, branch in ((f"if {self._chosen(region)}:", 1, region.then), ("else:", 0, region.otherwise)):
            context = Context(branch.program, None, branch, outer, position)
            self.place = Place(outer, position, "operation")
            self.emit(test)
            self.indent += 1
            first = len(self.lines)
            if taken in tape:
                self.emit(tape[taken])
            self.place = Place(context, 0, "begin")
            for parameter, source in branch.bindings:
                self.names[parameter] = self.value(source)
            for unfed in branch.unfed:
                name = self.constant(f"K{branch.program.index}b", branch)
                self.emit(f"{self.assigned(unfed.parameter)} = M.unfed({name}, {int(unfed.layer)})")
            self._share_results(region, branch)
            self._record(branch.program, produced=False)
            self._body(branch.program, context)
            self.place = Place(context, len(branch.program.instructions), "operation")
            self._record(branch.program, produced=True)
            for slot, result in zip(region.outputs, branch.results, strict=False):
                if self.assigned(slot) != self.value(result):
                    self.emit(f"{self.assigned(slot)} = {self.value(result)}")
            if len(self.lines) == first:
                self.emit("pass")
            self.indent -= 1

    def _chosen(self, region: IfRegion) -> str:
        """Whether the then branch runs; only a number is its own truth."""
        value = self.value(region.condition)
        return value if region.condition in self.numbers else f"chosen({self.constant(f'Y{region.table}', region)}, {value})"

    def _tape(self, region: IfRegion, outer: Context, position: int) -> Mapping[int, str]:
        """The line that writes down a branch of an If, for each branch that is not left out: what is not noted follows."""
        t, rarer = region.table, self.recording.branch_log(region.table).rarer
        if outer.region is None:
            self.head.append(f"B{t} = T[{t}].pending")
            return {taken: f"B{t}.append({taken})" for taken in (0, 1)}
        self.head.append(f"B{t} = T[{t}].notes")
        self.noted.append(LoggedBranch(outer.program.index, position, t, rarer))
        return {rarer: f"B{t}.append(i{outer.region.table})"}

    def _share_results(self, region: IfRegion, branch: Branch) -> None:
        """Lets the instructions of a branch write its results where they are read; what back edges overwrite only at its very end."""
        last = len(branch.program.instructions) - 1
        for slot, result in zip(region.outputs, branch.results, strict=False):
            number, target = branch.program.producer.get(result), self.assigned(slot)
            if number is not None and (target not in self.moving or number == last):
                self.names.setdefault(result, target)
