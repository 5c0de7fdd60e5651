"""What of a plan has to run for some of its values, bodies included, and the plan that runs no more
than that.

The values that are needed, and what they are computed from: of a loop the condition and the back
edges that feed what is needed, to a fixed point, so that other carried variables and outputs go.
What decides how often a loop runs is always needed.
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
from loopscope.executor.plan.numbers import ProgramIndex, Slot, TableIndex
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
from loopscope.executor.plan.sharing import share
from loopscope.ir.model import TENSOR_ITERATOR

Wanted = tuple[Program, Slot]


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """The slots that must get values, and the instructions that run for them."""

    slots: frozenset[Slot]
    instructions: frozenset[tuple[ProgramIndex, int]]

    def keeps(self, program: Program, number: int) -> bool:
        return (program.index, number) in self.instructions


def needed(
    plan: Plan, wanted: Iterable[Wanted], given: Collection[Slot] = (), *, assigns: bool
) -> Need:
    """What some values need. ``given``: slots of the outermost graph whose values are not computed.
    ``assigns``: variables are assigned whether or not a value needs it, as OpenVINO does; otherwise
    only where something that is needed may read them afterwards.
    """
    search = _Search(plan, frozenset(given))
    for program, slot in wanted:
        search.want(program, slot)
    if assigns:
        search.running += search.assigns
    search.run()
    return Need(
        frozenset(search.slots),
        frozenset((program.index, number) for program, number in search.kept),
    )


def everything(plan: Plan) -> Need:
    """Nothing is left out."""
    numbers = (
        (program.index, number)
        for program in plan.programs
        for number in range(len(program.instructions))
    )
    return Need(frozenset(map(Slot, range(plan.slot_count))), frozenset(numbers))


@dataclass(eq=False)
class _Search:
    plan: Plan
    given: frozenset[Slot]
    slots: set[Slot] = field(default_factory=set[Slot])
    kept: set[tuple[Program, int]] = field(default_factory=set[tuple[Program, int]])
    asked: list[Wanted] = field(default_factory=list[Wanted])
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
            self.asked.append((program, slot))

    def run(self) -> None:
        while self.asked or self.running:
            if self.asked:
                self._look_up(*self.asked.pop())
            else:
                self._keep(*self.running.pop())

    def _look_up(self, program: Program, slot: Slot) -> None:
        """Where a value comes from."""
        if program.parent is not None:
            self.running.append((program.parent, program.owner))
        elif slot in self.given:
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
                for output in (one for one in region.outputs if one.slot == slot):
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
        """An instruction runs: what it needs whichever of its outputs is asked for."""
        if (program, number) in self.kept:
            return
        self.kept.add((program, number))
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
        for slot in (region.trip_count, region.condition, *(one.source for one in region.sliced)):
            self.want(program, slot)
        self.want(region.program, region.condition_result)
        if region.kind == TENSOR_ITERATOR and not region.sliced:
            for output in region.outputs:
                if isinstance(output, Concatenated) and output.start >= 0 and output.end >= 0:
                    self.want(program, output.slot)

    def _before(
        self, program: Program, number: int, reader: Instruction
    ) -> Iterator[tuple[Program, int]]:
        """The Assigns that may have run before a ReadValue of their variable."""
        again = any(one.loop is not None for one in program.around())
        for other, position in self.assigns:
            of_it = other.instructions[position].variable == reader.variable
            if of_it and (again or other is not program or position < number):
                yield other, position


def part_of(
    plan: Plan, need: Need, given: Collection[Slot] = (), fetched: Collection[Slot] = ()
) -> Plan:
    """The plan that runs only what is needed; slots mean what they mean in the whole plan. The very
    plan where nothing can go.

    ``given``: slots of the outermost graph whose values nothing overwrites. ``fetched``: slots
    whose values are kept to the end.
    """
    return (
        plan
        if not given and not fetched and _is_whole(plan, need)
        else _Part(plan, need, frozenset(given), frozenset(fetched)).plan()
    )


def _is_whole(plan: Plan, need: Need) -> bool:
    if len(need.instructions) < sum(len(program.instructions) for program in plan.programs):
        return False
    regions = [instruction.region for _, instruction in plan.regions]
    given = {
        slot
        for region in regions
        if isinstance(region, LoopRegion)
        for slot in (*(one.slot for one in region.outputs), *region.binding)
    }
    return need.slots.issuperset(
        given.union(
            *(region.outputs for region in regions if not isinstance(region, LoopRegion | None))
        )
    )


@dataclass(eq=False)
class _Part:
    whole: Plan
    need: Need
    given: frozenset[Slot]
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
        made = replace(
            whole,
            main=main,
            programs=tuple(self.programs),
            slot_count=whole.slot_count + 1,
            regions=tuple(self.tables),
            constant_slots=tuple(
                (slot, node)
                for slot, node in whole.constant_slots
                if slot in self.need.slots and slot not in self.given
            ),
            operations={
                (of[index], layer): one
                for (index, layer), one in whole.operations.items()
                if index in of
            },
            live=self.need.slots,
            removed=tuple(self.removed),
        )
        if whole.optimise.cse:
            share(made)
        return made

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
        made: list[Instruction] = []
        for number, instruction in enumerate(whole.instructions):
            if not self.need.keeps(whole, number):
                self.removed.append(f"{whole.address}/{instruction.label}")
            elif instruction.region is None:
                outputs = tuple(
                    Slot(self.whole.slot_count) if slot in self.given else slot
                    for slot in instruction.outputs
                )
                made.append(replace(instruction, outputs=outputs, same_as=()))
            else:
                made.append(self._region(program, len(made), instruction, instruction.region))
        program.instructions = tuple(made)
        program.regions = tuple(
            number for number, instruction in enumerate(made) if instruction.region
        )

    def _region(
        self, program: Program, number: int, instruction: Instruction, region: Region
    ) -> Instruction:
        live, table = self.need.slots - self.given, TableIndex(len(self.tables))
        inner = [self._open(one, program, number) for one in region.programs]
        made: Region
        match region:
            case LoopRegion():
                made = replace(
                    region,
                    program=inner[0],
                    invariants=tuple(one for one in region.invariants if one.parameter in live),
                    carried=tuple(one for one in region.carried if one.parameter in live),
                    counters=tuple(one for one in region.counters if one.parameter in live),
                    unfed=tuple(one for one in region.unfed if one.parameter in live),
                    outputs=tuple(one for one in region.outputs if one.slot in live),
                    table=table,
                )
            case IfRegion() | CallRegion():
                kept = [number for number, slot in enumerate(region.outputs) if slot in live]
                branches = [
                    self._branch(one, program, kept)
                    for one, program in zip(_branches(region), inner, strict=True)
                ]
                outputs = tuple(region.outputs[number] for number in kept)
                if isinstance(region, IfRegion):
                    made = replace(
                        region,
                        then=branches[0],
                        otherwise=branches[1],
                        outputs=outputs,
                        table=table,
                    )
                else:
                    made = replace(region, branch=branches[0], outputs=outputs, table=table)
        outputs = tuple(slot for slot in instruction.outputs if slot in live)
        cut = replace(instruction, outputs=outputs, region=made)
        self.tables.append((program, cut))
        return cut

    def _branch(self, branch: Branch, program: Program, kept: list[int]) -> Branch:
        live = self.need.slots
        return replace(
            branch,
            program=program,
            bindings=tuple(
                (parameter, outer) for parameter, outer in branch.bindings if parameter in live
            ),
            unfed=tuple(one for one in branch.unfed if one.parameter in live),
            results=tuple(
                branch.results[number] for number in kept if number < len(branch.results)
            ),
        )


def _branches(region: IfRegion | CallRegion) -> tuple[Branch, ...]:
    return (region.then, region.otherwise) if isinstance(region, IfRegion) else (region.branch,)
