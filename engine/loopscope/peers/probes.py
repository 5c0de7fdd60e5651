"""Values of a run that can be requested from another runtime, over all iterations of loops and
branches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import CallRegion, IfRegion, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.executor.record.recording import LoopTable
from loopscope.ir.model import LOOP, SCAN, TENSOR_ITERATOR, LayerId
from loopscope.ops.values import is_tensor
from loopscope.peers.fingerprint import Fingerprint
from loopscope.timeline.vectorised import Columns, Recorded

_LOOPS = (LOOP, TENSOR_ITERATOR, SCAN)
_MAX_TOTAL_BYTES = 32 * 2**20
"""Maximum total bytes requested from another runtime as plain values; the largest values become
fingerprints.
"""
_MAX_VALUE_BYTES = 16 * 2**20
_MIN_FINGERPRINT_ELEMENTS = 256
"""Minimum elements from which a fingerprint is shorter than the value."""
_TRIP_COUNT_MARGIN = 16
_MAX_PADDED_ITERATIONS = 100_000
"""Maximum iterations that a runtime allocates for loops whose executions have different iteration
counts.
"""
_MAX_REPLAYED_ROWS = 5_000
"""Maximum iterations whose values are replayed one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A value of a graph in all of its rows."""

    program: Program
    layer: LayerId
    output: int
    slot: Slot
    position: int
    """Number of the instruction that computes the value; -1 for a Parameter."""
    expected: np.ndarray
    """Our values, or our fingerprints, with one row along the first axis."""
    lengths: tuple[int, ...]
    """Maximum iteration count of each enclosing loop, outermost first: the first axes of the
    runtime's array.
    """
    places: np.ndarray
    """Index of each row among all iterations of these loops.

    Iterations without the value are skipped: another branch ran, or an execution was shorter than
    the maximum.
    """
    fingerprint: Fingerprint | None = None
    """Fingerprint requested instead of a value that is too large to return in every iteration."""

    def compared(self) -> Probe:
        """Return the probe without stored numbers, for use after the fingerprints were compared."""
        return replace(
            self, expected=np.broadcast_to(np.zeros((), self.expected.dtype), self.expected.shape)
        )


def plain_probe(run: Run, probe: Probe) -> Probe:
    """Return a probe for the plain values instead of fingerprints."""
    rows = run.timeline.executions.rows[probe.program.index]
    values = [
        np.asarray(run.values.get(run.timeline, probe.program, row, probe.slot))
        for row in range(rows)
    ]
    return replace(probe, expected=np.stack(values), fingerprint=None)


def plain_bytes(run: Run, probe: Probe) -> int:
    """Return the number of bytes of the plain values of a probe."""
    first = np.asarray(run.values.get(run.timeline, probe.program, 0, probe.slot))
    return first.nbytes * run.timeline.executions.rows[probe.program.index]


def owner(program: Program) -> LoopRegion | IfRegion | None:
    """Return the loop or If that a graph belongs to; None for the outermost graph and for a
    function.
    """
    region = program.region
    if isinstance(region, IfRegion) or (isinstance(region, LoopRegion) and region.kind in _LOOPS):
        return region
    return None


def times(run: Run, loop: LoopRegion) -> int:
    """Return the maximum iteration count of a loop over its executions."""
    return max(_counts(run, loop), default=0)


def varies(run: Run, loop: LoopRegion) -> bool:
    """Return True if the iteration count of a loop differs between executions."""
    return len(set(_counts(run, loop))) > 1


def sufficient_trip_count(run: Run, program: Program) -> int | None:
    """Return a sufficient trip count for a loop whose own trip count is far larger than its
    iteration count.

    Runtimes allocate memory for the trip count. Return None if the trip count need not change.
    """
    region = owner(program)
    if (
        not isinstance(region, LoopRegion)
        or region.kind != LOOP
        or region.trip_count is None
        or program.parent is None
    ):
        return None
    sufficient = times(run, region) + _TRIP_COUNT_MARGIN
    rows = run.timeline.executions.rows[program.parent.index]
    counts = [
        run.values.get(run.timeline, program.parent, row, region.trip_count) for row in range(rows)
    ]
    # A call of a function may leave the trip count out.
    trips = [0 if count is None else int(np.asarray(count).item()) for count in counts]
    return sufficient if min(trips, default=0) > sufficient else None


def _counts(run: Run, loop: LoopRegion) -> list[int]:
    table = run.machine.recording.tables[loop.table]
    assert isinstance(table, LoopTable)
    return table.counts


@dataclass(frozen=True, slots=True, eq=False)
class ProbeCandidate:
    """A value that can be requested."""

    program: Program
    layer: LayerId
    output: int
    slot: Slot
    position: int
    like: np.ndarray
    """Array with the shape and element type that all rows must have; the value itself if there is
    one row.
    """
    rows: int
    fingerprint: Fingerprint | None = None

    @property
    def nbytes(self) -> int:
        return self.like.nbytes * self.rows

    @property
    def given_bytes(self) -> int:
        """Number of bytes that the other runtime returns."""
        return (
            self.nbytes
            if self.fingerprint is None
            else self.fingerprint.length * np.float32().nbytes * self.rows
        )


class ProbeSelection:
    """Comparable values of a finished run, and the number of others by reason."""

    def __init__(self, run: Run, *, nameless: bool = False) -> None:
        """Select the values of a run, with ``nameless`` also those that no runtime can return."""
        self.run = run
        self._includes_nameless = nameless
        self.recorded = Recorded(run.timeline)
        self.left_out: dict[str, int] = {}
        """Complete only after all candidates became probes, because some fail then."""
        self.candidates = self._select_candidates()
        """Candidates in graph order; those of one loop or If must become probes together."""

    def probes(self, candidates: Sequence[ProbeCandidate]) -> tuple[Probe, ...]:
        """Return the probes with expected values; large runs are processed in parts to limit
        memory.
        """
        probes: list[Probe] = []
        for _, of_graph in groupby(candidates, key=lambda candidate: candidate.program.index):
            probes += self._graph_probes(tuple(of_graph))
        self.run.values.forget_computed()
        return tuple(probes)

    def _select_candidates(self) -> tuple[ProbeCandidate, ...]:
        candidates: list[ProbeCandidate] = []
        for program in self.run.plan.programs:
            reason = self._reason(program)
            if reason:
                self._exclude(reason, sum(1 for _ in _values_of(program)))
            else:
                candidates += self._candidates(program)
        large = self._select_fingerprinted(candidates)
        self.run.values.forget_computed()
        return tuple(
            replace(candidate, fingerprint=Fingerprint.of_size(candidate.like.size))
            if candidate in large
            else candidate
            for candidate in candidates
        )

    def _candidates(self, program: Program) -> Iterator[ProbeCandidate]:
        rows = self.run.timeline.executions.rows[program.index]
        values = [
            entry
            for entry in _values_of(program)
            if self._includes_nameless or not self._is_nameless(program, entry[3], entry[1])
        ]
        # Last values first: one replay computes all the values before it.
        firsts = {entry[2]: self._value(program, 0, entry[2]) for entry in reversed(values)}
        for layer, output, slot, position in values:
            first = firsts[slot]
            if not is_tensor(first) or (
                position >= 0
                and program.instructions[position].node.outputs[output].form != "tensor"
            ):
                self._exclude("that is not a tensor")
            elif np.asarray(first).dtype.kind not in "biuf":
                self._exclude(
                    "of text"
                    if np.asarray(first).dtype == object
                    else "of a type that numpy does not have"
                )
            else:
                array = np.asarray(first)
                like = (
                    array if rows == 1 else np.broadcast_to(np.zeros((), array.dtype), array.shape)
                )  # broadcast, so that no value is stored
                yield ProbeCandidate(program, layer, output, slot, position, like, rows)

    def _select_fingerprinted(
        self, candidates: Sequence[ProbeCandidate]
    ) -> frozenset[ProbeCandidate]:
        """Return the candidates to request as fingerprints: the largest, until the rest fits the
        limit.
        """
        remaining = sum(candidate.nbytes for candidate in candidates)
        large: list[ProbeCandidate] = []
        for candidate in sorted(candidates, key=lambda candidate: -candidate.nbytes):
            if candidate.like.size >= _MIN_FINGERPRINT_ELEMENTS and (
                remaining > _MAX_TOTAL_BYTES or candidate.nbytes > _MAX_VALUE_BYTES
            ):
                large.append(candidate)
                remaining -= candidate.nbytes
        return frozenset(large)

    def _exclude(self, reason: str, count: int = 1) -> None:
        if count:
            self.left_out[reason] = self.left_out.get(reason, 0) + count

    def _reason(self, program: Program) -> str:
        """Return why a whole graph is excluded; empty if it is not."""
        graphs = [graph for graph in program.around() if graph.parent is not None]
        if any(
            owner(graph) is None and not isinstance(graph.region, CallRegion) for graph in graphs
        ):
            return "in a function"
        if not self.run.timeline.executions.rows[program.index]:
            return "in a body or branch that did not run"
        loops = [loop for graph in graphs if isinstance(loop := owner(graph), LoopRegion)]
        if (
            any(varies(self.run, loop) for loop in loops)
            and math.prod(times(self.run, loop) for loop in loops) > _MAX_PADDED_ITERATIONS
        ):
            return "in a loop whose number of iterations varies much"
        return ""

    def _places(self, program: Program) -> np.ndarray:
        if program.parent is None:
            return np.zeros(1, np.int64)
        outer, region = self._places(program.parent), owner(program)
        if region is None:  # a function, which runs once per row
            return outer
        if isinstance(region, LoopRegion):
            maximum = times(self.run, region)
            counts = np.asarray(_counts(self.run, region), np.int64)
            first = np.repeat(np.cumsum(counts) - counts, counts)
            return np.asarray(np.repeat(outer * maximum, counts) + np.arange(counts.sum()) - first)
        taken = self.run.timeline.executions.taken(region).astype(bool)
        return np.asarray(outer[taken if program is region.then.program else ~taken])

    def _graph_probes(self, candidates: Sequence[ProbeCandidate]) -> Iterator[Probe]:
        """Yield the probes of one graph, from columns if possible, otherwise row by row."""
        program, rows = candidates[0].program, candidates[0].rows
        columns = Columns(self.recorded, program, np.arange(rows))
        loops = [
            loop
            for candidate in program.around()
            if isinstance(loop := owner(candidate), LoopRegion)
        ]
        lengths = tuple(times(self.run, loop) for loop in reversed(loops))
        places = self._places(program)
        whole = [
            candidate
            for candidate in candidates
            if candidate.fingerprint is None and program.parent is not None
        ]
        values = {
            candidate: np.asarray(column.of(rows))
            for candidate in whole
            if (column := columns.column(candidate.slot)) is not None
        }
        waiting = [candidate for candidate in candidates if candidate not in values]
        if rows > _MAX_REPLAYED_ROWS:
            self._exclude(f"in loops of more than {_MAX_REPLAYED_ROWS:,} iterations", len(waiting))
        else:
            values |= self._row_by_row(waiting)
        for candidate in candidates:
            if candidate in values:
                yield Probe(
                    program,
                    candidate.layer,
                    candidate.output,
                    candidate.slot,
                    candidate.position,
                    values[candidate],
                    lengths,
                    places,
                    candidate.fingerprint,
                )

    def _row_by_row(self, candidates: Sequence[ProbeCandidate]) -> dict[ProbeCandidate, np.ndarray]:
        """Replay all values of a row before the next row, last value first.

        A row is replayed as a whole, and the last value requires most others.
        """
        # One row: most values are of the outermost graph, and are not stored twice.
        if len(candidates) and candidates[0].rows == 1:
            return {
                candidate: (
                    candidate.like
                    if candidate.fingerprint is None
                    else candidate.fingerprint.of(candidate.like)
                )[None]
                for candidate in candidates
            }
        values = {candidate: _allocate(candidate) for candidate in candidates}
        order = list(reversed(candidates))
        for row in range(candidates[0].rows if candidates else 0):
            for candidate in order:
                value = np.asarray(self._value(candidate.program, row, candidate.slot))
                if value.shape != candidate.like.shape or value.dtype != candidate.like.dtype:
                    values.pop(candidate, None)
                elif candidate in values:
                    values[candidate][row] = (
                        value if candidate.fingerprint is None else candidate.fingerprint.of(value)
                    )
        self._exclude("of a shape that changes", len(candidates) - len(values))
        return values

    def _is_nameless(self, program: Program, position: int, output: int) -> bool:
        """Return True for an output that an ONNX file omits."""
        if self.run.model.dialect != "onnx" or position < 0:
            return False
        return not any(program.instructions[position].node.outputs[output].names)

    def _value(self, program: Program, row: int, slot: Slot) -> Any:
        return self.run.values.get(self.run.timeline, program, row, slot)


def _allocate(candidate: ProbeCandidate) -> np.ndarray:
    """Allocate an array for a value, or its fingerprint, in all rows."""
    if candidate.fingerprint is None:
        return np.empty((candidate.rows, *candidate.like.shape), candidate.like.dtype)
    return np.empty((candidate.rows, candidate.fingerprint.length), np.float32)


def _values_of(program: Program) -> Iterator[tuple[LayerId, int, Slot, int]]:
    """Yield layer, output index, slot and instruction number of a graph's values, with the carried
    Parameters of bodies.
    """
    region = owner(program)
    if isinstance(region, LoopRegion):
        carried = {port.parameter for port in region.carried}
        yield from (
            (layer, 0, slot, -1) for layer, slot in program.parameters.items() if slot in carried
        )
    for number, instruction in enumerate(program.instructions):
        yield from (
            (instruction.node.id, output, slot, number)
            for output, slot in enumerate(instruction.outputs)
        )
