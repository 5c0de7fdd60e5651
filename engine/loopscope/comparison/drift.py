"""How far two runs drift apart: every value beside the one it belongs to, in every iteration,
and where it begins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from loopscope.comparison.deviation import Deviations, is_comparable
from loopscope.comparison.divergence import AlignedRows, Divergence, align
from loopscope.comparison.entries import named
from loopscope.comparison.growth import Growth, growth
from loopscope.comparison.largest_logit import other_choice
from loopscope.comparison.matching import How, MatchedGraphs, match, value_pairs
from loopscope.debug.export_value import as_public
from loopscope.debug.result import Result
from loopscope.debug.run import Run, expect_run
from loopscope.errors import EngineError, elided
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Program
from loopscope.executor.record.recording import Record
from loopscope.ir.address import decode
from loopscope.ir.model import Model
from loopscope.ir.readable import readable
from loopscope.native.run_once import never
from loopscope.native.trim_memory import give_back
from loopscope.ops.values import is_tensor
from loopscope.timeline.vectorised import Columns, Recorded

TOLERANCE = 1e-3
"""Of the largest magnitude in a tensor, as ``loopscope compare`` has it."""

COMPARED = Record(budget_bytes=32 * 2**20)
"""What a run records that is made only to be compared, row after row: the runs share the memory
with each other, or with a runtime.
"""


@dataclass(frozen=True, slots=True)
class Moment:
    """One value in one iteration."""

    address: str
    """In the first run, such as ``main/loop[12]/body/delta``."""
    step: int
    """Of the first run: the value is there after it."""
    iteration: int | None
    """Of the innermost loop around; None outside of loops."""
    absolute: float
    relative: float
    cosine: float


def cosine_words(moment: Moment) -> str:
    """Return the end of a sentence with the cosine; empty where a side has no direction: it is
    all zeros, or not finite.
    """
    return f", cosine {moment.cosine:.6f}" if math.isfinite(moment.cosine) else ""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedSlot:
    """A value of the first run, in all rows that were compared."""

    one: str
    """Its address in the first model, without iterations."""
    program: Program
    """The graph that holds it."""
    position: int
    """The instruction after which it is there."""
    rows: AlignedRows
    deviations: Deviations

    def moment(self, run: Run, row: int) -> Moment:
        """Of one of the rows, by its number among them; ``run`` is the first."""
        number, iteration = int(self.rows.one[row]), int(self.rows.iteration[row])
        address = f"{run.timeline.address(self.program, number)}/{self.one.rpartition('/')[2]}"
        errors = (
            float(column[row])
            for column in (
                self.deviations.absolute,
                self.deviations.relative,
                self.deviations.cosine,
            )
        )
        step = run.timeline.step_at(self.program, number, self.position)
        return Moment(address, step, iteration if iteration >= 0 else None, *errors)


@dataclass(frozen=True, slots=True, eq=False)
class MatchedSlots(ComparedSlot):
    """A value of the first run and the one of the second that it belongs to, in all rows that
    stand beside each other.
    """

    other: str
    """The place of the second value in its model, without iterations."""
    how: How
    beside: Program
    """The graph of the second run that holds it."""
    worst: Moment
    first: Moment | None
    """The first over the tolerance."""
    growth: Growth | None
    """Over the execution of the innermost loop in which it is first over the tolerance, or
    worst; None outside of loops.
    """

    def address_beside(self, run: Run, row: int) -> str:
        """Of the second value in one of the rows; ``run`` is the second."""
        return f"{run.timeline.address(self.beside, int(self.rows.other[row]))}/{self.other.rpartition('/')[2]}"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Drift:
    """What came of comparing two runs, as data and in words."""

    tolerance: float
    pairs: tuple[MatchedSlots, ...]
    """In the order of the first model's graphs."""
    first: MatchedSlots | None
    """The pair that is first over the tolerance, in the order of the first run; None where none
    is.
    """
    partings: tuple[Divergence, ...]
    """Of each loop and If the first execution that differs, in the order of the first run."""
    unmatched: tuple[tuple[str, ...], tuple[str, ...]]
    """Places of each model that belong to nothing in the other."""
    left_out: Mapping[str, int]
    """How many pairs were not compared, by the reason."""
    outputs: float
    """The largest relative error of an output of the model; infinite where one has another shape or
    only one side has a NaN there, NaN where none was compared.
    """
    unpacking: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Places of each model that only unpack weights, which the other keeps as they are or packs
    otherwise: no operations of the model.
    """
    choice: str = ""
    """A sentence on a language model's output whose largest logit is another one; empty where
    there is none.
    """
    unrounded: tuple[str, ...] = ()
    """Addresses in the second model that its rounding names and leaves as they are: only shapes,
    indices and trip counts follow.
    """

    @property
    def worst(self) -> MatchedSlots | None:
        """The pair with the largest relative error."""
        return max(self.pairs, key=lambda pair: pair.worst.relative, default=None)

    @property
    def sentence(self) -> str:
        """What to know, in one to three sentences."""
        told = [self._beginning, *(parting.sentence for parting in self.partings[:1])]
        if self.first is not None and not math.isnan(self.outputs):
            told.append(
                "An output has another shape, or is finite on one side only."
                if math.isinf(self.outputs)
                else f"The outputs are at most {self.outputs:.2g} apart."
            )
        return " ".join(part for part in (*told, self.choice, self._unrounded) if part)

    @property
    def _unrounded(self) -> str:
        if not self.unrounded:
            return ""
        total, first = len(self.unrounded), f"`{elided(readable(self.unrounded[0]))}`"
        places = f"{first} stays" if total == 1 else f"{total:,} values, such as {first}, stay"
        return f"{places} unrounded: only shapes, indices, trip counts or bounds of slices follow."

    @property
    def _beginning(self) -> str:
        values = sum(len(pair.deviations.absolute) for pair in self.pairs)
        if self.first is None or self.first.first is None:
            worst = self.worst
            if worst is None:
                return "No value could be compared."
            if not worst.worst.relative:
                return f"All {values:,} values are equal."
            most = f"the largest difference is {worst.worst.relative:.2g}, of {_place(worst, worst.worst)}"
            return f"All {values:,} values agree within {self.tolerance:g}; {most}."
        begins = f"Begins in {_place(self.first, self.first.first)}"
        return (
            f"{begins}; {self.first.growth.words}."
            if self.first.growth
            else f"{begins}, with {self.first.first.relative:.2g}."
        )


def drift(
    one: Run, other: Run, *, tolerance: float = TOLERANCE, stopped: Callable[[], bool] = never
) -> Drift:
    """Compares two finished runs, of one model or of two, value by value and iteration by
    iteration.

    Loops and values belong together by name (in ONNX by that of the tensor first), then by
    structure, then by shape, and of several alike by the correlation of their values; loops of
    unequal counts are compared as far as both go. Errors are relative to the largest magnitude in
    either tensor. Runs that recorded everything are compared fastest. ``EngineError`` when a run
    has not finished, or ``stopped`` says yes between two graphs or rows.
    """
    for run in (one, other):
        expect_run(run, "loopscope.drift")
        if run.state != "finished":
            raise EngineError(
                f"only runs that have finished can be compared, and one is {run.state}: {run.failure or 'run() runs it'}"
            )
    give_back()
    graphs = match(one, other)
    rows, partings = align(one, other, graphs)
    comparing = _Comparing((one, other), tolerance, stopped)
    pairs = [pair for graph in graphs for pair in comparing.pairs(graph, rows[graph])]
    unmatched = (
        tuple(f"{graph.one.address}/{entry.label}" for graph in graphs for entry in graph.only_one),
        tuple(
            f"{graph.other.address}/{entry.label}" for graph in graphs for entry in graph.only_other
        ),
    )
    unpacking = (
        tuple(
            f"{graph.one.address}/{entry.label}" for graph in graphs for entry in graph.unpacking[0]
        ),
        tuple(
            f"{graph.other.address}/{entry.label}"
            for graph in graphs
            for entry in graph.unpacking[1]
        ),
    )
    return Drift(
        tolerance,
        tuple(pairs),
        first_over(pairs),
        tuple(partings),
        unmatched,
        dict(comparing.left_out),
        outputs_apart(one.model, one.result, other.model, other.result),
        unpacking,
        other_choice(_outputs(one.model, one.result, other.model, other.result)),
        other.unrounded,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ComparedValues:
    """Two values that belong together."""

    one: str
    other: str
    how: How
    programs: tuple[Program, Program]
    slots: tuple[Slot, Slot]
    position: int
    """The instruction of the first run after which it is there."""


@dataclass(slots=True, eq=False)
class _Comparing:
    """Two runs while their values are compared."""

    runs: tuple[Run, Run]
    tolerance: float
    stopped: Callable[[], bool]
    left_out: Counter[str] = field(default_factory=Counter[str])

    def pairs(self, graph: MatchedGraphs, rows: AlignedRows) -> Iterator[MatchedSlots]:
        asked = [
            ComparedValues(
                f"{graph.one.address}/{named(pair.one, number)}", f"{graph.other.address}/{named(pair.other, number)}", pair.how,
                (graph.one, graph.other), (mine, theirs), pair.one.position + 1,
            )
            for pair in graph.pairs
            for number, mine, theirs in value_pairs(pair)
        ]  # fmt: skip
        if not len(rows.one):
            if asked:
                self.left_out["that did not run in both"] += len(asked)
            return
        found = self._in_columns(graph, rows, asked)
        found |= self._row_by_row(graph, rows, [one for one in asked if one not in found])
        for one in asked:
            if one in found:
                yield made(self.runs[0], rows, one, found[one], self.tolerance)

    def _go_on(self) -> None:
        if self.stopped():
            raise EngineError("the comparison was stopped")

    def _in_columns(
        self, graph: MatchedGraphs, rows: AlignedRows, asked: Sequence[ComparedValues]
    ) -> dict[ComparedValues, Deviations]:
        """Those whose rows are recorded, or follow elementwise from what is."""
        if graph.one.parent is None or graph.other.parent is None:
            return {}
        sides = [
            Columns(Recorded(run.timeline), program, numbers)
            for run, program, numbers in zip(
                self.runs, (graph.one, graph.other), (rows.one, rows.other), strict=True
            )
        ]
        found: dict[ComparedValues, Deviations] = {}
        for one in asked:
            self._go_on()
            columns = [side.column(slot) for side, slot in zip(sides, one.slots, strict=True)]
            arrays = [
                as_public(column.of(len(rows.one))) for column in columns if column is not None
            ]
            if (
                len(arrays) == 2
                and arrays[0].shape == arrays[1].shape
                and all(map(is_comparable, arrays))
            ):
                found[one] = Deviations.of(*arrays)
        return found

    def _row_by_row(
        self, graph: MatchedGraphs, rows: AlignedRows, asked: Sequence[ComparedValues]
    ) -> dict[ComparedValues, Deviations]:
        """The others; all of a row before the next, the last value first: what it takes to
        compute that one are most of the others.
        """
        parts: dict[ComparedValues, list[Deviations]] = {
            one: [] for one in sorted(asked, key=lambda one: -one.position)
        }
        programs = graph.one, graph.other
        for numbers in zip(rows.one.tolist(), rows.other.tolist(), strict=True):
            self._go_on()
            for one in [*parts]:
                sides = zip(self.runs, programs, numbers, one.slots, strict=True)
                values = [
                    run.values.get(run.timeline, program, row, slot)
                    for run, program, row, slot in sides
                ]
                arrays = (
                    [as_public(value) for value in values] if all(map(is_tensor, values)) else []
                )
                if reason := _not_compared(arrays):
                    self.left_out[reason] += 1
                    del parts[one]
                else:
                    parts[one].append(Deviations.of(arrays[0][None], arrays[1][None]))
        return {one: Deviations.joined(found) for one, found in parts.items()}


def _not_compared(arrays: Sequence[np.ndarray]) -> str:
    """Why two values are not compared; empty where they are."""
    if not arrays:
        return "that are no tensors"
    if not all(map(is_comparable, arrays)):
        return "that are texts"
    return "of another shape" if arrays[0].shape != arrays[1].shape else ""


def made(
    run: Run, rows: AlignedRows, asked: ComparedValues, found: Deviations, tolerance: float
) -> MatchedSlots:
    """What is to be said of two values, by how far they are apart in each row."""
    over = np.flatnonzero(~(found.relative <= tolerance))
    worst = int(np.argmax(found.relative))
    begin = int(over[0]) if len(over) else None
    execution = np.flatnonzero(rows.execution == rows.execution[worst if begin is None else begin])
    grown = growth(found.relative[execution], tolerance) if rows.iteration[worst] >= 0 else None
    program, beside = asked.programs
    place = ComparedSlot(asked.one, program, asked.position, rows, found)
    first = None if begin is None else place.moment(run, begin)
    return MatchedSlots(
        place.one, program, asked.position, rows, found, asked.other, asked.how, beside, place.moment(run, worst), first, grown
    )  # fmt: skip


def first_over(pairs: Iterable[MatchedSlots]) -> MatchedSlots | None:
    """The pair that is first over the tolerance, in the order of the first run."""
    over = [(pair.first.step, pair) for pair in pairs if pair.first is not None]
    return min(over, key=lambda one: one[0])[1] if over else None


def outputs_apart(model: Model, result: Result, other_model: Model, other_result: Result) -> float:
    """The largest relative error of an output, by name where the models have the same, else by
    position; NaN where none is compared.
    """
    return values_apart(
        (mine, theirs) for _, mine, theirs in _outputs(model, result, other_model, other_result)
    )


def _outputs(
    model: Model, result: Result, other_model: Model, other_result: Result
) -> Iterator[tuple[str, object, object]]:
    """The name and both values of each output."""
    others = other_result.outputs
    results = {
        signature.name: value for signature, value in zip(other_model.outputs, others, strict=True)
    }
    for number, (signature, mine) in enumerate(zip(model.outputs, result.outputs, strict=True)):
        yield (
            signature.name,
            mine,
            results.get(signature.name, others[number] if number < len(others) else None),
        )


def values_apart(sides: Iterable[tuple[object, object]]) -> float:
    """The largest relative error of pairs of values; NaN where no two are numbers, infinite for
    two shapes.
    """
    errors: list[float] = []
    for mine, theirs in sides:
        if (
            not isinstance(mine, np.ndarray)
            or not isinstance(theirs, np.ndarray)
            or not is_comparable(mine)
            or not is_comparable(theirs)
        ):
            continue
        errors.append(
            math.inf
            if mine.shape != theirs.shape
            else float(Deviations.of(mine[None], theirs[None]).relative[0])
        )
    return max(errors, default=math.nan)


def _place(pair: MatchedSlots, moment: Moment) -> str:
    """Where a value is, in words: its loop, the iteration, its name."""
    name = decode(pair.one.rpartition("/")[2])
    if moment.iteration is None:
        return f"`{name}`"
    loop = decode(
        next(
            segment.partition("[")[0]
            for segment in reversed(moment.address.split("/"))
            if "[" in segment
        )
    )
    return f"`{loop}` at iteration {moment.iteration:,} in `{name}`"
