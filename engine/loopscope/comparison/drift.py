"""Drift between two runs: every value compared with its match in every iteration, and the first
difference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from loopscope.comparison.chunk_steps import StepApart, compare_steps, first_step
from loopscope.comparison.chunks import Alignment
from loopscope.comparison.deviation import Deviations, is_comparable
from loopscope.comparison.divergence import AlignedRows, Divergence, align
from loopscope.comparison.entries import named
from loopscope.comparison.matched_slots import (
    ComparedValues,
    MatchedSlots,
    choice_in_loop,
    first_over,
    matched_slots,
    other_choice,
    place_words,
)
from loopscope.comparison.matching import MatchedGraphs, match, value_pairs
from loopscope.comparison.recorded_columns import alike_samples, recorded_column
from loopscope.comparison.region_matching import RequestedPair, is_carried, is_received, is_recorded
from loopscope.debug.result import Result, as_public
from loopscope.debug.run import Run, expect_run
from loopscope.errors import EngineError, elided
from loopscope.executor.plan.slots import Slot
from loopscope.executor.record.recording import Record
from loopscope.ir.model import Model
from loopscope.ir.readable import readable, significant
from loopscope.ir.recorded_rows import is_trace
from loopscope.native import trim_heap
from loopscope.native.run_once import never
from loopscope.ops.values import NO_VALUE, is_tensor
from loopscope.timeline.vectorised import Columns, Recorded

TOLERANCE = 1e-3
"""Default tolerance relative to the largest magnitude in a tensor, as in ``loopscope compare``."""

COMPARED = Record(budget_bytes=32 * 2**20)
"""Recording options of a run that is only compared row by row; compared runs, or a runtime, share
the memory.
"""


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
    step: StepApart | None = None
    """First step over the tolerance, if a chunked loop was compared with a sequential one."""
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
            if self.step is not None:
                return (
                    f"The states at the ends of all chunks agree within {self.tolerance:g}, and "
                    f"{self.step.words}, in {self.step.chunk}."
                )
            worst = self.worst
            if worst is None:
                return "No value could be compared."
            if not worst.worst.relative:
                return f"All {values:,} values are equal."
            error = f"{significant(worst.worst.relative, 2)}, of {place_words(worst, worst.worst)}"
            largest = f"the largest difference is {error}"
            return (
                f"All {values:,} values agree within {significant(self.tolerance, 6)}; {largest}."
            )
        begins = f"Begins in {place_words(self.first, self.first.first)}"
        chunked = self.first.rows.chunked
        if self.step is not None and chunked is not None and not chunked.per_step:
            begins += f"; {self.step.words}"
        return (
            f"{begins}; {self.first.growth.words}."
            if self.first.growth
            else f"{begins}, with {significant(self.first.first.relative, 2)}."
        )


def drift(
    left: Run,
    right: Run,
    *,
    tolerance: float = TOLERANCE,
    stopped: Callable[[], bool] = never,
    pairs: Sequence[RequestedPair] = (),
    alignment: Alignment | None = None,
) -> Drift:
    """Compare two finished runs, of one model or of two, value by value and iteration by iteration.

    Loops and values are matched by name (in ONNX by tensor name first), then structure, then shape.
    Several values of one shape are matched by correlation. Loops of different iteration counts are
    compared up to the smaller count. ``pairs`` match loops and values before all else.
    ``alignment`` compares the states of a sequential loop with those of a chunked one. Errors are
    relative to the largest magnitude in either tensor.
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
    trim_heap()
    graphs = match(left, right, pairs)
    rows, divergences = align(left, right, graphs, alignment)
    comparing = _Comparing((left, right), tolerance, stopped)
    compared = [pair for graph in graphs for pair in comparing.pairs(graph, rows[graph])]
    outputs = (
        []  # a trace has no outputs but the last values of its loops
        if is_trace(left.model) or is_trace(right.model)
        else [*_outputs(left.model, left.result, right.model, right.result)]
    )
    unmatched = _unmatched(left, right, graphs)
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
        tuple(compared),
        first_over(compared),
        tuple(divergences),
        unmatched,
        dict(comparing.left_out),
        values_apart(output[1:] for output in outputs),
        unpacking,
        other_choice(outputs) or choice_in_loop((left, right), compared),
        first_step(compared, outputs, rows.values(), tolerance),
        right.unrounded,
    )


def _unmatched(
    left: Run, right: Run, graphs: Sequence[MatchedGraphs]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the addresses in each model without a match.

    A program records few of the values of a model, so that those of a model beside a trace are left
    out.
    """
    is_left_trace, is_right_trace = is_trace(left.model), is_trace(right.model)
    return (
        ()
        if is_right_trace and not is_left_trace
        else tuple(
            f"{graph.left.address}/{entry.label}" for graph in graphs for entry in graph.only_one
        ),
        ()
        if is_left_trace and not is_right_trace
        else tuple(
            f"{graph.right.address}/{entry.label}" for graph in graphs for entry in graph.only_other
        ),
    )


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
                at_chunk_ends=pair.how == "request"
                or (is_recorded(pair.one) and is_recorded(pair.other))
                or (is_carried(graph.left, pair.one) and is_carried(graph.right, pair.other)),
                at_chunk_starts=is_received(graph.left, pair.one)
                and is_received(graph.right, pair.other),
            )
            for pair in graph.pairs
            if not (self._has_trace and pair.one.region)
            for number, left_slot, right_slot in value_pairs(pair)
        ]
        if not len(rows.left):
            if candidates:
                self.left_out["that did not run in both"] += len(candidates)
            return
        if rows.chunked is not None:
            by_step = compare_steps(self.runs, rows.chunked, candidates)
            for values, (step_rows, step_errors) in by_step.items():
                yield matched_slots(self.runs[0], step_rows, values, step_errors, self.tolerance)
            remaining = [values for values in candidates if values not in by_step]
            at_starts = [values for values in remaining if values.at_chunk_starts]
            yield from self._compared(graph, rows.chunked.starts(), at_starts)
            candidates = [
                values
                for values in remaining
                if values.at_chunk_ends and not values.at_chunk_starts
            ]
            if inner := len(remaining) - len(at_starts) - len(candidates):
                self.left_out["inside chunks"] += inner
        yield from self._compared(graph, rows, candidates)

    def _compared(
        self, graph: MatchedGraphs, rows: AlignedRows, candidates: Sequence[ComparedValues]
    ) -> Iterator[MatchedSlots]:
        """Yield the candidates with their errors in these rows."""
        deviations = self._in_columns(graph, rows, candidates)
        parts = {values: (rows, errors) for values, errors in deviations.items()}
        parts |= self._row_by_row(
            graph, rows, [values for values in candidates if values not in deviations]
        )
        for values in candidates:
            if values in parts:
                yield matched_slots(
                    self.runs[0], parts[values][0], values, parts[values][1], self.tolerance
                )

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
            arrays = [
                array
                for side, slot, numbers in zip(
                    sides, values.slots, (rows.left, rows.right), strict=True
                )
                if (array := _column(side, slot, numbers)) is not None
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
    ) -> dict[ComparedValues, tuple[AlignedRows, Deviations]]:
        """Compare the remaining values row by row, last value first.

        Replaying the last value computes most of the others. Rows in which a trace does not have
        the value are left out.
        """
        parts: dict[ComparedValues, list[tuple[int, Deviations]]] = {
            candidate: []
            for candidate in sorted(candidates, key=lambda candidate: -candidate.position)
        }
        programs = graph.left, graph.right
        for place, numbers in enumerate(zip(rows.left.tolist(), rows.right.tolist(), strict=True)):
            self._check_stopped()
            for candidate in [*parts]:
                sides = zip(self.runs, programs, numbers, candidate.slots, strict=True)
                values: Sequence[object] = [
                    run.values.get(run.timeline, program, row, slot)
                    for run, program, row, slot in sides
                ]
                if any(value is NO_VALUE for value in values) and self._has_trace:
                    continue
                values = alike_samples(programs, numbers, candidate.slots, values)
                arrays = (
                    [as_public(value) for value in values] if all(map(is_tensor, values)) else []
                )
                if reason := _not_compared(arrays):
                    self.left_out[reason] += 1
                    del parts[candidate]
                else:
                    error = Deviations.of(arrays[0][None], arrays[1][None])
                    parts[candidate].append((place, error))
        return {
            candidate: (
                rows.part([place for place, _ in errors]),
                Deviations.joined([error for _, error in errors]),
            )
            for candidate, errors in parts.items()
            if errors
        }

    @property
    def _has_trace(self) -> bool:
        return any(is_trace(run.model) for run in self.runs)


def _column(side: Columns, slot: Slot, rows: np.ndarray) -> np.ndarray | None:
    """Return a value in all rows as one array; None if it must be computed row by row."""
    if (recorded := recorded_column(side.program, slot, rows)) is not None:
        return recorded
    column = side.column(slot)
    return None if column is None else as_public(column.of(len(rows)))


def _not_compared(arrays: Sequence[np.ndarray]) -> str:
    """Return why two values cannot be compared; empty if they can."""
    if not arrays:
        return "that are not tensors"
    if not all(map(is_comparable, arrays)):
        return "that are texts"
    return "of another shape" if arrays[0].shape != arrays[1].shape else ""


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
