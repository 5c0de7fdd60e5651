"""Drift between two runs: every value compared with its match in every iteration, and the first
difference.
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
from loopscope.ir.number_text import significant
from loopscope.ir.readable import readable
from loopscope.native.run_once import never
from loopscope.native.trim_memory import give_back
from loopscope.ops.values import is_tensor
from loopscope.timeline.vectorised import Columns, Recorded

TOLERANCE = 1e-3
"""Default tolerance relative to the largest magnitude in a tensor, as in ``loopscope compare``."""

COMPARED = Record(budget_bytes=32 * 2**20)
"""Recording options of a run that is only compared row by row; compared runs, or a runtime, share
the memory.
"""


@dataclass(frozen=True, slots=True)
class Moment:
    """Deviation of one value in one iteration."""

    address: str
    """Address in the first run, such as ``main/loop[12]/body/delta``."""
    step: int
    """Step of the first run after which the value is available."""
    iteration: int | None
    """Iteration of the innermost enclosing loop; None outside loops."""
    absolute: float
    relative: float
    cosine: float


def cosine_words(moment: Moment) -> str:
    """Return the end of a sentence with the cosine.

    Return an empty text if a side does not have a direction: all zeros, or not finite.
    """
    return f", cosine {moment.cosine:.6f}" if math.isfinite(moment.cosine) else ""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedSlot:
    """A value of the first run in all compared rows."""

    one: str
    """Address in the first model, without iterations."""
    program: Program
    """Graph of the value."""
    position: int
    """Number of the instruction after which the value is available."""
    rows: AlignedRows
    deviations: Deviations

    def moment(self, run: Run, row: int) -> Moment:
        """Return the deviation in a row (index into ``rows``); ``run`` is the first run."""
        number, iteration = int(self.rows.left[row]), int(self.rows.iteration[row])
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
    """A value of the first run and its match in the second, in all aligned rows."""

    other: str
    """Address in the second model, without iterations."""
    how: How
    beside: Program
    """Graph of the second value."""
    worst: Moment
    first: Moment | None
    """First moment over the tolerance."""
    growth: Growth | None
    """Growth over the execution of the innermost loop with the first moment over the tolerance, or
    the worst.

    None outside loops.
    """

    def address_beside(self, run: Run, row: int) -> str:
        """Return the address of the second value in a row; ``run`` is the second run."""
        graph = run.timeline.address(self.beside, int(self.rows.right[row]))
        return f"{graph}/{self.other.rpartition('/')[2]}"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Drift:
    """Result of comparing two runs."""

    tolerance: float
    pairs: tuple[MatchedSlots, ...]
    """Matched values in the order of the first model's graphs."""
    first: MatchedSlots | None
    """Pair that is first over the tolerance in the first run; None if all are within it."""
    partings: tuple[Divergence, ...]
    """First differing execution of each loop and If, in the order of the first run."""
    unmatched: tuple[tuple[str, ...], tuple[str, ...]]
    """Addresses in each model that do not have a match in the other."""
    left_out: Mapping[str, int]
    """Number of pairs that were not compared, by reason."""
    outputs: float
    """Largest relative error of a model output; NaN if none was compared.

    Infinite if an output has a different shape, or a NaN on one side only.
    """
    unpacking: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Addresses in each model that only unpack weights, which the other model does not pack, or
    packs differently.
    """
    choice: str = ""
    """Sentence about a language model's output whose largest logit differs; empty if there is
    none.
    """
    unrounded: tuple[str, ...] = ()
    """Addresses in the second model that its rounding names but leaves unchanged.

    Only shapes, indices and trip counts follow from them.
    """

    @property
    def worst(self) -> MatchedSlots | None:
        """Pair with the largest relative error."""
        return max(self.pairs, key=lambda pair: pair.worst.relative, default=None)

    @property
    def sentence(self) -> str:
        """Summary in one to three sentences."""
        parts = [self._first_sentence, *(parting.sentence for parting in self.partings[:1])]
        if self.first is not None and not math.isnan(self.outputs):
            parts.append(
                "An output has another shape, or is finite on one side only."
                if math.isinf(self.outputs)
                else f"The outputs are at most {significant(self.outputs, 2)} apart."
            )
        return " ".join(part for part in (*parts, self.choice, self._unrounded) if part)

    @property
    def _unrounded(self) -> str:
        if not self.unrounded:
            return ""
        total, first = len(self.unrounded), f"`{elided(readable(self.unrounded[0]))}`"
        places = f"{first} stays" if total == 1 else f"{total:,} values, such as {first}, stay"
        return f"{places} unrounded: only shapes, indices, trip counts or bounds of slices follow."

    @property
    def _first_sentence(self) -> str:
        values = sum(len(pair.deviations.absolute) for pair in self.pairs)
        if self.first is None or self.first.first is None:
            worst = self.worst
            if worst is None:
                return "No value could be compared."
            if not worst.worst.relative:
                return f"All {values:,} values are equal."
            error = f"{significant(worst.worst.relative, 2)}, of {_place(worst, worst.worst)}"
            largest = f"the largest difference is {error}"
            return (
                f"All {values:,} values agree within {significant(self.tolerance, 6)}; {largest}."
            )
        begins = f"Begins in {_place(self.first, self.first.first)}"
        return (
            f"{begins}; {self.first.growth.words}."
            if self.first.growth
            else f"{begins}, with {significant(self.first.first.relative, 2)}."
        )


def drift(
    left: Run, right: Run, *, tolerance: float = TOLERANCE, stopped: Callable[[], bool] = never
) -> Drift:
    """Compare two finished runs, of one model or of two, value by value and iteration by iteration.

    Loops and values are matched by name (in ONNX by tensor name first), then structure, then shape.
    Several values of one shape are matched by correlation. Loops of different iteration counts are
    compared up to the smaller count. Errors are relative to the largest magnitude in either tensor.
    Runs that recorded everything are compared fastest. Raise ``EngineError`` if a run is not
    finished, or if ``stopped`` returns True between two graphs or rows.
    """
    for run in (left, right):
        expect_run(run, "loopscope.drift")
        if run.state != "finished":
            raise EngineError(
                f"only runs that have finished can be compared, and one is {run.state}: "
                f"{run.failure or 'run() runs it'}"
            )
    give_back()
    graphs = match(left, right)
    rows, divergences = align(left, right, graphs)
    comparing = _Comparing((left, right), tolerance, stopped)
    pairs = [pair for graph in graphs for pair in comparing.pairs(graph, rows[graph])]
    unmatched = (
        tuple(
            f"{graph.left.address}/{entry.label}" for graph in graphs for entry in graph.only_one
        ),
        tuple(
            f"{graph.right.address}/{entry.label}" for graph in graphs for entry in graph.only_other
        ),
    )
    unpacking = (
        tuple(
            f"{graph.left.address}/{entry.label}"
            for graph in graphs
            for entry in graph.unpacking[0]
        ),
        tuple(
            f"{graph.right.address}/{entry.label}"
            for graph in graphs
            for entry in graph.unpacking[1]
        ),
    )
    return Drift(
        tolerance,
        tuple(pairs),
        first_over(pairs),
        tuple(divergences),
        unmatched,
        dict(comparing.left_out),
        outputs_apart(left.model, left.result, right.model, right.result),
        unpacking,
        other_choice(_outputs(left.model, left.result, right.model, right.result)),
        right.unrounded,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ComparedValues:
    """A pair of matching values."""

    one: str
    other: str
    how: How
    programs: tuple[Program, Program]
    slots: tuple[Slot, Slot]
    position: int
    """Number of the first run's instruction after which the value is available."""


@dataclass(slots=True, eq=False)
class _Comparing:
    """Comparison of the values of two runs."""

    runs: tuple[Run, Run]
    tolerance: float
    stopped: Callable[[], bool]
    left_out: Counter[str] = field(default_factory=Counter[str])

    def pairs(self, graph: MatchedGraphs, rows: AlignedRows) -> Iterator[MatchedSlots]:
        candidates = [
            ComparedValues(
                f"{graph.left.address}/{named(pair.one, number)}",
                f"{graph.right.address}/{named(pair.other, number)}",
                pair.how,
                (graph.left, graph.right),
                (left_slot, right_slot),
                pair.one.position + 1,
            )
            for pair in graph.pairs
            for number, left_slot, right_slot in value_pairs(pair)
        ]
        if not len(rows.left):
            if candidates:
                self.left_out["that did not run in both"] += len(candidates)
            return
        deviations = self._in_columns(graph, rows, candidates)
        deviations |= self._row_by_row(
            graph, rows, [values for values in candidates if values not in deviations]
        )
        for values in candidates:
            if values in deviations:
                yield matched_slots(self.runs[0], rows, values, deviations[values], self.tolerance)

    def _check_stopped(self) -> None:
        if self.stopped():
            raise EngineError("the comparison was stopped")

    def _in_columns(
        self, graph: MatchedGraphs, rows: AlignedRows, candidates: Sequence[ComparedValues]
    ) -> dict[ComparedValues, Deviations]:
        """Compare the values whose rows are recorded, or follow elementwise from recorded rows."""
        if graph.left.parent is None or graph.right.parent is None:
            return {}
        sides = [
            Columns(Recorded(run.timeline), program, numbers)
            for run, program, numbers in zip(
                self.runs, (graph.left, graph.right), (rows.left, rows.right), strict=True
            )
        ]
        deviations: dict[ComparedValues, Deviations] = {}
        for values in candidates:
            self._check_stopped()
            columns = [side.column(slot) for side, slot in zip(sides, values.slots, strict=True)]
            arrays = [
                as_public(column.of(len(rows.left))) for column in columns if column is not None
            ]
            if (
                len(arrays) == 2
                and arrays[0].shape == arrays[1].shape
                and all(map(is_comparable, arrays))
            ):
                deviations[values] = Deviations.of(*arrays)
        return deviations

    def _row_by_row(
        self, graph: MatchedGraphs, rows: AlignedRows, candidates: Sequence[ComparedValues]
    ) -> dict[ComparedValues, Deviations]:
        """Compare the remaining values row by row, last value first.

        Replaying the last value computes most of the others.
        """
        parts: dict[ComparedValues, list[Deviations]] = {
            candidate: []
            for candidate in sorted(candidates, key=lambda candidate: -candidate.position)
        }
        programs = graph.left, graph.right
        for numbers in zip(rows.left.tolist(), rows.right.tolist(), strict=True):
            self._check_stopped()
            for candidate in [*parts]:
                sides = zip(self.runs, programs, numbers, candidate.slots, strict=True)
                values = [
                    run.values.get(run.timeline, program, row, slot)
                    for run, program, row, slot in sides
                ]
                arrays = (
                    [as_public(value) for value in values] if all(map(is_tensor, values)) else []
                )
                if reason := _not_compared(arrays):
                    self.left_out[reason] += 1
                    del parts[candidate]
                else:
                    parts[candidate].append(Deviations.of(arrays[0][None], arrays[1][None]))
        return {
            candidate: Deviations.joined(row_deviations)
            for candidate, row_deviations in parts.items()
        }


def _not_compared(arrays: Sequence[np.ndarray]) -> str:
    """Return why two values cannot be compared; empty if they can."""
    if not arrays:
        return "that are not tensors"
    if not all(map(is_comparable, arrays)):
        return "that are texts"
    return "of another shape" if arrays[0].shape != arrays[1].shape else ""


def matched_slots(
    run: Run, rows: AlignedRows, values: ComparedValues, deviations: Deviations, tolerance: float
) -> MatchedSlots:
    """Return the comparison of two values from their deviations in each row."""
    over = np.flatnonzero(~(deviations.relative <= tolerance))
    worst = int(np.argmax(deviations.relative))
    begin = int(over[0]) if len(over) else None
    execution = np.flatnonzero(rows.execution == rows.execution[worst if begin is None else begin])
    error_growth = (
        growth(deviations.relative[execution], tolerance) if rows.iteration[worst] >= 0 else None
    )
    program, beside = values.programs
    place = ComparedSlot(values.one, program, values.position, rows, deviations)
    first = None if begin is None else place.moment(run, begin)
    return MatchedSlots(
        place.one,
        program,
        values.position,
        rows,
        deviations,
        values.other,
        values.how,
        beside,
        place.moment(run, worst),
        first,
        error_growth,
    )


def first_over(pairs: Iterable[MatchedSlots]) -> MatchedSlots | None:
    """Return the pair that is first over the tolerance in the first run."""
    over = [(pair.first.step, pair) for pair in pairs if pair.first is not None]
    return min(over, key=lambda entry: entry[0])[1] if over else None


def outputs_apart(model: Model, result: Result, other_model: Model, other_result: Result) -> float:
    """Return the largest relative error of an output; NaN if none can be compared.

    Outputs are matched by name if the models share the name, otherwise by position.
    """
    return values_apart(
        (left, right) for _, left, right in _outputs(model, result, other_model, other_result)
    )


def _outputs(
    model: Model, result: Result, other_model: Model, other_result: Result
) -> Iterator[tuple[str, object, object]]:
    """Yield the name and both values of each output."""
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
    """Return the largest relative error of pairs of values.

    NaN if no pair consists of numbers, infinite if the shapes differ.
    """
    errors: list[float] = []
    for left, right in sides:
        if (
            not isinstance(left, np.ndarray)
            or not isinstance(right, np.ndarray)
            or not is_comparable(left)
            or not is_comparable(right)
        ):
            continue
        errors.append(
            math.inf
            if left.shape != right.shape
            else float(Deviations.of(left[None], right[None]).relative[0])
        )
    return max(errors, default=math.nan)


def _place(pair: MatchedSlots, moment: Moment) -> str:
    """Describe a value by its loop, iteration and name."""
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
