"""Functions of whole graphs: the outermost graph of a run for outputs only, with its Ifs and called
functions.

A loop, and an If or function that contains one, is a call of ``run_region``, which steps or
generates it like any loop. Stepping continues at the instruction where the function fails, is
stopped, or computes a large result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from loopscope.executor.codegen import source_map
from loopscope.executor.codegen.emit_loop import Writer
from loopscope.executor.codegen.emit_operation import Computing
from loopscope.executor.codegen.slot_proofs import (
    bounded,
    element_types_of_graph,
    fits,
    numbers_of_graph,
)
from loopscope.executor.codegen.source_map import (
    MADE,
    ROWS,
    RUN,
    TABLES,
    VALUES,
    CodePlace,
    Context,
    Loop,
)
from loopscope.executor.codegen.tiering import restore_frames, write_variables
from loopscope.executor.machine.execute import LARGE, SMALL, describe
from loopscope.executor.machine.limits import Paused
from loopscope.executor.machine.machine import SECONDS_BETWEEN_CHECKS, Failure, Machine
from loopscope.executor.machine.regions import then_is_taken
from loopscope.executor.plan.computed_once import FoldedKernel
from loopscope.executor.plan.expressions import expression
from loopscope.executor.plan.plan import (
    ABSENT,
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    Plan,
    Program,
    Region,
)
from loopscope.executor.plan.slots import Slot, settle
from loopscope.ops.kernel_checks import TooLarge

STEPPED_RUNS = 3
"""Number of runs of a plan that are stepped before its graph gets a function.

Generating code for an operation takes as long as stepping it some times.
"""
_MAX_DEPTH = 24
"""Maximum number of nested Ifs and functions in one function."""
_MAX_INSTRUCTIONS = 20_000
_EXPRESSIONS_BETWEEN_CHECKS = 8
_MAX_FUNCTIONS = 8
"""Maximum number of functions per plan: one for each combination of input types."""

_EntryTypes = tuple[tuple[np.dtype | None, bool], ...]


@dataclass(slots=True, eq=False)
class _GraphCode:
    """Functions of the outermost graph of a plan."""

    is_possible: bool
    runs: int = 0
    functions: dict[_EntryTypes, Loop] = field(default_factory=dict[_EntryTypes, Loop])


_CODE: WeakKeyDictionary[Plan, _GraphCode] = WeakKeyDictionary()


def functions(plan: Plan) -> list[Loop]:
    """Return the functions generated so far for the outermost graph of a plan."""
    code = _CODE.get(plan)
    return list(code.functions.values()) if code else []


class _LargeResult(Exception):
    """Signal that stepping must compute an operation, because its result counts towards the memory
    limit.
    """


def run(machine: Machine, run_region: Callable[[Machine], None]) -> None:
    """Run the outermost graph from its begin in generated code, if a function is worthwhile.

    ``run_region`` runs the next region of the outermost graph to its end. ``Paused`` and
    ``Failure`` leave the machine at the instruction where they occur.
    """
    code = _code_of(machine)
    if code is None:
        return
    function = _function(machine, code, run_region)
    machine.last = None
    frame = machine.frames[0]
    try:
        function.function(machine)
    except (Paused, Failure) as stop:
        _leave(machine, function, stop)
        raise
    except Exception as error:
        instruction = _leave(machine, function, error)
        if isinstance(error, (TooLarge, _LargeResult)):
            code.is_possible = False
            return
        if instruction is None:
            raise
        raise machine.failed(describe(instruction, machine.values, error), error) from error
    frame.position = len(frame.program.instructions)
    machine.state = "finished"


def _code_of(machine: Machine) -> _GraphCode | None:
    """Return the code of a plan whose graph may run in generated code now, and count the run."""
    plan = machine.plan
    if machine.keeps or machine.overrides.items or machine.frames[-1].position:
        return None
    code = _CODE.get(plan)
    if code is None:
        code = _CODE[plan] = _GraphCode(can_generate(plan))
    code.runs += 1
    return code if code.is_possible and code.runs > STEPPED_RUNS else None


def can_generate(plan: Plan) -> bool:
    """Return True if one function can hold the graph, and no region outside it has a hidden
    state.
    """
    waiting, total = [(plan.main, 1)], 0
    while waiting:
        program, depth = waiting.pop()
        total += len(program.instructions)
        if total > _MAX_INSTRUCTIONS or depth > _MAX_DEPTH:
            return False
        for number in program.regions:
            region = program.instructions[number].region
            assert region is not None
            if _is_inline(region):
                waiting += [(inner, depth + 1) for inner in region.programs]
            elif any(inner.hidden for inner in region.programs):
                return False
    return bool(plan.main.instructions) and not plan.lacks_weights


def _is_inline(region: Region) -> bool:
    """Return True if a region is an If or a function without loops."""
    waiting = [region]
    while waiting:
        inner = waiting.pop()
        if not isinstance(inner, (IfRegion, CallRegion)):
            return False
        for program in inner.programs:
            for number in program.regions:
                nested = program.instructions[number].region
                assert nested is not None
                waiting.append(nested)
    return True


def _function(machine: Machine, code: _GraphCode, run_region: Callable[[Machine], None]) -> Loop:
    entering = [machine.values[slot] for slot in machine.plan.main.parameters.values()]
    types = tuple(
        [(getattr(value, "dtype", None), getattr(value, "ndim", 0) > 0) for value in entering]
    )
    function = code.functions.get(types)
    if function is None:
        if len(code.functions) >= _MAX_FUNCTIONS:
            code.functions.clear()
        function = code.functions[types] = _GraphWriter.of(machine).graph(run_region)
    return function


def _leave(machine: Machine, function: Loop, error: BaseException) -> Instruction | None:
    """Write the variables of the function into the machine. Return the instruction that ran."""
    place, variables = write_variables(machine, function, error)
    if place is None:
        return None
    instruction = place.context.program.instructions[place.position]
    region = instruction.region
    if region is None or _is_inline(region):
        restore_frames(machine, function, place, variables)
    return instruction


def _look(machine: Machine) -> float:
    """Check the limits and the stop request. Return the time of the next check."""
    machine.control.check(machine.recording.bytes)
    return perf_counter() + SECONDS_BETWEEN_CHECKS


class _GraphWriter(Writer):
    """Writer of the function of an outermost graph, for the types of its inputs."""

    plan: Plan
    known: dict[Slot, Any]
    """Values of Consts and of folded operations, by slot."""
    types: Mapping[Slot, np.dtype]
    """Element types of the slots that hold tensors of one type in every run."""
    _unchecked: int = 0
    """Number of expressions since the last check of the clock."""
    _owners: defaultdict[str, set[Slot]]
    """Slots of the outermost graph that are still read, by variable."""
    _published: set[Slot]
    """Slots that the function has written into the machine, or read from it."""

    @staticmethod
    def of(machine: Machine) -> _GraphWriter:
        plan = machine.plan
        values: list[Any] = list(machine.values)
        numbers = numbers_of_graph(plan, values, _is_inline)
        types = element_types_of_graph(plan, values, _is_inline)
        for slot, dtype in {**types, **numbers}.items():
            if values[slot] is None:  # stands for the values that the slot may hold
                values[slot] = dtype.type(0) if slot in numbers else np.empty(0, dtype)
        computing = Computing(machine.overrides, values, numbers, machine.defaults, grows=True)
        writer = _GraphWriter(machine.recording, computing, numbers)
        writer.plan, writer.known, writer.types = plan, dict(plan.constant), types
        writer._owners, writer._published = defaultdict(set), set()
        return writer

    def graph(self, run_region: Callable[[Machine], None]) -> Loop:
        """Return the function."""
        main = self.plan.main
        self.constants |= {"then_is_taken": then_is_taken, "fits": fits, "settle": settle}
        self.constants |= {"clock": perf_counter, "look": _look, "run_region": run_region}
        self.constants |= {"LargeResult": _LargeResult}
        self._body(main, Context(main, None, None, None, 0))
        returned = dict.fromkeys([*main.results.values(), *main.fetched, *main.hidden])
        for slot in returned:
            if slot != ABSENT and slot not in main.parameter_slots:
                self.tail.append(f"{VALUES}[{slot}] = {self.value(slot)}")
        start = [f"def graph({RUN}):", f"{VALUES} = {RUN}.values"]
        start += [f"{ROWS} = {RUN}.recording.rows", f"{TABLES} = {RUN}.recording.tables"]
        return self.function([*start, f"due = look({RUN})"], "return None")

    def imported(self, slot: Slot) -> str:
        if slot in self.known:
            return self.names.setdefault(
                slot, self.constant(source_map.known_of(slot), self.known[slot])
            )
        return super().imported(slot)

    def _body(self, program: Program, context: Context) -> None:
        for position, instruction in enumerate(program.instructions):
            self.place = CodePlace(context, position, "operation")
            match instruction.region:
                case None:
                    self._operation(instruction, program)
                case IfRegion() as region if _is_inline(region):
                    self._inner_if(region, context, position)
                case CallRegion() as region if _is_inline(region):
                    inside = Context(region.branch.program, None, region.branch, context, position)
                    self._branch(region, region.branch, inside)
                case _:
                    self._outside(instruction, position)
            self.place = CodePlace(context, position, "operation")
            if program.parent is None:
                self._drop(program, position)

    def _branch(self, region: IfRegion | CallRegion, branch: Branch, context: Context) -> None:
        for parameter, source in branch.bindings:
            if source in self.known:
                self.known[parameter] = self.known[source]
        self._unchecked = _EXPRESSIONS_BETWEEN_CHECKS
        super()._branch(region, branch, context)
        self._unchecked = _EXPRESSIONS_BETWEEN_CHECKS

    def _operation(self, instruction: Instruction, program: Program) -> None:
        slots = (*instruction.inputs, *instruction.outputs)
        is_number = not instruction.checked and all(slot in self.numbers for slot in slots)
        is_name = instruction.same_as or instruction.is_identity or instruction.variable is not None
        if is_name or (is_number and not self._fold(instruction)):
            self.computing.compute(self, instruction, program)
        elif not is_number and not self._fold(instruction):
            if self._is_expression(instruction):
                self._array_expression(instruction, program)
            else:
                self._check_clock()
                self._call(instruction)

    def _check_clock(self) -> None:
        self._unchecked = 0
        self.emit(f"if clock() > due: due = look({RUN})")

    def _is_expression(self, instruction: Instruction) -> bool:
        """Return True if a Python expression computes an operation for the types of its inputs."""
        return (
            not instruction.checked
            and not isinstance(instruction.call, FoldedKernel)
            and all(slot in self.types for slot in instruction.inputs)
            and bool(expression(instruction, self.computing.values))
        )

    def _array_expression(self, instruction: Instruction, program: Program) -> None:
        """Emit an expression on arrays. Results smaller than ``LARGE`` take milliseconds, so that a
        check of the clock serves several expressions.
        """
        self._unchecked += 1
        if self._unchecked >= _EXPRESSIONS_BETWEEN_CHECKS:
            self._check_clock()
        self.computing.compute(self, instruction, program)
        target = self.value(instruction.outputs[0])
        self.emit(f"if {target}.nbytes >= {LARGE}: raise LargeResult")

    def _fold(self, instruction: Instruction) -> bool:
        """Use the stored outputs of a folded operation. Return False if none are stored."""
        call = instruction.call
        if not isinstance(call, FoldedKernel) or not all(
            slot in self.known for slot in instruction.inputs
        ):
            return False
        stored = call.stored_outputs(tuple(self.known[slot] for slot in instruction.inputs))
        if stored is None:
            return False
        outputs = stored if instruction.several else (stored,)
        for slot, value in zip(instruction.outputs, outputs, strict=False):
            self.known[slot] = value
            self.inlined.add(slot)
        return True

    def _call(self, instruction: Instruction) -> None:
        """Emit the call of a kernel, and the checks that its result needs."""
        arguments = [self.value(slot) for slot in instruction.inputs]
        targets = [self.assigned(slot) for slot in instruction.outputs]
        call = bounded(instruction) if instruction.checked else instruction.call
        kernel = self.constant(source_map.kernel_of(instruction.outputs[0]), call)
        is_settled = instruction.settled
        if instruction.state is not None:
            state = self.value(instruction.state)
            self.emit(f"{MADE}, {state} = {kernel}({', '.join([*arguments, f'state={state}'])})")
            result = MADE
        else:
            result = f"{kernel}({', '.join(arguments)})"
        if instruction.broadcasts and not instruction.checked:
            sizes = [name for name in arguments if name != "None"]
            product = "*".join(f"{name}.size" for name in sizes)
            result = f"({result} if {product} <= {SMALL} or fits({', '.join(sizes)}) else None)"
        if not instruction.several:
            self.emit(f"{targets[0]} = {result}")
        elif len(targets) == 1:
            self.emit(f"{targets[0]} = {result}[0]")
        else:
            self.emit(f"{MADE} = {result}")
            self.emit(f"{', '.join(targets)}, = {MADE}[:{len(targets)}]")
        for target in targets:
            if not is_settled:
                self.emit(f"if not {target}.ndim: {target} = settle({target})")
            size = (
                f"{target}.nbytes"
                if instruction.only_tensors and not instruction.checked
                else f"getattr({target}, 'nbytes', 0)"
            )
            self.emit(f"if {size} >= {LARGE}: raise LargeResult")

    def _outside(self, instruction: Instruction, position: int) -> None:
        """Emit the call that runs a region outside the function."""
        for slot in dict.fromkeys(instruction.inputs):
            if slot != ABSENT and slot not in self.plan.constant_numbers:
                self.emit(f"{VALUES}[{slot}] = {self.value(slot)}")
        self.emit(f"{RUN}.frames[0].position = {position}")
        self.emit(f"run_region({RUN})")
        for slot in instruction.outputs:
            self.emit(f"{self.assigned(slot)} = {VALUES}[{slot}]")
        self._published.update((*instruction.inputs, *instruction.outputs))

    def _drop(self, program: Program, position: int) -> None:
        """Delete the variables that nothing reads after an instruction."""
        imported = {source_map.of_slot(slot) for slot in self.read_slots}
        for slot in program.instructions[position].outputs:
            if slot not in self.known:
                self._owners[self.value(slot)].add(slot)
        for slot in program.done_with[position]:
            if slot in self._published:
                self.emit(f"{VALUES}[{slot}] = None")
            if slot not in self.known:
                name = self.names[slot]
                self._owners[name].discard(slot)
                if not self._owners[name] and name not in self.constants.keys() | imported:
                    self.emit(f"del {name}")
