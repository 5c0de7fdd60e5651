"""A finished run of a file beside its source program: counts, branches, values of each
iteration, and outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import counted, elements_told, first_apart, shape_text
from loopscope.peers.source.program import SourceRun, SourceValue
from loopscope.peers.source.region_matching import (
    FileValue,
    MatchedRegions,
    RegionMatch,
    belonging,
    same_shape,
)
from loopscope.peers.source.watching import LARGE, plain, sampled
from loopscope.timeline.vectorised import Columns, Recorded

_MOST_COMPUTED = 5_000
"""Iterations whose values are computed one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class PairedRows:
    """Executions of two graphs that stand beside each other; an element each."""

    here: np.ndarray
    there: np.ndarray


@dataclass(frozen=True, slots=True)
class Apart:
    """Where the two first differ."""

    address: str
    """Of the file, with iterations."""
    step: int
    """Of our run: after it the difference is there."""
    there: str
    here: str


@dataclass(frozen=True, slots=True)
class ValueAcross:
    """A value of a loop in both."""

    name: str
    """What the source calls it."""
    label: str
    """The node of the file's body; empty where none was found."""
    how: str
    """How the two were matched: ``values``, or ``order`` among those of one shape."""
    compared: int = 0
    """Iterations."""
    first: Apart | None = None
    left_out: str = ""
    """Why it was not compared, or not to the end; empty where it was."""


@dataclass(frozen=True, slots=True)
class RegionAcross:
    """A loop or branch in both."""

    source: str
    """Its name in the program, with what is around it, such as ``while_loop › cond``."""
    kind: str
    address: str
    """In the file, without iterations."""
    how: str
    """How the two were matched: by ``name``, ``values``, ``branches`` that were taken,
    ``structure`` or ``order``.
    """
    there: tuple[int, ...]
    """Of a loop the iterations of each execution; of a branch 1 for the first one, then, and 0
    for the other.
    """
    here: tuple[int, ...]
    first: Apart | None
    """The first execution with another count, or another branch."""
    values: tuple[ValueAcross, ...] = ()


def across(
    source: SourceRun, run: Run, tolerance: float
) -> tuple[RegionMatch, tuple[RegionAcross, ...]]:
    """What belongs together, and each loop and branch in both."""
    found = belonging(source, run)
    return found, tuple(_Walk(source, run, tolerance, found).regions())


def path(source: SourceRun, number: int) -> str:
    """A loop or branch of the program with what is around it."""
    names: list[str] = []
    while number >= 0:
        region = source.regions[number]
        branch = f" · {region.body}" if region.body in ("then", "else", "condition") else ""
        names.insert(0, region.name)
        number = region.parent
        if branch and number >= 0:
            names.insert(0, f"{source.regions[number].name}{branch}")
            number = source.regions[number].parent
    return " › ".join(names)


_Match = tuple[SourceValue, FileValue, str]
"""A value of the source, the file's, and how the two were matched."""


class _Walk:
    def __init__(self, source: SourceRun, run: Run, tolerance: float, found: RegionMatch) -> None:
        self.source, self.run, self.tolerance, self.found = source, run, tolerance, found
        self.recorded = Recorded(run.timeline)
        zero = np.zeros(1, np.int64)
        self.rows: dict[tuple[int, str], PairedRows] = {(-1, "body"): PairedRows(zero, zero)}
        """By the source's region and the body of it."""

    def regions(self) -> Iterator[RegionAcross]:
        for pair in self.found.pairs:
            theirs = self.source.regions[pair.number]
            around = self.rows[theirs.parent, theirs.body]
            match pair.placed.region:
                case LoopRegion() as loop:
                    yield self._loop(pair, loop, around)
                case IfRegion() as branches:
                    yield self._branch(pair, branches, around)

    def _told(
        self,
        pair: MatchedRegions,
        there: Sequence[int],
        here: Sequence[int],
        first: Apart | None,
        *values: ValueAcross,
    ) -> RegionAcross:
        kind, address = self.source.regions[pair.number].kind, pair.placed.address
        counts = tuple(map(int, there)), tuple(map(int, here))
        return RegionAcross(
            path(self.source, pair.number), kind, address, pair.how, *counts, first, values
        )

    def _loop(self, pair: MatchedRegions, loop: LoopRegion, around: PairedRows) -> RegionAcross:
        counts = np.array(self.source.regions[pair.number].counts, np.int64)
        begins = np.concatenate([[0], np.cumsum(counts)])
        starts = self.run.timeline.executions.loop_starts(loop)
        here, there = np.diff(starts)[around.here], counts[around.there]
        common = np.minimum(here, there)
        iteration = np.arange(common.sum()) - np.repeat(np.cumsum(common) - common, common)
        ours = np.repeat(starts[:-1][around.here], common) + iteration
        theirs = np.repeat(begins[:-1][around.there], common) + iteration
        self.rows[pair.number, "body"] = PairedRows(ours, theirs)
        # The condition is asked once before the first iteration; the file's body asks it after
        # each.
        self.rows[pair.number, "condition"] = PairedRows(
            ours, theirs + np.repeat(around.there, common) + 1
        )
        first = None
        for place in np.flatnonzero(here != there)[:1].tolist():
            row, last = int(around.here[place]), int(starts[around.here[place]] + common[place]) - 1
            step = self._end_of(loop.program, last) if common[place] else self._begin(pair, row)
            first = Apart(
                self._address(pair, row),
                step,
                counted(int(there[place]), "iteration"),
                f"{int(here[place]):,}",
            )
        values = [
            self._value(pair, loop, number)
            for number in range(len(self.source.regions[pair.number].values))
        ]
        return self._told(pair, there.tolist(), here.tolist(), first, *values)

    def _branch(self, pair: MatchedRegions, branches: IfRegion, around: PairedRows) -> RegionAcross:
        taken, rows = self.run.timeline.executions.branch_rows(branches)
        theirs = np.array(self.source.regions[pair.number].taken, np.int64)
        here, there = taken[around.here].astype(np.int64), theirs[around.there]
        then = np.cumsum(theirs)
        inner = np.where(theirs == 1, then - 1, np.arange(len(theirs)) - then)
        for name, wanted in (("then", 1), ("else", 0)):
            both = np.flatnonzero((here == wanted) & (there == wanted))
            self.rows[pair.number, name] = PairedRows(
                rows[around.here[both]].astype(np.int64), inner[around.there[both]]
            )
        first = None
        for place in np.flatnonzero(here != there)[:1].tolist():
            row, told = (
                int(around.here[place]),
                ["the then branch" if side[place] else "the else branch" for side in (there, here)],
            )
            first = Apart(self._address(pair, row), self._begin(pair, row), *told)
        return self._told(pair, there.tolist(), here.tolist(), first)

    def _address(self, pair: MatchedRegions, row: int) -> str:
        return (
            f"{self.run.timeline.address(pair.placed.program, row)}/{pair.placed.instruction.label}"
        )

    def _begin(self, pair: MatchedRegions, row: int) -> int:
        program = pair.placed.program
        return self.run.timeline.step_at(
            program, row, program.instructions.index(pair.placed.instruction)
        )

    def _end_of(self, body: Program, row: int) -> int:
        return self.run.timeline.step_at(body, row, len(body.instructions))

    # -- values

    def _value(self, pair: MatchedRegions, loop: LoopRegion, number: int) -> ValueAcross:
        value = self.source.regions[pair.number].values[number]
        match = next(((ours, how) for other, ours, how in pair.values if other == number), None)
        if value.refused or match is None:
            return ValueAcross(
                value.name, "", "", left_out=value.refused or "the file's loop has none like it"
            )
        ours, how = match
        rows = self.rows[pair.number, "body"]
        kept = 0 if value.rows is None else len(value.rows)
        some = rows.there < kept
        here, there = rows.here[some], rows.there[some]
        refused = (
            ""
            if some.all()
            else f"after {counted(int(some.sum()), 'iteration')} the source's values were no longer kept"
        )
        if not len(here):
            return ValueAcross(value.name, ours.label, how, left_out=refused)
        column = self._ours(loop.program, ours, here)
        if column is None:
            refused = f"the file's value changes its shape, or cannot be computed for {counted(len(here), 'iteration')}"
            return ValueAcross(value.name, ours.label, how, left_out=refused)
        return self._compared(
            loop.program, (value, ours, how), PairedRows(here, there), column, refused
        )

    def _compared(
        self, body: Program, match: _Match, rows: PairedRows, column: np.ndarray, refused: str
    ) -> ValueAcross:
        value, ours, how = match
        assert value.rows is not None
        assert value.shape is not None
        if not same_shape(column.shape[1:], value.shape):
            there, here = (
                f"shape [{', '.join(map(str, shape))}]" for shape in (value.shape, column.shape[1:])
            )
            return ValueAcross(
                value.name,
                ours.label,
                how,
                0,
                self._apart(body, int(rows.here[0]), ours, there, here),
            )
        flat, size = _sampled_rows(column), math.prod(value.shape)
        is_whole = flat.shape[1] == size
        mine = column if is_whole else flat
        theirs = value.rows[rows.there].reshape(mine.shape)
        place = first_apart(mine, theirs, self.tolerance)
        first = None
        if place is not None:
            here, there = elements_told(mine, theirs, place)
            first = self._apart(body, int(rows.here[place[0]]), ours, there, here)
        left = "; ".join(
            part
            for part in (refused, "" if is_whole else f"at {flat.shape[1]:,} of {size:,} elements")
            if part
        )
        return ValueAcross(value.name, ours.label, how, len(mine), first, left)

    def _apart(self, body: Program, row: int, value: FileValue, there: str, here: str) -> Apart:
        address = f"{self.run.timeline.address(body, row)}/{value.label}"
        return Apart(address, self._end_of(body, row), there, here)

    def _ours(self, body: Program, value: FileValue, rows: np.ndarray) -> np.ndarray | None:
        """Our values after each of the iterations, with a row for each; None where they are not
        of one shape, or too many.
        """
        found = Columns(self.recorded, body, rows).column(value.result)
        if found is not None:
            return found.of(len(rows))
        if len(rows) > _MOST_COMPUTED:
            return None
        values = [
            self.run.values.get(self.run.timeline, body, int(row), value.result) for row in rows
        ]
        arrays = [np.asarray(one) for one in values if is_tensor(one)]
        if len(arrays) < len(rows) or len({one.shape for one in arrays}) > 1:
            return None
        return np.stack(arrays)


def _sampled_rows(column: np.ndarray) -> np.ndarray:
    size = int(np.prod(column.shape[1:], dtype=np.int64))
    return (
        column.reshape(len(column), size)
        if size <= LARGE
        else np.stack([sampled(row) for row in column])
    )


# -- outputs


@dataclass(frozen=True, slots=True)
class OutputAcross:
    """An output of the model in both."""

    name: str
    """In the file."""
    source: str
    there: str
    """What the source gave, where they differ; empty where they agree."""
    here: str
    left_out: str = ""
    place: tuple[int, ...] | None = None
    """The element that is told; None where none is."""
    runtime: str = ""
    """What the file's runtime gave there, where it ran and source and file differ."""

    @property
    def differs(self) -> bool:
        return bool(self.there)


def outputs_across(source: SourceRun, run: Run, tolerance: float) -> tuple[OutputAcross, ...]:
    """By name where every output of the program has one of the file's, else by order; those left
    over are told.
    """
    results = run.result.outputs
    ours = [
        (next(iter(signature.names), signature.name), {signature.name, *signature.names})
        for signature in run.model.outputs
    ]
    numbers = order(source, ours, results)
    found = [
        _output(ours[number][0], name, results[number], value, tolerance)
        if number is not None
        else OutputAcross("", name, "", "", "the file has no such output")
        for number, (name, value) in zip(numbers, source.outputs, strict=True)
    ]
    missing = [name for number, (name, _) in enumerate(ours) if number not in numbers]
    return (
        *found,
        *(OutputAcross(name, "", "", "", "the source has no such output") for name in missing),
    )


def order(
    source: SourceRun, ours: Sequence[tuple[str, set[str]]], results: Sequence[object]
) -> list[int | None]:
    """For each output of the program the number of the file's; None for one that the file does not
    have.

    ``ours``: what each output of the file is called, and all of its names; ``results``: their
    values, where they are known.
    """
    named = {
        plain(name): number
        for number, (_, some) in reversed(list(enumerate(ours)))
        for name in some
    }
    numbers: list[int | None] = [named.get(plain(name)) for name, _ in source.outputs]
    if None not in numbers and len(set(numbers)) == len(numbers):
        return numbers
    if len(numbers) == len(ours):
        return list(range(len(ours)))
    numbers = []
    for _, value in source.outputs:
        fitting = (number for number, one in enumerate(results) if number not in numbers and value is not None and is_tensor(one)
                   and same_shape(np.shape(np.asarray(one)), value.shape))  # fmt: skip
        numbers.append(next(fitting, None))
    return numbers


def _output(
    name: str, source: str, here: object, there: np.ndarray | None, tolerance: float
) -> OutputAcross:
    if there is None:
        return OutputAcross(name, source, "", "", "the source's value is no tensor of numbers")
    if not is_tensor(here):
        return OutputAcross(name, source, "", "", "the file's value is no tensor")
    one = np.asarray(here)
    if one.dtype.kind not in "biufV":
        return OutputAcross(name, source, "", "", f"the file's value is of type {one.dtype}")
    if not same_shape(one.shape, there.shape):
        return OutputAcross(name, source, f"shape {shape_text(there)}", f"shape {shape_text(one)}")
    theirs = there.reshape(one.shape)
    place = first_apart(one[None], theirs[None], tolerance)
    if place is None:
        return OutputAcross(name, source, "", "")
    mine, other = elements_told(one[None], theirs[None], place)
    return OutputAcross(name, source, other, mine, "", place)
