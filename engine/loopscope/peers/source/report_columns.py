"""Comparison of a finished run of a file with its source program: counts, branches, values and
outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import counted, element_texts, first_apart, shape_text
from loopscope.peers.source.program import SourceRun, SourceValue
from loopscope.peers.source.region_matching import (
    FileValue,
    MatchedRegions,
    RegionMatch,
    match_regions,
    same_shape,
)
from loopscope.peers.source.watching import LARGE, plain, sampled
from loopscope.timeline.vectorised import Columns, Recorded

_MAX_REPLAYED = 5_000
"""Maximum iterations whose values are replayed one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class PairedRows:
    """Aligned executions of two graphs, one element per execution."""

    own: np.ndarray
    source: np.ndarray


@dataclass(frozen=True, slots=True)
class Apart:
    """First difference between source and file."""

    address: str
    """Address in the file, with iterations."""
    step: int
    """Step of our run after which the difference exists."""
    there: str
    here: str


@dataclass(frozen=True, slots=True)
class ValueAcross:
    """A value of a loop in source and file."""

    name: str
    """Name in the source."""
    label: str
    """Node of the file's body; empty without a match."""
    how: str
    """Matching criterion: ``values``, or ``order`` among the values of one shape."""
    compared: int = 0
    """Number of compared iterations."""
    first: Apart | None = None
    left_out: str = ""
    """Reason why the comparison is missing or incomplete; empty if it is complete."""


@dataclass(frozen=True, slots=True)
class RegionAcross:
    """A loop or branch in source and file."""

    source: str
    """Name in the program with its enclosing regions, such as ``while_loop › cond``."""
    kind: str
    address: str
    """Address in the file, without iterations."""
    how: str
    """Matching criterion: ``name``, ``values``, ``branches`` taken, ``structure`` or ``order``."""
    there: tuple[int, ...]
    """Iteration count of each execution of a loop; for a branch, 1 for then and 0 for else."""
    here: tuple[int, ...]
    first: Apart | None
    """First execution with a different count or branch."""
    values: tuple[ValueAcross, ...] = ()


def across(
    source: SourceRun, run: Run, tolerance: float
) -> tuple[RegionMatch, tuple[RegionAcross, ...]]:
    """Return the matches, and the comparison of each matched loop and branch."""
    matching = match_regions(source, run)
    return matching, tuple(_RegionComparison(source, run, tolerance, matching).regions())


def path(source: SourceRun, number: int) -> str:
    """Return the name of a loop or branch of the program, with its enclosing regions."""
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
"""Source value, file value and matching criterion."""


class _RegionComparison:
    def __init__(
        self, source: SourceRun, run: Run, tolerance: float, matching: RegionMatch
    ) -> None:
        self.source, self.run, self.tolerance, self.matching = source, run, tolerance, matching
        self.recorded = Recorded(run.timeline)
        zero = np.zeros(1, np.int64)
        self.rows: dict[tuple[int, str], PairedRows] = {(-1, "body"): PairedRows(zero, zero)}
        """Aligned executions, by region number of the source and body."""

    def regions(self) -> Iterator[RegionAcross]:
        for pair in self.matching.pairs:
            region = self.source.regions[pair.number]
            outer = self.rows[region.parent, region.body]
            match pair.file_region.region:
                case LoopRegion() as loop:
                    yield self._compare_loop(pair, loop, outer)
                case IfRegion() as branches:
                    yield self._compare_branch(pair, branches, outer)

    def _region_across(
        self,
        pair: MatchedRegions,
        source_counts: Sequence[int],
        own_counts: Sequence[int],
        first: Apart | None,
        *values: ValueAcross,
    ) -> RegionAcross:
        kind, address = self.source.regions[pair.number].kind, pair.file_region.address
        counts = tuple(map(int, source_counts)), tuple(map(int, own_counts))
        return RegionAcross(
            path(self.source, pair.number), kind, address, pair.how, *counts, first, values
        )

    def _compare_loop(
        self, pair: MatchedRegions, loop: LoopRegion, outer: PairedRows
    ) -> RegionAcross:
        counts = np.array(self.source.regions[pair.number].counts, np.int64)
        begins = np.concatenate([[0], np.cumsum(counts)])
        starts = self.run.timeline.executions.loop_starts(loop)
        own_counts, source_counts = np.diff(starts)[outer.own], counts[outer.source]
        common = np.minimum(own_counts, source_counts)
        iteration = np.arange(common.sum()) - np.repeat(np.cumsum(common) - common, common)
        own_rows = np.repeat(starts[:-1][outer.own], common) + iteration
        source_rows = np.repeat(begins[:-1][outer.source], common) + iteration
        self.rows[pair.number, "body"] = PairedRows(own_rows, source_rows)
        # The source evaluates the condition once before the first iteration; the file's body
        # evaluates it after each.
        self.rows[pair.number, "condition"] = PairedRows(
            own_rows, source_rows + np.repeat(outer.source, common) + 1
        )
        first = None
        for place in np.flatnonzero(own_counts != source_counts)[:1].tolist():
            row, last = int(outer.own[place]), int(starts[outer.own[place]] + common[place]) - 1
            step = (
                self._end_step(loop.program, last) if common[place] else self._begin_step(pair, row)
            )
            first = Apart(
                self._address(pair, row),
                step,
                counted(int(source_counts[place]), "iteration"),
                f"{int(own_counts[place]):,}",
            )
        values = [
            self._compare_value(pair, loop, number)
            for number in range(len(self.source.regions[pair.number].values))
        ]
        return self._region_across(
            pair, source_counts.tolist(), own_counts.tolist(), first, *values
        )

    def _compare_branch(
        self, pair: MatchedRegions, branches: IfRegion, outer: PairedRows
    ) -> RegionAcross:
        taken, rows = self.run.timeline.executions.branch_rows(branches)
        all_taken = np.array(self.source.regions[pair.number].taken, np.int64)
        own_taken, source_taken = taken[outer.own].astype(np.int64), all_taken[outer.source]
        then = np.cumsum(all_taken)
        inner = np.where(all_taken == 1, then - 1, np.arange(len(all_taken)) - then)
        for name, branch in (("then", 1), ("else", 0)):
            both = np.flatnonzero((own_taken == branch) & (source_taken == branch))
            self.rows[pair.number, name] = PairedRows(
                rows[outer.own[both]].astype(np.int64), inner[outer.source[both]]
            )
        first = None
        for place in np.flatnonzero(own_taken != source_taken)[:1].tolist():
            row = int(outer.own[place])
            words = [
                "the then branch" if side[place] else "the else branch"
                for side in (source_taken, own_taken)
            ]
            first = Apart(self._address(pair, row), self._begin_step(pair, row), *words)
        return self._region_across(pair, source_taken.tolist(), own_taken.tolist(), first)

    def _address(self, pair: MatchedRegions, row: int) -> str:
        graph = self.run.timeline.address(pair.file_region.program, row)
        return f"{graph}/{pair.file_region.instruction.label}"

    def _begin_step(self, pair: MatchedRegions, row: int) -> int:
        program = pair.file_region.program
        return self.run.timeline.step_at(
            program, row, program.instructions.index(pair.file_region.instruction)
        )

    def _end_step(self, body: Program, row: int) -> int:
        return self.run.timeline.step_at(body, row, len(body.instructions))

    # -- values

    def _compare_value(self, pair: MatchedRegions, loop: LoopRegion, number: int) -> ValueAcross:
        value = self.source.regions[pair.number].values[number]
        match = next(
            ((file_value, how) for other, file_value, how in pair.values if other == number),
            None,
        )
        if value.refused or match is None:
            return ValueAcross(
                value.name, "", "", left_out=value.refused or "the file's loop has none like it"
            )
        file_value, how = match
        rows = self.rows[pair.number, "body"]
        stored = 0 if value.rows is None else len(value.rows)
        available = rows.source < stored
        own_rows, source_rows = rows.own[available], rows.source[available]
        refused = ""
        if not available.all():
            done = counted(int(available.sum()), "iteration")
            refused = f"after {done} the source's values were no longer kept"
        if not len(own_rows):
            return ValueAcross(value.name, file_value.label, how, left_out=refused)
        column = self._own_values(loop.program, file_value, own_rows)
        if column is None:
            iterations = counted(len(own_rows), "iteration")
            refused = f"the file's value changes its shape, or cannot be computed for {iterations}"
            return ValueAcross(value.name, file_value.label, how, left_out=refused)
        return self._compare_values(
            loop.program,
            (value, file_value, how),
            PairedRows(own_rows, source_rows),
            column,
            refused,
        )

    def _compare_values(
        self, body: Program, match: _Match, rows: PairedRows, column: np.ndarray, refused: str
    ) -> ValueAcross:
        value, file_value, how = match
        assert value.rows is not None
        assert value.shape is not None
        if not same_shape(column.shape[1:], value.shape):
            source_text, own_text = (
                f"shape [{', '.join(map(str, shape))}]" for shape in (value.shape, column.shape[1:])
            )
            return ValueAcross(
                value.name,
                file_value.label,
                how,
                0,
                self._difference(body, int(rows.own[0]), file_value, source_text, own_text),
            )
        flat, size = _sampled_rows(column), math.prod(value.shape)
        is_whole = flat.shape[1] == size
        own_values = column if is_whole else flat
        source_values = value.rows[rows.source].reshape(own_values.shape)
        place = first_apart(own_values, source_values, self.tolerance)
        first = None
        if place is not None:
            own_text, source_text = element_texts(own_values, source_values, place)
            first = self._difference(
                body, int(rows.own[place[0]]), file_value, source_text, own_text
            )
        remark = "; ".join(
            part
            for part in (refused, "" if is_whole else f"at {flat.shape[1]:,} of {size:,} elements")
            if part
        )
        return ValueAcross(value.name, file_value.label, how, len(own_values), first, remark)

    def _difference(
        self, body: Program, row: int, value: FileValue, source_text: str, own_text: str
    ) -> Apart:
        address = f"{self.run.timeline.address(body, row)}/{value.label}"
        return Apart(address, self._end_step(body, row), source_text, own_text)

    def _own_values(self, body: Program, value: FileValue, rows: np.ndarray) -> np.ndarray | None:
        """Return our values after each iteration, one per row.

        Return None if their shapes differ, or if there are too many to replay.
        """
        column = Columns(self.recorded, body, rows).column(value.result)
        if column is not None:
            return column.of(len(rows))
        if len(rows) > _MAX_REPLAYED:
            return None
        values = [
            self.run.values.get(self.run.timeline, body, int(row), value.result) for row in rows
        ]
        arrays = [np.asarray(value) for value in values if is_tensor(value)]
        if len(arrays) < len(rows) or len({array.shape for array in arrays}) > 1:
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
    """A model output in source and file."""

    name: str
    """Name in the file."""
    source: str
    there: str
    """Source value; empty if source and file agree."""
    here: str
    left_out: str = ""
    place: tuple[int, ...] | None = None
    """Index of the described element; None if no element is described."""
    runtime: str = ""
    """Value of the file's runtime, if it ran and source and file differ."""

    @property
    def differs(self) -> bool:
        return bool(self.there)


def outputs_across(source: SourceRun, run: Run, tolerance: float) -> tuple[OutputAcross, ...]:
    """Compare the outputs by name if the file has all names of the program, otherwise by order.

    Outputs without a match are included.
    """
    results = run.result.outputs
    names = [
        (next(iter(signature.names), signature.name), {signature.name, *signature.names})
        for signature in run.model.outputs
    ]
    numbers = order(source, names, results)
    compared = [
        _output(names[number][0], name, results[number], value, tolerance)
        if number is not None
        else OutputAcross("", name, "", "", "the file has no such output")
        for number, (name, value) in zip(numbers, source.outputs, strict=True)
    ]
    missing = [name for number, (name, _) in enumerate(names) if number not in numbers]
    return (
        *compared,
        *(OutputAcross(name, "", "", "", "the source has no such output") for name in missing),
    )


def order(
    source: SourceRun, file_names: Sequence[tuple[str, set[str]]], results: Sequence[object]
) -> list[int | None]:
    """Return the file's output index of each output of the program; None if the file does not have
    it.

    ``file_names``: display name and all names of each output of the file. ``results``: their
    values, if known.
    """
    by_name = {
        plain(name): number
        for number, (_, aliases) in reversed(list(enumerate(file_names)))
        for name in aliases
    }
    numbers: list[int | None] = [by_name.get(plain(name)) for name, _ in source.outputs]
    if None not in numbers and len(set(numbers)) == len(numbers):
        return numbers
    if len(numbers) == len(file_names):
        return list(range(len(file_names)))
    numbers = []
    for _, value in source.outputs:
        fitting = (
            number
            for number, result in enumerate(results)
            if number not in numbers
            and value is not None
            and is_tensor(result)
            and same_shape(np.shape(np.asarray(result)), value.shape)
        )
        numbers.append(next(fitting, None))
    return numbers


def _output(
    name: str, source: str, own: object, source_value: np.ndarray | None, tolerance: float
) -> OutputAcross:
    if source_value is None:
        return OutputAcross(name, source, "", "", "the source's value is not a tensor of numbers")
    if not is_tensor(own):
        return OutputAcross(name, source, "", "", "the file's value is not a tensor")
    own_array = np.asarray(own)
    if own_array.dtype.kind not in "biufV":
        return OutputAcross(name, source, "", "", f"the file's value is of type {own_array.dtype}")
    if not same_shape(own_array.shape, source_value.shape):
        return OutputAcross(
            name, source, f"shape {shape_text(source_value)}", f"shape {shape_text(own_array)}"
        )
    source_array = source_value.reshape(own_array.shape)
    place = first_apart(own_array[None], source_array[None], tolerance)
    if place is None:
        return OutputAcross(name, source, "", "")
    own_text, source_text = element_texts(own_array[None], source_array[None], place)
    return OutputAcross(name, source, source_text, own_text, "", place)
