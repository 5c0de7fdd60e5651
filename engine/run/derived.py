"""What needs no recording: all that is elementwise over recorded values is computed for thousands of iterations at once.

That holds for values, and for an If, its branch and all that is computed there, where everything follows from what is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.run.execute import computing_columns
from engine.run.fixed import expression, fixed_source
from engine.run.plan import Branch, Counter, IfRegion, Instruction, LoopRegion, Program, settle

SMALL = 512
"""Arrays of at most so many bytes are packed into one; larger ones are kept by reference."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """An If whose branch follows from its condition's column, and all values in its branches too."""

    number: int
    """Of the instruction."""
    region: IfRegion


@dataclass(slots=True, eq=False)
class Found:
    """Derived columns of some rows: values by slot, taken branches by table, the values in branches by program number."""

    columns: dict[int, Any] = field(default_factory=dict[int, Any])
    taken: dict[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])
    inside: dict[int, dict[int, Any]] = field(default_factory=dict[int, "dict[int, Any]"])


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """Instructions of a loop's body whose values follow, bit for bit, from recorded values, the iteration number and constants."""

    steps: tuple[Instruction | Choice, ...]
    counters: tuple[Counter, ...]
    outer: Mapping[int, Any]
    """Values from outside the body; the same in all rows."""
    slots: frozenset[int]
    needed: frozenset[int]
    """Recorded slots that they are computed from."""

    @property
    def choices(self) -> tuple[Choice, ...]:
        return tuple(step for step in self.steps if isinstance(step, Choice))

    def columns(self, recorded: Mapping[int, np.ndarray], rows: range) -> Found | None:
        """All that is derived at some rows, one along the first axis for each, from the columns of the recorded slots.

        None when the branches of an If give what does not fit into one column.
        """
        found = Found(dict(recorded))
        columns = found.columns
        for counter in self.counters:
            columns[counter.parameter] = np.arange(rows.start, rows.stop, rows.step, dtype=counter.element_type.dtype)
        with computing_columns():
            for step in self.steps:
                if isinstance(step, Instruction):
                    columns[step.outputs[0]] = self._column(step, columns, len(rows))
                elif not self._choose(step, found):
                    return None
        return found

    def _column(self, instruction: Instruction, columns: Mapping[int, np.ndarray], count: int) -> np.ndarray:
        assert instruction.kernel is not None
        ranks = [columns[slot].ndim - 1 if slot in columns else np.ndim(self.outer[slot]) for slot in instruction.inputs]
        rank = max(ranks)
        operands = [_lifted(columns[slot], rank) if slot in columns else self.outer[slot] for slot in instruction.inputs]
        made = np.asarray(instruction.kernel(*operands))
        return made if made.ndim == rank + 1 else np.broadcast_to(made, (count, *made.shape))

    def _choose(self, choice: Choice, found: Found) -> bool:
        region, columns = choice.region, found.columns
        taken = found.taken[region.table] = columns[region.condition].reshape(-1).astype(bool)
        made: list[tuple[np.ndarray, list[np.ndarray]]] = []
        for branch, places in ((region.then, np.flatnonzero(taken)), (region.otherwise, np.flatnonzero(~taken))):
            inside = {slot: columns[source][places] for slot, source in branch.bindings if source in columns}
            for instruction in branch.program.instructions:
                inside[instruction.outputs[0]] = self._column(instruction, inside, len(places))
            found.inside[branch.program.index] = inside
            made.append((places, [inside[slot] for slot in branch.results]))
        (then, thens), (otherwise, others) = made
        for slot, one, other in zip(region.outputs, thens, others, strict=False):
            if one.dtype != other.dtype or one.shape[1:] != other.shape[1:]:
                return False
            columns[slot] = np.empty((len(taken), *one.shape[1:]), one.dtype)
            columns[slot][then], columns[slot][otherwise] = one, other
        return True

    def one_by_one(self, recorded: Mapping[int, Any], rows: range) -> Found:
        """The same as ``columns``, row by row, whatever the shapes."""
        each = [self.values({slot: chunk[at] for slot, chunk in recorded.items()}, row) for at, row in enumerate(rows)]
        found = Found({slot: [known[slot] for known, _ in each] for slot in self.slots})
        for choice in self.choices:
            table = choice.region.table
            found.taken[table] = np.array([taken[table] for _, taken in each], bool)
            for branch, way in ((choice.region.then, True), (choice.region.otherwise, False)):
                inside = [known for known, taken in each if taken[table] is way]
                slots = [slot for instruction in branch.program.instructions for slot in instruction.outputs]
                found.inside[branch.program.index] = {slot: [known[slot] for known in inside] for slot in slots}
        return found

    def values(self, recorded: Mapping[int, Any], row: int) -> tuple[dict[int, Any], dict[int, bool]]:
        """The same for one row, whatever the shapes in it: values by slot (those of branches that were taken too), branches by table."""
        known: dict[int, Any] = {**self.outer, **recorded}
        taken: dict[int, bool] = {}
        for counter in self.counters:
            known[counter.parameter] = counter.number(row)
        with computing_columns():
            for step in self.steps:
                if isinstance(step, Instruction):
                    _compute(step, known)
                    continue
                taken[step.region.table] = bool(known[step.region.condition])
                branch = step.region.then if taken[step.region.table] else step.region.otherwise
                known |= {slot: known[source] for slot, source in branch.bindings if source in known}
                for instruction in branch.program.instructions:
                    _compute(instruction, known)
                known |= {slot: known[result] for slot, result in zip(step.region.outputs, branch.results, strict=False)}
        return known, taken


def _compute(instruction: Instruction, known: dict[int, Any]) -> None:
    assert instruction.kernel is not None
    known[instruction.outputs[0]] = settle(instruction.kernel(*[known[slot] for slot in instruction.inputs]))


def _lifted(column: np.ndarray, rank: int) -> np.ndarray:
    """A column whose rows have that rank, so that rows broadcast against rows."""
    missing = rank - (column.ndim - 1)
    return column.reshape(len(column), *[1] * missing, *column.shape[1:]) if missing else column


def derived(region: LoopRegion, values: list[Any], scalars: Mapping[int, np.dtype], kept: Mapping[int, frozenset[int]]) -> Derived | None:
    """What can be derived in a loop's body from the slots that are kept, judged by the values of its first iterations; None for nothing.

    ``scalars`` has the slots that hold numbers of one type in every row; ``kept`` the slots by program number, those of the
    branches in the body too.
    """
    return _Deriving(region, values, scalars, kept).derived()


def next_state(region: LoopRegion, values: list[Any], scalars: Mapping[int, np.dtype]) -> Derived | None:
    """What makes the carried state of the next iteration from that of an iteration, its number and invariant numbers, exactly on any
    machine; None where that takes more than Python's operators on numbers."""
    inner = (region.program.instructions[number].region for number in region.program.regions)
    programs = [region.program, *(program for one in inner if one for program in one.programs)]
    made = {program.index: frozenset(program.producer) for program in programs}
    return _NextState(region, values, scalars, made).next_state()


class _Deriving:
    def __init__(self, region: LoopRegion, values: list[Any], scalars: Mapping[int, np.dtype], kept: Mapping[int, frozenset[int]]) -> None:
        self.region = region
        self.program = program = region.program
        self.values = values
        self.scalars = scalars
        self.kept = kept
        self.mine = kept.get(program.index, frozenset())
        # The number of a row is that of the iteration only where the loop runs once.
        once = program.parent is not None and program.parent.parent is None
        self.counters = tuple(counter for counter in region.counters if once and not counter.shape)
        recorded = {slot for slot in self.mine - program.producer.keys() if self._is_small(slot)}
        self.known = {counter.parameter for counter in self.counters} | recorded
        self.exact = set(self.known)
        """Those that the operators of Python gave, or that are recorded: the same in any number of rows at once, on any machine."""
        self.outer: dict[int, Any] = {}
        self.steps: list[Instruction | Choice] = []

    def derived(self) -> Derived | None:
        self._walk()
        steps = self._worth_it(self.mine)
        if not steps:
            return None
        made = frozenset(slot for step in steps for slot in _outputs(step))
        slots = made & self.mine
        # Something must be recorded: it tells how many rows there are.
        if not self.mine - slots - self.program.producer.keys():
            return None
        used = frozenset(slot for step in steps for slot in inputs_of(step))
        return Derived(steps, self.counters, self.outer, slots, used & self.mine - slots)

    def _walk(self) -> None:
        """Finds all that can be derived."""
        for number, instruction in enumerate(self.program.instructions):
            if isinstance(instruction.region, IfRegion):
                self._choice(number, instruction.region)
            elif self._may_derive(self.program, instruction):
                self._add(instruction)
            else:
                self._recorded(instruction.outputs)

    def _recorded(self, outputs: Sequence[int]) -> None:
        """What cannot be derived is known all the same where it is recorded."""
        recorded = {slot for slot in outputs if slot in self.mine and self._is_small(slot)}
        self.known |= recorded
        self.exact |= recorded

    def _add(self, instruction: Instruction) -> None:
        self.steps.append(instruction)
        self.known.add(instruction.outputs[0])
        if "np." not in expression(instruction, self.values) and all(
            slot in self.exact or slot in self.outer for slot in instruction.inputs
        ):
            self.exact.add(instruction.outputs[0])

    def _choice(self, number: int, region: IfRegion) -> None:
        before = dict(self.outer)
        if self._is_whole(region):
            self.steps.append(Choice(number, region))
            self.known |= set(region.outputs)
            return
        self.outer = before
        self._recorded(region.outputs)

    def _is_whole(self, region: IfRegion) -> bool:
        """Whether all that an If does can be derived."""
        if region.condition not in self.exact or self.scalars.get(region.condition) != np.bool_ or not self.mine.issuperset(region.outputs):
            return False
        if not all(self._follows(branch) for branch in (region.then, region.otherwise)):
            return False
        return all(
            self.scalars[one] == self.scalars[other] for one, other in zip(region.then.results, region.otherwise.results, strict=True)
        )

    def _follows(self, branch: Branch) -> bool:
        """Whether all that a branch computes can be derived, and gives numbers."""
        program = branch.program
        outside = self.known
        self.known = {slot for slot, source in branch.bindings if source in outside}
        try:
            for instruction in program.instructions:
                if not self._may_derive(program, instruction) or instruction.outputs[0] not in self.kept.get(program.index, ()):
                    return False
                self.known.add(instruction.outputs[0])
            return all(slot in self.known and slot in self.scalars for slot in branch.results)
        finally:
            self.known = outside

    def _may_derive(self, program: Program, instruction: Instruction) -> bool:
        values = self.values
        if instruction.region is not None or not expression(instruction, values) or not self._is_small(instruction.outputs[0]):
            return False
        missing = [slot for slot in instruction.inputs if slot not in self.known]
        sources = [fixed_source(program, slot) for slot in missing]
        found = {slot: values[source] for slot, source in zip(missing, sources, strict=True) if source is not None}
        if len(found) < len(missing) or not all(_is_small(value) for value in found.values()):
            return False
        self.outer.update(found)
        return True

    def _is_small(self, slot: int) -> bool:
        return slot in self.scalars or _is_small(self.values[slot])

    def _worth_it(self, kept: Iterable[int]) -> tuple[Instruction | Choice, ...]:
        """The steps that give what is kept."""
        wanted = set(kept)
        steps: list[Instruction | Choice] = []
        for step in reversed(self.steps):
            if isinstance(step, Choice) or not wanted.isdisjoint(step.outputs):
                wanted.update(inputs_of(step))
                steps.append(step)
        return tuple(reversed(steps))


class _NextState(_Deriving):
    """Where nothing is recorded but what an execution of the loop begins with."""

    def next_state(self) -> Derived | None:
        given = [one.parameter for one in self.region.carried]
        given += [parameter for parameter, _ in self.region.invariants]
        self.known = {slot for slot in given if slot in self.scalars} | {one.parameter for one in self.region.counters if not one.shape}
        self.exact = set(self.known)
        self._walk()
        results = {one.result for one in self.region.carried}
        if not results <= self.known or not all(one.parameter in self.scalars for one in self.region.carried):
            return None
        return Derived(self._worth_it(results), (), self.outer, frozenset(), frozenset())

    def _recorded(self, outputs: Sequence[int]) -> None:
        pass

    def _may_derive(self, program: Program, instruction: Instruction) -> bool:
        return super()._may_derive(program, instruction) and "np." not in expression(instruction, self.values)


def _outputs(step: Instruction | Choice) -> Sequence[int]:
    return step.outputs if isinstance(step, Instruction) else step.region.outputs


def inputs_of(step: Instruction | Choice) -> list[int]:
    """The slots of the body that a step reads."""
    if isinstance(step, Instruction):
        return list(step.inputs)
    return [step.region.condition, *(source for branch in (step.region.then, step.region.otherwise) for _, source in branch.bindings)]


def _is_small(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.nbytes <= SMALL and value.dtype.names is None and value.dtype != object
    return isinstance(value, np.generic)
