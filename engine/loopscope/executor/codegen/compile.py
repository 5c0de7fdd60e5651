"""Generated code: a nest of loops as one Python function over local variables, made from the same
plan that stepping interprets.

Which loops may have one, and which function fits what a recording records and what enters the body;
``emit_loop.py`` writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from loopscope.executor.codegen.emit_loop import Writer
from loopscope.executor.codegen.emit_operation import Computing
from loopscope.executor.codegen.shape_proofs import grows
from loopscope.executor.codegen.source_map import Loop
from loopscope.executor.codegen.type_proofs import scalar_types
from loopscope.executor.machine.regions import loops_in
from loopscope.executor.plan.defaults import Defaults
from loopscope.executor.plan.numbers import ProgramIndex, Slot, TableIndex
from loopscope.executor.plan.overrides import Overrides
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Plan, Program
from loopscope.executor.record.recording import Recording

_MOST_NESTED_LOOPS = 8
"""CPython refuses more than 20 nested blocks in one function; a loop takes two."""
_MOST_NESTED_REGIONS = 24
_MOST_INSTRUCTIONS = 20_000
_MOST_GENERATED = 1000
"""Functions that a plan keeps; one that runs with ever other shapes begins anew."""


def can_generate(region: LoopRegion) -> bool:
    """Whether a nest is shallow and small enough for one function; what is deeper is interpreted
    from outside in.
    """
    deepest_loops, total = 0, 0
    waiting: list[tuple[Program, int, int]] = [(region.program, 1, 1)]
    while waiting:
        program, loops, regions = waiting.pop()
        deepest_loops = max(deepest_loops, loops)
        total += len(program.instructions)
        if (
            deepest_loops > _MOST_NESTED_LOOPS
            or regions > _MOST_NESTED_REGIONS
            or total > _MOST_INSTRUCTIONS
        ):
            return False
        for number in program.regions:
            inner = program.instructions[number].region
            if not isinstance(inner, (LoopRegion, IfRegion)):
                return False
            waiting.extend(
                (one, loops + isinstance(inner, LoopRegion), regions + 1) for one in inner.programs
            )
    return True


@dataclass(frozen=True, slots=True)
class _Entry:
    """A loop, and the types of what enters its body."""

    table: TableIndex
    types: tuple[tuple[np.dtype | None, bool], ...]
    """Of each Parameter its element type, and whether it has ranks."""


@dataclass(frozen=True, slots=True)
class _Use:
    """What a generated function is good for."""

    entry: _Entry
    recorded: tuple[tuple[ProgramIndex, tuple[Slot, ...]], ...]
    """The recorded slots of each graph, by program number."""
    grows: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Code:
    """What was generated for the loops of one plan, or of one that a person has set values in,
    and what led to it.
    """

    loops: dict[_Use, Loop] = field(default_factory=dict[_Use, Loop])
    scalars: dict[_Entry, Mapping[Slot, np.dtype]] = field(
        default_factory=dict[_Entry, Mapping[Slot, np.dtype]]
    )
    stepped: Counter[TableIndex] = field(default_factory=Counter[TableIndex])
    """Of each loop how many iterations after the first of an execution were stepped through."""


_CODE: WeakKeyDictionary[Plan | Overrides, _Code] = WeakKeyDictionary()


def _code_of(overrides: Overrides) -> _Code:
    return _CODE.setdefault(overrides if overrides.items else overrides.plan, _Code())


def loop(
    overrides: Overrides,
    region: LoopRegion,
    recording: Recording,
    values: list[Any],
    defaults: Defaults,
    safepoint: Callable[..., int],
) -> Loop:
    """The generated function of a loop for what a recording records; made once for each plan,
    recording and types of what enters the body.

    ``values`` are those after its first iterations: what follows from element types is fixed, what
    follows from ranks is only a guess at what is worth a line. ``safepoint`` is what it calls
    between two iterations.
    """
    recorded = tuple((index, tuple(rows.columns)) for index, rows in recording.rows.items())
    use = _Use(_Entry(region.table, _entering(region, values)), recorded, grows(region, values))
    loops = _code_of(overrides).loops
    made = loops.get(use)
    if made is None:
        if len(loops) > _MOST_GENERATED:
            loops.clear()
        proved = scalars(overrides, region, values)
        computing = Computing(overrides, values, proved, defaults, use.grows)
        made = loops[use] = Writer(region, recording, computing, proved).loop(safepoint)
        made.scalars = tuple(
            (index, slot, proved[slot])
            for index, slots in recorded
            for slot in slots
            if slot in proved
        )
    return made


def stepped_again(overrides: Overrides, region: LoopRegion) -> int:
    """Counts one more iteration of a loop that was stepped through, and says how many of its
    nest were, in all runs of its plan.
    """
    stepped = _code_of(overrides).stepped
    stepped[region.table] += 1
    return stepped[region.table] + sum(stepped[inner.table] for inner in loops_in(region.program))


def generated_loops(plan: Plan) -> Iterator[tuple[str, Loop]]:
    """What was generated for the loops of a plan so far, with their addresses, in the order in
    which it was needed.
    """
    for use, made in _code_of(Overrides(plan)).loops.items():
        program, instruction = plan.regions[use.entry.table]
        yield f"{program.address}/{instruction.label}", made


def scalars(overrides: Overrides, region: LoopRegion, values: list[Any]) -> Mapping[Slot, np.dtype]:
    """The slots of a nest that hold numbers of one type in every row, if what enters its body has
    the types of these values; proved once for each plan and such types.
    """
    entry, known = _Entry(region.table, _entering(region, values)), _code_of(overrides).scalars
    proved = known.get(entry)
    if proved is None:
        if len(known) > _MOST_GENERATED:
            known.clear()
        proved = known[entry] = scalar_types(overrides.plan, region, values)
    return proved


def _entering(region: LoopRegion, values: list[Any]) -> tuple[tuple[np.dtype | None, bool], ...]:
    """The types of what enters a body, and whether it has ranks."""
    given = [values[slot] for slot in region.program.parameters.values()]
    return tuple((getattr(value, "dtype", None), getattr(value, "ndim", 0) > 0) for value in given)
