"""Generated code: a nest of loops as one Python function over local variables, made from the same plan that stepping interprets.

Identifiers are synthetic (``v12`` is slot 12); no text of the model enters the source. When an instruction fails or the run
pauses, the function's local variables are written back into the machine's explicit state, so that stepping can go on there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from engine.run.execute import SMALL
from engine.run.fixed import bounded, expression, fits, fixed_source, grows, guarded
from engine.run.ledger import ENDINGS, Ledger
from engine.run.places import Context, Loop, Place
from engine.run.plan import ABSENT, Concatenated, IfRegion, Instruction, LastValue, LoopRegion, Plan, Program
from engine.run.regions import entering, iteration_bound, join, part, truth
from engine.run.zeros import Zeros

_FILE = "<loop>"
_MOST_NESTED_LOOPS = 8
"""CPython refuses more than 20 nested blocks in one function; a loop takes two."""
_MOST_NESTED_REGIONS = 24
_MOST_INSTRUCTIONS = 20_000
_MOST_PENDING = 4096
_CONDITION = ENDINGS.index("condition")


def can_generate(region: LoopRegion) -> bool:
    """Whether a nest is shallow and small enough for one function; what is deeper is interpreted from outside in."""
    deepest_loops, total = 0, 0
    waiting: list[tuple[Program, int, int]] = [(region.program, 1, 1)]
    while waiting:
        program, loops, regions = waiting.pop()
        deepest_loops = max(deepest_loops, loops)
        total += len(program.instructions)
        if deepest_loops > _MOST_NESTED_LOOPS or regions > _MOST_NESTED_REGIONS or total > _MOST_INSTRUCTIONS:
            return False
        for number in program.regions:
            inner = program.instructions[number].region
            if not isinstance(inner, (LoopRegion, IfRegion)):
                return False
            waiting.extend((one, loops + isinstance(inner, LoopRegion), regions + 1) for one in inner.programs)
    return True


def loop(plan: Plan, region: LoopRegion, ledger: Ledger, values: list[Any], zeros: Zeros) -> Loop:
    """The generated function of a loop for what a ledger records; made once for each plan, recording and types of what enters the body.

    ``values`` are those after its first iterations: what follows from element types is fixed, what follows from ranks is only a guess
    at what is worth a line.
    """
    recorded = tuple((index, tuple(rows.recorded)) for index, rows in ledger.rows.items())
    given = [values[slot] for slot in region.program.parameters.values()]
    types = tuple((getattr(value, "dtype", None), getattr(value, "ndim", 0) > 0) for value in given)
    key = (region.table, recorded, types, grows(region, values))
    made = plan.generated.get(key)
    if made is None:
        made = plan.generated[key] = _Writer(region, ledger, plan, values, zeros, key[-1]).loop()
    return made


@dataclass(eq=False)
class _Writer:
    region: LoopRegion
    ledger: Ledger
    plan: Plan
    values: list[Any]
    zeros: Zeros
    grows: bool
    """Whether results of elementwise operations may become large."""
    lines: list[str] = field(default_factory=list[str])
    places: list[Place | None] = field(default_factory=lambda: [None])
    indent: int = 1
    names: dict[int, str] = field(default_factory=dict[int, str])
    read: dict[int, None] = field(default_factory=dict[int, None])
    """Slots whose values come from outside, in order of first use."""
    head: list[str] = field(default_factory=list[str])
    tail: list[str] = field(default_factory=list[str])
    constants: dict[str, Any] = field(default_factory=dict[str, Any])
    moving: set[str] = field(default_factory=set[str])
    """Locals that back edges overwrite."""
    place: Place | None = None

    def loop(self) -> Loop:
        region, table = self.region, self.region.table
        context = Context(region.program, region, None, None, 0)
        self.constants |= {"bound": iteration_bound, "truth": truth, "part": part, "entering": entering, "join": join}
        self.constants |= {"BIG": 1 << 62, "np": np, "fits": fits}
        for carried in region.carried:
            self.moving.add(self._import(carried.parameter))
        collected = [output for output in region.outputs if isinstance(output, Concatenated)]
        for number in range(len(collected)):
            self.head.append(f"a{table}_{number} = F.collected[{number}].append")
        self.head += [f"i{table} = F.iteration", f"n{table} = F.bound", f"e{table} = E[F.bound_ending]", f"s{table} = 1"]
        self.constants["E"] = {ending: number for number, ending in enumerate(ENDINGS)}
        self._core(region, context)
        for output in region.outputs:
            self.tail.append(f"V[{output.result}] = {self._result(region, output.result)}")
        for slot in region.program.hidden:
            self.tail.append(f"V[{slot}] = {self._value(slot)}")
        imports = [f"v{slot} = V[{slot}]" for slot in self.read]
        start = ["def loop(M, F):", " V = M.values", " R = M.ledger.rows", " T = M.ledger.tables", " P = M.pulse"]
        start += [" " + line for line in (*imports, *dict.fromkeys(self.head))]
        end = [" " + line for line in (*dict.fromkeys(self.tail), f"return i{table}, e{table}")]
        text = "\n".join([*start, *self.lines, *end])
        places: list[Place | None] = [None] * (len(start) + 1) + self.places[1:] + [None] * (len(end) + 1)
        return Loop(_function(text, self.constants), text, places, self.names)

    # -- lines and names ------------------------------------------------------------------------------------------

    def _emit(self, text: str) -> None:
        self.lines.append(" " * self.indent + text)
        self.places.append(self.place)

    def _import(self, slot: int) -> str:
        self.read[slot] = None
        return self.names.setdefault(slot, f"v{slot}")

    def _value(self, slot: int) -> str:
        """The local that holds a slot."""
        if slot == ABSENT:
            return "None"
        return self.names[slot] if slot in self.names else self._import(slot)

    def _assign(self, slot: int) -> str:
        """The local that a slot is put into."""
        return self.names.setdefault(slot, f"v{slot}")

    def _constant(self, name: str, value: Any) -> str:
        self.constants[name] = value
        return name

    # -- structure ------------------------------------------------------------------------------------------------

    def _core(self, region: LoopRegion, context: Context) -> None:
        """The iterations of a loop, in stretches between which the machine is asked whether to go on."""
        t = region.table
        last = len(region.program.instructions)
        region_name = self._constant(f"K{t}", region)
        self.place = Place(context, 0, "begin")
        self._emit("while True:")
        self.indent += 1
        self._emit(f"q{t} = i{t} + s{t}")
        self._emit(f"if q{t} > n{t}: q{t} = n{t}")
        self._emit(f"for i{t} in range(i{t}, q{t}):")
        self.indent += 1
        self._begin_iteration(region, context)
        self._body(region.program, context)
        self.place = Place(context, last, "operation")
        self._end_iteration(region)
        self.indent -= 1
        self.place = Place(context, 0, "boundary")
        self._emit("else:")
        self._emit(f" i{t} = q{t}")
        self._emit(f" if i{t} >= n{t}: break")
        frame = "F" if context.outer is None else "None"
        self._emit(f" s{t} = P({frame}, {region_name}, s{t}, i{t}, n{t} == BIG)")
        self._emit(" continue")
        if self._may_end(region):
            self._emit(f"i{t} += 1")
            self._emit(f"e{t} = {_CONDITION}")
            self._emit("break")
        self.indent -= 1

    def _begin_iteration(self, region: LoopRegion, context: Context) -> None:
        t = region.table
        for number, sliced in enumerate(region.sliced):
            constant = self._constant(f"S{t}_{number}", sliced)
            source = self._value(sliced.source)
            self._emit(f"{self._assign(sliced.parameter)} = part(K{t}, {constant}, {source}, i{t})")
        for number, counter in enumerate(region.counters):
            if counter.shape:
                call = self._constant(f"N{t}_{number}", counter.number)
            else:
                call = self._constant(f"N{t}_{number}", counter.element_type.dtype.type)
            self._emit(f"{self._assign(counter.parameter)} = {call}(i{t})")
        self._record(region.program, produced=False)

    def _end_iteration(self, region: LoopRegion) -> None:
        t = region.table
        self._record(region.program, produced=True)
        number = 0
        for output in region.outputs:
            if isinstance(output, Concatenated):
                self._emit(f"a{t}_{number}({self._value(output.result)})")
                number += 1
        for slot in self._fleeting(region):
            self._emit(f"r{slot} = {self._value(slot)}")
        if self._may_end(region):
            assert region.condition_result is not None
            self._emit(f"if not {self._value(region.condition_result)}: break")
        pairs = [(self.names[carried.parameter], self._value(carried.result)) for carried in region.carried]
        moved = [(to, value) for to, value in pairs if to != value]
        if moved:
            self._emit(f"{', '.join(to for to, _ in moved)} = {', '.join(value for _, value in moved)}")

    def _may_end(self, region: LoopRegion) -> bool:
        """Whether the condition of a loop may become false: not where a true constant is its Result."""
        slot = region.condition_result
        if slot is None:
            return False
        return not self._is_true(region.program, slot)

    def _is_true(self, program: Program, slot: int) -> bool:
        return (constant := self._constant_of(program, slot)) is not None and np.size(constant) == 1 and truth(constant)

    def _constant_of(self, program: Program, slot: int) -> Any | None:
        """The value of a slot that always equals a Const; None for any other."""
        while (number := program.producer.get(slot)) is not None and program.instructions[number].symbol == "{0}":
            slot = program.instructions[number].inputs[0]
        source = fixed_source(program, slot)
        return None if source is None else self.plan.constant.get(source)

    def _fleeting(self, region: LoopRegion) -> list[int]:
        """Results that are carried Parameters themselves: the back edges overwrite them, so last values are set aside."""
        parameters = {carried.parameter for carried in region.carried}
        return sorted({output.result for output in region.outputs if isinstance(output, LastValue) and output.result in parameters})

    def _result(self, region: LoopRegion, slot: int) -> str:
        return f"r{slot}" if slot in self._fleeting(region) else self._value(slot)

    def _record(self, program: Program, *, produced: bool) -> None:
        rows = self.ledger.rows.get(program.index)
        if rows is None:
            return
        for slot in rows.recorded:
            if (slot in program.producer) == produced:
                self.head.append(f"w{program.index}_{slot} = R[{program.index}].columns[{slot}].pending")
                self._emit(f"w{program.index}_{slot}.append({self._value(slot)})")

    def _body(self, program: Program, context: Context) -> None:
        for position, instruction in enumerate(program.instructions):
            self.place = Place(context, position, "operation")
            match instruction.region:
                case None:
                    self._compute(instruction, program)
                case LoopRegion() as region:
                    self._inner_loop(region, context, position)
                case IfRegion() as region:
                    self._inner_if(region, context, position)
                case _:
                    raise AssertionError(instruction.title)

    def _compute(self, instruction: Instruction, program: Program) -> None:
        arguments = [self._value(slot) for slot in instruction.inputs]
        if instruction.variable is not None:
            self._variable(instruction, arguments[0])
            return
        if instruction.symbol == "{0}" and arguments[0] not in self.moving:
            # Another name for the same value, which nothing overwrites before the end of the iteration.
            self.names[instruction.outputs[0]] = arguments[0]
            return
        targets = [self._assign(slot) for slot in instruction.outputs]
        symbol = expression(instruction, self.values)
        if symbol and self.grows and not self.zeros.is_small(program.address, instruction.node.id, SMALL):
            symbol = guarded(instruction, self.values, symbol)
        if symbol:
            self._emit(f"{targets[0]} = {symbol.format(*arguments)}")
            return
        kernel = self._constant(f"k{instruction.outputs[0]}", bounded(instruction))
        if instruction.state is not None:
            state = self._value(instruction.state)
            arguments.append(f"state={state}")
            made = f"m, {state}"
        elif self._are_arrays(instruction):
            made = ", ".join([*targets, "*m"]) if instruction.several else targets[0]
            self._emit(f"{made} = {kernel}({', '.join(arguments)})")
            return
        else:
            made = "m"
        self._emit(f"{made} = {kernel}({', '.join(arguments)})")
        if instruction.settled:
            self._emit(f"{', '.join(targets)}, = m")
            return
        values = ["m"] if not instruction.several else [f"m[{number}]" for number in range(len(targets))]
        for target, value in zip(targets, values, strict=True):
            self._emit(f"{target} = {value} if {value}.ndim or {value}.dtype.char in 'OV' else {value}[()]")

    def _are_arrays(self, instruction: Instruction) -> bool:
        """Whether all outputs had a rank in the first iterations; one that loses it later is an array of rank 0: that computes the same."""
        return all(getattr(self.values[slot], "ndim", 0) for slot in instruction.outputs)

    def _variable(self, instruction: Instruction, given: str) -> None:
        assert instruction.variable is not None
        variable = self._value(instruction.variable)
        if instruction.title.startswith("Assign"):
            self._emit(f"{variable} = {given}")
            for slot in instruction.outputs:
                self._emit(f"{self._assign(slot)} = {variable}")
        else:
            self._emit(f"{self._assign(instruction.outputs[0])} = {given} if {variable} is None else {variable}")

    def _inner_loop(self, region: LoopRegion, outer: Context, position: int) -> None:
        t = region.table
        context = Context(region.program, region, None, outer, position)
        self._constant(f"K{t}", region)
        trips = "None" if region.trip_count is None else self._value(region.trip_count)
        sources = "".join(f"{self._value(sliced.source)}, " for sliced in region.sliced)
        self.head += [f"s{t} = 1", f"C{t} = T[{t}].counts.append", f"D{t} = T[{t}].endings.append"]
        fixed = self._fixed_bound(region, outer.program)
        if fixed is not None:
            self._emit(f"n{t} = {fixed}; w{t} = 'trip_count'; e{t} = {ENDINGS.index('trip_count')}; i{t} = 0")
        else:
            self._emit(f"n{t}, w{t} = bound(K{t}, {trips}, ({sources}))")
            self._emit(f"e{t} = E[w{t}]; i{t} = 0")
        if region.condition is not None and not self._is_true(outer.program, region.condition):
            self._emit(f"if n{t} and not truth({self._value(region.condition)}): n{t} = 0; e{t} = E['initial_condition']")
        self._emit(f"if n{t}:")
        self.indent += 1
        self._emit(f"if n{t} < 0: n{t} = BIG")
        self._enter_loop(region)
        self._core(region, context)
        self.place = Place(context, len(region.program.instructions), "join")
        self._leave_loop(region)
        self.indent -= 1
        self.place = Place(outer, position, "operation")
        self._emit("else:")
        for output in region.outputs:
            if isinstance(output, LastValue) and output.initial is not None:
                self._emit(f" V[{output.initial}] = {self._value(output.initial)}")
        targets = "".join(f"{self._assign(output.slot)}, " for output in region.outputs)
        self._emit(f" {f'{targets} = ' if targets else ''}M.zero_outputs(K{t})")
        self._emit(f"C{t}(i{t}); D{t}(e{t})")

    def _fixed_bound(self, region: LoopRegion, outer: Program) -> int | None:
        """The trip count of an inner loop where a constant gives it, and no slice may run out before."""
        if region.kind != "Loop" or region.sliced or region.trip_count is None:
            return None
        trips = self._constant_of(outer, region.trip_count)
        bound, ending = (0, "") if trips is None else iteration_bound(region, trips, ())
        return bound if ending == "trip_count" else None

    def _enter_loop(self, region: LoopRegion) -> None:
        t = region.table
        for parameter, source in region.invariants:
            if parameter in region.declared:
                self._emit(f"{self._assign(parameter)} = entering(K{t}, {parameter}, {self._value(source)})")
            else:
                self.names[parameter] = self._value(source)
        for carried in region.carried:
            initial = f"M.unfed(K{t}, {int(carried.layer)})" if carried.initial is None else self._value(carried.initial)
            if carried.parameter in region.declared and carried.initial is not None:
                initial = f"entering(K{t}, {carried.parameter}, {initial})"
            self._emit(f"{self._assign(carried.parameter)} = {initial}")
            self.moving.add(self.names[carried.parameter])
        for parameter, layer in region.unfed:
            self._emit(f"{self._assign(parameter)} = M.unfed(K{t}, {int(layer)})")
        number = 0
        for output in region.outputs:
            if isinstance(output, Concatenated):
                self._emit(f"c{t}_{number} = []; a{t}_{number} = c{t}_{number}.append")
                number += 1

    def _leave_loop(self, region: LoopRegion) -> None:
        t = region.table
        number = 0
        for output in region.outputs:
            if isinstance(output, Concatenated):
                constant = self._constant(f"J{t}_{number}", output)
                self._emit(f"{self._assign(output.slot)} = join({constant}, c{t}_{number})")
                number += 1
            else:
                self._emit(f"{self._assign(output.slot)} = {self._result(region, output.result)}")
        rows = self.ledger.rows.get(region.program.index)
        if rows is not None and rows.recorded:
            # Where the outer loop is slow to ask, what the inner one writes down would leave the processor's cache.
            self._emit(f"if len(w{region.program.index}_{next(iter(rows.recorded))}) > {_MOST_PENDING}: M.ledger.pack()")

    def _inner_if(self, region: IfRegion, outer: Context, position: int) -> None:
        t = region.table
        self.head.append(f"B{t} = T[{t}].pending")
        for test, taken, branch in ((f"if {self._value(region.condition)}:", 1, region.then), ("else:", 0, region.otherwise)):
            context = Context(branch.program, None, branch, outer, position)
            self.place = Place(outer, position, "operation")
            self._emit(test)
            self.indent += 1
            self._emit(f"B{t}.append({taken})")
            self.place = Place(context, 0, "begin")
            for parameter, source in branch.bindings:
                self.names[parameter] = self._value(source)
            for parameter, layer in branch.unfed:
                name = self._constant(f"K{branch.program.index}b", branch)
                self._emit(f"{self._assign(parameter)} = M.unfed({name}, {int(layer)})")
            self._record(branch.program, produced=False)
            self._body(branch.program, context)
            self.place = Place(context, len(branch.program.instructions), "operation")
            self._record(branch.program, produced=True)
            for slot, result in zip(region.outputs, branch.results, strict=False):
                self._emit(f"{self._assign(slot)} = {self._value(result)}")
            self.indent -= 1


def _function(text: str, constants: dict[str, Any]) -> FunctionType:
    module = compile(text, _FILE, "exec")
    code = next(constant for constant in module.co_consts if isinstance(constant, CodeType))
    return FunctionType(code, constants)
