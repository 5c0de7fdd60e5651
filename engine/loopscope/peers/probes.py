"""Which values of a run another runtime can be asked for: those of the outermost graph, of loops
and branches, over all iterations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import CallRegion, IfRegion, LoopRegion, Program
from loopscope.executor.record.recording import LoopTable
from loopscope.ir.model import LOOP, SCAN, TENSOR_ITERATOR, LayerId
from loopscope.ops.values import is_tensor
from loopscope.peers.fingerprint import Fingerprint
from loopscope.timeline.vectorised import Columns, Recorded

_LOOPS = (LOOP, TENSOR_ITERATOR, SCAN)
_MOST_BYTES = 32 * 2**20
"""Of all values together that another runtime is asked for as they are; of the largest it gives
fingerprints instead.
"""
_MOST_OF_ONE = 16 * 2**20
_WORTH_IT = 256
"""Elements from which a fingerprint is shorter."""
_MORE = 16
_MOST_PADDED = 100_000
"""Iterations for which a runtime is asked to have room, in loops that run fewer in some of their
executions.
"""
_MOST_COMPUTED = 5_000
"""Iterations whose values are computed one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """One value of a graph, in all of its rows."""

    program: Program
    layer: LayerId
    output: int
    slot: Slot
    position: int
    """Number of the instruction that computes it; -1 for a Parameter."""
    expected: np.ndarray
    """With a row along the first axis; of a fingerprint its numbers."""
    lengths: tuple[int, ...]
    """How often each loop around it runs at most, outermost first: the first axes of what the
    other runtime gives.
    """
    places: np.ndarray
    """For each row, its number among all iterations of those loops: it skips those in which another
    branch ran, and those that a loop did not run because it ran fewer than at most.
    """
    fingerprint: Fingerprint | None = None
    """What is asked for in place of a value that is too large to be handed out in every
    iteration.
    """

    def compared(self) -> Probe:
        """The same after it was compared by its fingerprint, with as many rows, which hold no
        number.
        """
        return replace(
            self, expected=np.broadcast_to(np.zeros((), self.expected.dtype), self.expected.shape)
        )


def as_it_is(run: Run, probe: Probe) -> Probe:
    """In place of a fingerprint the values themselves."""
    rows = run.timeline.executions.rows[probe.program.index]
    values = [
        np.asarray(run.values.get(run.timeline, probe.program, row, probe.slot))
        for row in range(rows)
    ]
    return replace(probe, expected=np.stack(values), fingerprint=None)


def whole_bytes(run: Run, probe: Probe) -> int:
    """What the values of a fingerprint take."""
    first = np.asarray(run.values.get(run.timeline, probe.program, 0, probe.slot))
    return first.nbytes * run.timeline.executions.rows[probe.program.index]


def owner(program: Program) -> LoopRegion | IfRegion | None:
    """The loop or If that a graph belongs to; None for the outermost graph and for a function."""
    region = program.region
    if isinstance(region, IfRegion) or (isinstance(region, LoopRegion) and region.kind in _LOOPS):
        return region
    return None


def times(run: Run, loop: LoopRegion) -> int:
    """How many iterations a loop runs, at most."""
    return max(_counts(run, loop), default=0)


def varies(run: Run, loop: LoopRegion) -> bool:
    """Return whether a loop runs more iterations in some of its executions than in others."""
    return len(set(_counts(run, loop))) > 1


def enough(run: Run, program: Program) -> int | None:
    """A trip count that a loop did not come near, where its own allows far more: runtimes take
    memory for all that may run.
    """
    region = owner(program)
    if (
        not isinstance(region, LoopRegion)
        or region.kind != LOOP
        or region.trip_count is None
        or program.parent is None
    ):
        return None
    most = times(run, region) + _MORE
    rows = run.timeline.executions.rows[program.parent.index]
    trips = [
        int(np.asarray(run.values.get(run.timeline, program.parent, row, region.trip_count)).item())
        for row in range(rows)
    ]
    return most if min(trips, default=0) > most else None


def _counts(run: Run, loop: LoopRegion) -> list[int]:
    table = run.machine.recording.tables[loop.table]
    assert isinstance(table, LoopTable)
    return table.counts


@dataclass(frozen=True, slots=True, eq=False)
class ProbeCandidate:
    """A value that can be asked for."""

    program: Program
    layer: LayerId
    output: int
    slot: Slot
    position: int
    like: np.ndarray
    """Of shape and element type that all rows have to have; the value itself where there is one
    row.
    """
    rows: int
    fingerprint: Fingerprint | None = None

    @property
    def nbytes(self) -> int:
        return self.like.nbytes * self.rows

    @property
    def given_bytes(self) -> int:
        """What the other runtime is to give."""
        return (
            self.nbytes
            if self.fingerprint is None
            else self.fingerprint.length * np.float32().nbytes * self.rows
        )


class Choice:
    """The values of a finished run that can be compared, and how many cannot, by the reason in
    words.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.recorded = Recorded(run.timeline)
        self.left_out: dict[str, int] = {}
        """Complete when all candidates have been made probes: that some cannot be is found only
        then.
        """
        self.candidates = self._chosen()
        """In the order of their graphs; those of one graph, which is a loop's or an If's, have
        to be made probes together.
        """

    def probes(self, candidates: Sequence[ProbeCandidate]) -> tuple[Probe, ...]:
        """With what is expected, which takes memory; so not all of a large run are made at once."""
        found: list[Probe] = []
        for _, of_graph in groupby(candidates, key=lambda one: one.program.index):
            found += self._of(tuple(of_graph))
        self.run.values.forget_computed()
        return tuple(found)

    def _chosen(self) -> tuple[ProbeCandidate, ...]:
        candidates: list[ProbeCandidate] = []
        for program in self.run.plan.programs:
            reason = self._reason(program)
            if reason:
                self._leave_out(reason, sum(1 for _ in _values_of(program)))
            else:
                candidates += self._candidates(program)
        large = self._large(candidates)
        self.run.values.forget_computed()
        return tuple(
            replace(one, fingerprint=Fingerprint.of_size(one.like.size)) if one in large else one
            for one in candidates
        )

    def _candidates(self, program: Program) -> Iterator[ProbeCandidate]:
        rows = self.run.timeline.executions.rows[program.index]
        values = [
            one for one in _values_of(program) if not self._is_nameless(program, one[3], one[1])
        ]
        firsts = {
            one[2]: self._value(program, 0, one[2]) for one in reversed(values)
        }  # what comes last computes all before it
        for layer, output, slot, position in values:
            first = firsts[slot]
            if not is_tensor(first) or (
                position >= 0
                and program.instructions[position].node.outputs[output].form != "tensor"
            ):
                self._leave_out("that is not a tensor")
            elif np.asarray(first).dtype.kind not in "biuf":
                self._leave_out(
                    "of text"
                    if np.asarray(first).dtype == object
                    else "of a type that numpy does not have"
                )
            else:
                array = np.asarray(first)
                like = (
                    array if rows == 1 else np.broadcast_to(np.zeros((), array.dtype), array.shape)
                )  # holds no value
                yield ProbeCandidate(program, layer, output, slot, position, like, rows)

    def _large(self, candidates: Sequence[ProbeCandidate]) -> frozenset[ProbeCandidate]:
        """Those of which fingerprints are asked for: the largest, until the others together are
        few enough bytes.
        """
        left = sum(one.nbytes for one in candidates)
        large: list[ProbeCandidate] = []
        for one in sorted(candidates, key=lambda one: -one.nbytes):
            if one.like.size >= _WORTH_IT and (left > _MOST_BYTES or one.nbytes > _MOST_OF_ONE):
                large.append(one)
                left -= one.nbytes
        return frozenset(large)

    def _leave_out(self, reason: str, count: int = 1) -> None:
        if count:
            self.left_out[reason] = self.left_out.get(reason, 0) + count

    def _reason(self, program: Program) -> str:
        """Why a graph as a whole is left out; empty where it is not."""
        around = [one for one in program.around() if one.parent is not None]
        if any(owner(one) is None and not isinstance(one.region, CallRegion) for one in around):
            return "in a function"
        if not self.run.timeline.executions.rows[program.index]:
            return "in a body or branch that did not run"
        loops = [loop for one in around if isinstance(loop := owner(one), LoopRegion)]
        if (
            any(varies(self.run, loop) for loop in loops)
            and math.prod(times(self.run, loop) for loop in loops) > _MOST_PADDED
        ):
            return "in a loop whose number of iterations varies much"
        return ""

    def _places(self, program: Program) -> np.ndarray:
        if program.parent is None:
            return np.zeros(1, np.int64)
        around, region = self._places(program.parent), owner(program)
        if region is None:  # a function, which runs once for each row
            return around
        if isinstance(region, LoopRegion):
            most, counts = times(self.run, region), np.asarray(_counts(self.run, region), np.int64)
            first = np.repeat(np.cumsum(counts) - counts, counts)
            return np.asarray(np.repeat(around * most, counts) + np.arange(counts.sum()) - first)
        taken = self.run.timeline.executions.taken(region).astype(bool)
        return np.asarray(around[taken if program is region.then.program else ~taken])

    def _of(self, candidates: Sequence[ProbeCandidate]) -> Iterator[Probe]:
        """Of one graph, what can be had as columns and what has to be computed row by row."""
        program, rows = candidates[0].program, candidates[0].rows
        columns = Columns(self.recorded, program, np.arange(rows))
        loops = [loop for one in program.around() if isinstance(loop := owner(one), LoopRegion)]
        lengths, places = (
            tuple(times(self.run, loop) for loop in reversed(loops)),
            self._places(program),
        )
        whole = [
            one for one in candidates if one.fingerprint is None and program.parent is not None
        ]
        found = {
            one: np.asarray(column.of(rows))
            for one in whole
            if (column := columns.column(one.slot)) is not None
        }
        waiting = [one for one in candidates if one not in found]
        if rows > _MOST_COMPUTED:
            self._leave_out(f"in loops of more than {_MOST_COMPUTED:,} iterations", len(waiting))
        else:
            found |= self._row_by_row(waiting)
        for one in candidates:
            if one in found:
                yield Probe(
                    program,
                    one.layer,
                    one.output,
                    one.slot,
                    one.position,
                    found[one],
                    lengths,
                    places,
                    one.fingerprint,
                )

    def _row_by_row(self, candidates: Sequence[ProbeCandidate]) -> dict[ProbeCandidate, np.ndarray]:
        """All values of a row before the next, because a row is computed again as a whole; the
        last one first, which takes all others.
        """
        if (
            len(candidates) and candidates[0].rows == 1
        ):  # most of all values of the outermost graph: they are not held twice
            return {
                one: (one.like if one.fingerprint is None else one.fingerprint.of(one.like))[None]
                for one in candidates
            }
        found = {one: _room(one) for one in candidates}
        order = list(reversed(candidates))
        for row in range(candidates[0].rows if candidates else 0):
            for one in order:
                value = np.asarray(self._value(one.program, row, one.slot))
                if value.shape != one.like.shape or value.dtype != one.like.dtype:
                    found.pop(one, None)
                elif one in found:
                    found[one][row] = (
                        value if one.fingerprint is None else one.fingerprint.of(value)
                    )
        self._leave_out("of a shape that changes", len(candidates) - len(found))
        return found

    def _is_nameless(self, program: Program, position: int, output: int) -> bool:
        """An output that an ONNX file leaves out."""
        if self.run.model.dialect != "onnx" or position < 0:
            return False
        return not any(program.instructions[position].node.outputs[output].names)

    def _value(self, program: Program, row: int, slot: Slot) -> Any:
        return self.run.values.get(self.run.timeline, program, row, slot)


def _room(one: ProbeCandidate) -> np.ndarray:
    """For a value in all rows, as it is or as its fingerprint."""
    if one.fingerprint is None:
        return np.empty((one.rows, *one.like.shape), one.like.dtype)
    return np.empty((one.rows, one.fingerprint.length), np.float32)


def _values_of(program: Program) -> Iterator[tuple[LayerId, int, Slot, int]]:
    """Layer, output number, slot and instruction number of what a graph computes; in bodies the
    carried Parameters too.
    """
    region = owner(program)
    if isinstance(region, LoopRegion):
        carried = {one.parameter for one in region.carried}
        yield from (
            (layer, 0, slot, -1) for layer, slot in program.parameters.items() if slot in carried
        )
    for number, instruction in enumerate(program.instructions):
        yield from (
            (instruction.node.id, output, slot, number)
            for output, slot in enumerate(instruction.outputs)
        )
