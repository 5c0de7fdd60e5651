"""Generated code: a loop nest as one Python function over local variables, made from the same plan
that stepping interprets.

This module decides which loops get a function, and caches functions by what the recording records
and by the types that enter the body. ``emit_loop.py`` writes the text.
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
from loopscope.executor.codegen.slot_proofs import begins_small, grows, scalar_types
from loopscope.executor.codegen.source_map import Loop
from loopscope.executor.machine.regions import loops_in
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Plan, Program
from loopscope.executor.plan.slots import ProgramIndex, Slot, TableIndex
from loopscope.executor.plan.uncomputed_values import Defaults, Overrides
from loopscope.executor.record.recording import Recording

_MAX_NESTED_LOOPS = 8
"""CPython rejects more than 20 nested blocks in one function; a loop takes two."""
_MAX_NESTED_REGIONS = 24
_MAX_INSTRUCTIONS = 20_000
_MAX_FUNCTIONS = 1000
"""Maximum number of functions cached per plan. The cache is cleared when a plan exceeds it, for
example with changing shapes.
"""


def can_generate(region: LoopRegion) -> bool:
    """Return True if a nest is shallow and small enough for one function.

    The outer loops of a deeper nest are interpreted.
    """
    deepest_loops, total = 0, 0
    waiting: list[tuple[Program, int, int]] = [(region.program, 1, 1)]
    while waiting:
        program, loops, regions = waiting.pop()
        deepest_loops = max(deepest_loops, loops)
        total += len(program.instructions)
        if (
            deepest_loops > _MAX_NESTED_LOOPS
            or regions > _MAX_NESTED_REGIONS
            or total > _MAX_INSTRUCTIONS
        ):
            return False
        for number in program.regions:
            inner = program.instructions[number].region
            if not isinstance(inner, (LoopRegion, IfRegion)):
                return False
            waiting.extend(
                (body, loops + isinstance(inner, LoopRegion), regions + 1)
                for body in inner.programs
            )
    return True


@dataclass(frozen=True, slots=True)
class _Entry:
    """A loop with the types of the values that enter its body."""

    table: TableIndex
    types: tuple[tuple[np.dtype | None, bool], ...]
    """Element type of each Parameter, and True if its rank is not 0."""


@dataclass(frozen=True, slots=True)
class _Use:
    """Cache key of a generated function: the entry types, the recorded slots and whether results
    may grow.
    """

    entry: _Entry
    recorded: tuple[tuple[ProgramIndex, tuple[Slot, ...]], ...]
    """Recorded slots of each graph, by program number."""
    grows: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Code:
    """Generated functions of one plan (or of a plan with overrides), and the facts that led to
    them.
    """

    loops: dict[_Use, Loop] = field(default_factory=dict[_Use, Loop])
    scalars: dict[_Entry, Mapping[Slot, np.dtype]] = field(
        default_factory=dict[_Entry, Mapping[Slot, np.dtype]]
    )
    stepped: Counter[TableIndex] = field(default_factory=Counter[TableIndex])
    """Number of stepped iterations per loop, without the first iteration of each execution."""


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
    """Return the generated function of a loop for a recording; cached by plan, recorded slots and
    entry types.

    ``values`` are the slot values after the first iterations. Their element types are proved to
    stay the same; their ranks only guide which code is worthwhile. The function calls ``safepoint``
    between two iterations.
    """
    recorded = tuple((index, tuple(rows.columns)) for index, rows in recording.rows.items())
    use = _Use(_Entry(region.table, _entry_types(region, values)), recorded, grows(region, values))
    loops = _code_of(overrides).loops
    function = loops.get(use)
    if function is None:
        if len(loops) > _MAX_FUNCTIONS:
            loops.clear()
        proved = scalars(overrides, region, values)
        computing = Computing(overrides, values, proved, defaults, use.grows)
        function = loops[use] = Writer(recording, computing, proved).loop(region, safepoint)
        function.scalars = tuple(
            (index, slot, proved[slot])
            for index, slots in recorded
            for slot in slots
            if slot in proved
        )
    return function


def ready_loop(overrides: Overrides, region: LoopRegion, values: list[Any]) -> Loop | None:
    """Return a function of a loop that records nothing, if one exists for the types of the values
    that enter the first iteration; None otherwise.
    """
    loops = _code_of(overrides).loops
    if not loops:
        return None
    entry = _Entry(region.table, _entry_types(region, values))
    function = loops.get(_Use(entry, (), grows=True))
    if function is not None:
        return function
    function = loops.get(_Use(entry, (), grows=False))
    if function is None or not begins_small(region, overrides.plan, values):
        return None
    return function


def stepped_again(overrides: Overrides, region: LoopRegion) -> int:
    """Count one more stepped iteration of a loop, and return the count of its whole nest over all
    runs of the plan.
    """
    stepped = _code_of(overrides).stepped
    stepped[region.table] += 1
    return stepped[region.table] + sum(stepped[inner.table] for inner in loops_in(region.program))


def generated_loops(plan: Plan) -> Iterator[tuple[str, Loop]]:
    """Yield the functions generated so far for the loops of a plan, with the loop addresses, oldest
    first.
    """
    for use, function in _code_of(Overrides(plan)).loops.items():
        program, instruction = plan.regions[use.entry.table]
        yield f"{program.address}/{instruction.label}", function


def scalars(overrides: Overrides, region: LoopRegion, values: list[Any]) -> Mapping[Slot, np.dtype]:
    """Return the slots of a nest that hold numbers of one type in every row, given the types of
    ``values`` at entry.

    The proof is cached per plan and entry types.
    """
    entry, known = _Entry(region.table, _entry_types(region, values)), _code_of(overrides).scalars
    proved = known.get(entry)
    if proved is None:
        if len(known) > _MAX_FUNCTIONS:
            known.clear()
        proved = known[entry] = scalar_types(overrides.plan, region, values)
    return proved


def _entry_types(region: LoopRegion, values: list[Any]) -> tuple[tuple[np.dtype | None, bool], ...]:
    """Return the element type of each value that enters a body, and True if its rank is not 0."""
    entering = [values[slot] for slot in region.program.parameters.values()]
    return tuple(
        (getattr(value, "dtype", None), getattr(value, "ndim", 0) > 0) for value in entering
    )
