"""Columns that need no recording: what is elementwise over recorded values is computed for thousands of iterations at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.run.execute import computing
from engine.run.fixed import expression, fixed_source
from engine.run.plan import Counter, Instruction, LoopRegion, Program, settle

SMALL = 4096
"""Arrays of at most so many bytes are packed into one; larger ones are kept by reference."""


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """Instructions of a loop's body whose values follow, bit for bit, from recorded values, the iteration number and constants."""

    instructions: tuple[Instruction, ...]
    counters: tuple[Counter, ...]
    outer: Mapping[int, Any]
    """Values from outside the body; the same in all rows."""
    slots: frozenset[int]
    needed: frozenset[int]
    """Recorded slots that they are computed from."""

    def columns(self, recorded: Mapping[int, np.ndarray], rows: range) -> dict[int, np.ndarray]:
        """The values of every derived slot at some rows, one along the first axis for each, from those of the recorded slots."""
        columns = dict(recorded)
        for counter in self.counters:
            columns[counter.parameter] = np.arange(rows.start, rows.stop, rows.step, dtype=counter.element_type.dtype)
        found: dict[int, np.ndarray] = {}
        with computing():
            for instruction in self.instructions:
                assert instruction.call is not None
                slot = instruction.outputs[0]
                found[slot] = columns[slot] = self._column(instruction, columns, len(rows))
        return found

    def _column(self, instruction: Instruction, columns: Mapping[int, np.ndarray], count: int) -> np.ndarray:
        assert instruction.call is not None
        ranks = [columns[slot].ndim - 1 if slot in columns else np.ndim(self.outer[slot]) for slot in instruction.inputs]
        rank = max(ranks)
        operands = [_lifted(columns[slot], rank) if slot in columns else self.outer[slot] for slot in instruction.inputs]
        made = np.asarray(instruction.call(*operands))
        return made if made.ndim == rank + 1 else np.broadcast_to(made, (count, *made.shape))

    def values(self, recorded: Mapping[int, Any], row: int) -> dict[int, Any]:
        """The same for one row, whatever the shapes in it."""
        known: dict[int, Any] = {**self.outer, **recorded}
        for counter in self.counters:
            known[counter.parameter] = counter.number(row)
        with computing():
            for instruction in self.instructions:
                assert instruction.call is not None
                known[instruction.outputs[0]] = settle(instruction.call(*[known[slot] for slot in instruction.inputs]))
        return {slot: known[slot] for slot in self.slots}


def _lifted(column: np.ndarray, rank: int) -> np.ndarray:
    """A column whose rows have that rank, so that rows broadcast against rows."""
    missing = rank - (column.ndim - 1)
    return column.reshape(len(column), *[1] * missing, *column.shape[1:]) if missing else column


def derived(region: LoopRegion, values: list[Any], kept: frozenset[int]) -> Derived | None:
    """What can be derived in a loop's body from the slots that are kept, judged by the values of its first iterations; None for nothing."""
    program = region.program
    # The number of a row is that of the iteration only where the loop runs once.
    once = program.parent is not None and program.parent.parent is None
    counters = tuple(counter for counter in region.counters if once and not counter.shape)
    known = {counter.parameter for counter in counters} | {slot for slot in kept - program.producer.keys() if _is_small(values[slot])}
    outer: dict[int, Any] = {}
    instructions: list[Instruction] = []
    for instruction in program.instructions:
        if _may_derive(program, instruction, values, known, outer):
            instructions.append(instruction)
            known.add(instruction.outputs[0])
        else:
            known.update(slot for slot in instruction.outputs if slot in kept and _is_small(values[slot]))
    if not instructions:
        return None
    slots = frozenset(instruction.outputs[0] for instruction in instructions)
    # Something must be recorded: it tells how many rows there are.
    if not kept - slots:
        return None
    used = frozenset(slot for instruction in instructions for slot in instruction.inputs)
    return Derived(tuple(instructions), counters, outer, slots, used & kept - slots)


def _may_derive(program: Program, instruction: Instruction, values: list[Any], known: set[int], outer: dict[int, Any]) -> bool:
    if not expression(instruction, values) or not _is_small(values[instruction.outputs[0]]):
        return False
    missing = [slot for slot in instruction.inputs if slot not in known]
    sources = [fixed_source(program, slot) for slot in missing]
    found = {slot: values[source] for slot, source in zip(missing, sources, strict=True) if source is not None}
    if len(found) < len(missing) or not all(_is_small(value) for value in found.values()):
        return False
    outer.update(found)
    return True


def _is_small(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.nbytes <= SMALL and value.dtype.names is None and value.dtype != object
    return isinstance(value, np.generic)
