"""Pruning: the part of a plan that some of its values need, bodies included, and the plan that runs
only this part.

A requested value needs the values it is computed from. A loop needs its condition and those back
edges that feed a needed value, computed to a fixed point; other carried values and outputs are
removed. The inputs that decide the iteration count are always needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from loopscope.executor.plan.body_ports import (
    CarriedValue,
    Concatenated,
    Invariant,
    LastValue,
    Sliced,
)
from loopscope.executor.plan.computed_once import share
from loopscope.executor.plan.plan import (
    ABSENT,
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Plan,
    Program,
    Region,
    find_hidden,
)
from loopscope.executor.plan.slots import ProgramIndex, Slot, TableIndex
from loopscope.ir.model import TENSOR_ITERATOR

Wanted = tuple[Program, Slot]


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """Slots that must get values, and the instructions that run for them."""

    slots: frozenset[Slot]
    instructions: frozenset[tuple[ProgramIndex, int]]

    def keeps(self, program: Program, number: int) -> bool:
        return (program.index, number) in self.instructions


def needed(
    plan: Plan, wanted: Iterable[Wanted], feeds: Collection[Slot] = (), *, assigns: bool
) -> Need:
    """Return what some values need.

    ``feeds`` are slots of the outermost graph whose values are not computed. With ``assigns`` all
    variables are assigned, as in OpenVINO. Otherwise a variable is assigned only if a needed value
    may read it later.
    """
    search = _Search(plan, frozenset(feeds))
    for program, slot in wanted:
        search.want(program, slot)
    if assigns:
        search.running += search.assigns
    search.run()
    return Need(
        frozenset(search.slots),
        frozenset((program.index, number) for program, number in search.instructions),
    )


def everything(plan: Plan) -> Need:
    """Return the need of a whole plan, which prunes nothing."""
    numbers = (
        (program.index, number)
        for program in plan.programs
        for number in range(len(program.instructions))
    )
    return Need(frozenset(map(Slot, range(plan.slot_count))), frozenset(numbers))


@dataclass(eq=False)
class _Search:
    plan: Plan
    feeds: frozenset[Slot]
    slots: set[Slot] = field(default_factory=set[Slot])
    instructions: set[tuple[Program, int]] = field(default_factory=set[tuple[Program, int]])
    pending: list[Wanted] = field(default_factory=list[Wanted])
    running: list[tuple[Program, int]] = field(default_factory=list[tuple[Program, int]])

    @property
    def assigns(self) -> list[tuple[Program, int]]:
        return [
            (program, number)
            for program in self.plan.programs
            if program.hidden
            for number, instruction in enumerate(program.instructions)
            if instruction.assigns
        ]

    def want(self, program: Program, slot: Slot | None) -> None:
        if slot is not None and slot != ABSENT and slot not in self.slots:
            self.slots.add(slot)
            self.pending.append((program, slot))

    def run(self) -> None:
        while self.pending or self.running:
            if self.pending:
                self._look_up(*self.pending.pop())
            else:
                self._keep(*self.running.pop())

    def _look_up(self, program: Program, slot: Slot) -> None:
        """Follow a slot back to its source."""
        if program.parent is not None:
            self.running.append((program.parent, program.owner))
        elif slot in self.feeds:
            return
        number = program.producer.get(slot)
        if number is not None:
            self.running.append((program, number))
            self._output(program, program.instructions[number].region, slot)
        elif program.parent is not None and slot in program.parameter_slots:
            self._parameter(program, program.parent, slot)

    def _output(self, program: Program, region: Region | None, slot: Slot) -> None:
        match region:
            case LoopRegion():
                for output in (port for port in region.outputs if port.slot == slot):
                    self.want(region.program, output.result)
                    if isinstance(output, LastValue):
                        self.want(program, output.initial)
                        self.want(region.program, output.carried_without_initial)
            case IfRegion() | CallRegion():
                for branch in _branches(region):
                    for output_slot, result in zip(region.outputs, branch.results, strict=False):
                        self.want(branch.program, result if output_slot == slot else None)
            case None:
                pass

    def _parameter(self, program: Program, parent: Program, slot: Slot) -> None:
        if program.branch is not None:
            self.want(parent, dict(program.branch.bindings).get(slot))
        elif program.loop is not None:
            match program.loop.binding.get(slot):
                case CarriedValue() as carried:
                    self.want(parent, carried.initial)
                    self.want(program, carried.result)
                case Invariant() | Sliced() as bound:
                    self.want(parent, bound.source)
                case _:
                    pass

    def _keep(self, program: Program, number: int) -> None:
        """Add an instruction, and the inputs that it needs for any of its outputs."""
        if (program, number) in self.instructions:
            return
        self.instructions.add((program, number))
        if program.parent is not None:
            self.running.append((program.parent, program.owner))
        instruction = program.instructions[number]
        match instruction.region:
            case LoopRegion() as region:
                self._enter_loop(program, region)
            case IfRegion() as region:
                self.want(program, region.condition)
            case CallRegion():
                pass
            case None:
                for slot in instruction.inputs:
                    self.want(program, slot)
                if instruction.variable is not None and not instruction.assigns:
                    self.running += self._before(program, number, instruction)

    def _enter_loop(self, program: Program, region: LoopRegion) -> None:
        for slot in (region.trip_count, region.condition, *(port.source for port in region.sliced)):
            self.want(program, slot)
        self.want(region.program, region.condition_result)
        if region.kind == TENSOR_ITERATOR and not region.sliced:
            for output in region.outputs:
                if isinstance(output, Concatenated) and output.start >= 0 and output.end >= 0:
                    self.want(program, output.slot)

    def _before(
        self, program: Program, number: int, reader: Instruction
    ) -> Iterator[tuple[Program, int]]:
        """Yield the Assigns that may have run before a ReadValue of their variable."""
        repeats = any(graph.loop is not None for graph in program.around())
        for program_of_assign, position in self.assigns:
            is_same_variable = program_of_assign.instructions[position].variable == reader.variable
            if is_same_variable and (
                repeats or program_of_assign is not program or position < number
            ):
                yield program_of_assign, position


def part_of(
    plan: Plan, need: Need, feeds: Collection[Slot] = (), fetched: Collection[Slot] = ()
) -> Plan:
    """Return the plan that runs only what is needed, with unchanged slot numbers; ``plan`` itself
    if nothing can be removed.

    ``feeds`` are slots of the outermost graph that no instruction may overwrite. ``fetched`` are
    slots whose values are stored to the end.
    """
    return (
        plan
        if not feeds and not fetched and _is_whole(plan, need)
        else _Part(plan, need, frozenset(feeds), frozenset(fetched)).plan()
    )


def _is_whole(plan: Plan, need: Need) -> bool:
    if len(need.instructions) < sum(len(program.instructions) for program in plan.programs):
        return False
    regions = [instruction.region for _, instruction in plan.regions]
    slots = {
        slot
        for region in regions
        if isinstance(region, LoopRegion)
        for slot in (*(output.slot for output in region.outputs), *region.binding)
    }
    return need.slots.issuperset(
        slots.union(
            *(region.outputs for region in regions if not isinstance(region, LoopRegion | None))
        )
    )


@dataclass(eq=False)
class _Part:
    whole: Plan
    need: Need
    feeds: frozenset[Slot]
    fetched: frozenset[Slot]
    programs: list[Program] = field(default_factory=list[Program])
    wholes: list[Program] = field(default_factory=list[Program])
    tables: list[tuple[Program, Instruction]] = field(
        default_factory=list["tuple[Program, Instruction]"]
    )
    removed: list[str] = field(default_factory=list[str])

    def plan(self) -> Plan:
        whole = self.whole
        main = self._open(whole.main, None, 0)
        main.fetched = self.fetched
        done = 0
        while done < len(self.programs):
            self._fill(self.programs[done], self.wholes[done])
            done += 1
        find_hidden(self.programs)
        of = {old.index: new.index for old, new in zip(self.wholes, self.programs, strict=True)}
        pruned = replace(
            whole,
            main=main,
            programs=tuple(self.programs),
            slot_count=whole.slot_count + 1,
            regions=tuple(self.tables),
            constant_slots=tuple(
                (slot, node)
                for slot, node in whole.constant_slots
                if slot in self.need.slots and slot not in self.feeds
            ),
            operations={
                (of[index], layer): operation
                for (index, layer), operation in whole.operations.items()
                if index in of
            },
            live=self.need.slots,
            removed=tuple(self.removed),
        )
        if whole.optimise.cse:
            share(pruned)
        return pruned

    def _open(self, whole: Program, parent: Program | None, owner: int) -> Program:
        live = self.need.slots
        parameters = {
            layer: slot
            for layer, slot in whole.parameters.items()
            if parent is None or slot in live
        }
        results = {layer: slot for layer, slot in whole.results.items() if slot in live}
        index = ProgramIndex(len(self.programs))
        program = Program(
            whole.address,
            index,
            parent,
            owner,
            (),
            parameters,
            results,
            whole.slots,
            whole.layer_of_label,
        )
        self.programs.append(program)
        self.wholes.append(whole)
        return program

    def _fill(self, program: Program, whole: Program) -> None:
        instructions: list[Instruction] = []
        for number, instruction in enumerate(whole.instructions):
            if not self.need.keeps(whole, number):
                self.removed.append(f"{whole.address}/{instruction.label}")
            elif instruction.region is None:
                outputs = tuple(
                    Slot(self.whole.slot_count) if slot in self.feeds else slot
                    for slot in instruction.outputs
                )
                instructions.append(replace(instruction, outputs=outputs, same_as=()))
            else:
                instructions.append(
                    self._region(program, len(instructions), instruction, instruction.region)
                )
        program.instructions = tuple(instructions)
        program.regions = tuple(
            number for number, instruction in enumerate(instructions) if instruction.region
        )

    def _region(
        self, program: Program, number: int, instruction: Instruction, region: Region
    ) -> Instruction:
        live, table = self.need.slots - self.feeds, TableIndex(len(self.tables))
        inner = [self._open(port, program, number) for port in region.programs]
        pruned: Region
        match region:
            case LoopRegion():
                pruned = replace(
                    region,
                    program=inner[0],
                    invariants=tuple(port for port in region.invariants if port.parameter in live),
                    carried=tuple(port for port in region.carried if port.parameter in live),
                    counters=tuple(port for port in region.counters if port.parameter in live),
                    unfed=tuple(port for port in region.unfed if port.parameter in live),
                    outputs=tuple(port for port in region.outputs if port.slot in live),
                    table=table,
                )
            case IfRegion() | CallRegion():
                live_outputs = [
                    number for number, slot in enumerate(region.outputs) if slot in live
                ]
                branches = [
                    self._branch(port, program, live_outputs)
                    for port, program in zip(_branches(region), inner, strict=True)
                ]
                outputs = tuple(region.outputs[number] for number in live_outputs)
                if isinstance(region, IfRegion):
                    pruned = replace(
                        region,
                        then=branches[0],
                        otherwise=branches[1],
                        outputs=outputs,
                        table=table,
                    )
                else:
                    pruned = replace(region, branch=branches[0], outputs=outputs, table=table)
        outputs = tuple(slot for slot in instruction.outputs if slot in live)
        cut = replace(instruction, outputs=outputs, region=pruned)
        self.tables.append((program, cut))
        return cut

    def _branch(self, branch: Branch, program: Program, live_outputs: list[int]) -> Branch:
        live = self.need.slots
        return replace(
            branch,
            program=program,
            bindings=tuple(
                (parameter, outer) for parameter, outer in branch.bindings if parameter in live
            ),
            unfed=tuple(port for port in branch.unfed if port.parameter in live),
            results=tuple(
                branch.results[number] for number in live_outputs if number < len(branch.results)
            ),
        )


def _branches(region: IfRegion | CallRegion) -> tuple[Branch, ...]:
    return (region.then, region.otherwise) if isinstance(region, IfRegion) else (region.branch,)
