"""Comparison of the steps inside chunks, and the first step that differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopscope.comparison.chunks import first_step_apart, step_axis
from loopscope.comparison.deviation import Deviations, is_comparable
from loopscope.comparison.divergence import AlignedRows, Chunked
from loopscope.comparison.matched_slots import ComparedValues, MatchedSlots
from loopscope.debug.result import as_public
from loopscope.debug.run import Run
from loopscope.ir.address import decode
from loopscope.ops.values import is_tensor


@dataclass(frozen=True, slots=True)
class StepApart:
    """First step at which a value differs that both loops have for each step."""

    name: str
    """Name of the value: of the body, or an output of the model."""
    step: int
    error: float
    """Relative error at that step."""
    chunk: str
    """Chunk that contains the step, in words."""

    @property
    def words(self) -> str:
        return f"`{self.name}` differs from step {self.step:,} on"


def compare_steps(
    runs: tuple[Run, Run], chunked: Chunked, candidates: Sequence[ComparedValues]
) -> dict[ComparedValues, tuple[AlignedRows, Deviations]]:
    """Compare the values that the chunked loop computes for all steps of a chunk at once.

    Other candidates are missing in the result.
    """
    compared: dict[ComparedValues, tuple[AlignedRows, Deviations]] = {}
    if not len(chunked.steps):
        return compared
    long, short = chunked.chunks.longer, 1 - chunked.chunks.longer
    sides = (chunked.steps, chunked.chunk_of_step)
    rows = AlignedRows(
        sides[long],
        sides[short],
        chunked.execution,
        chunked.step_numbers,
        replace(chunked, per_step=True),
    )
    for values in candidates:
        errors = _step_errors(runs, chunked, values)
        if errors is not None:
            compared[values] = rows, errors
    return compared


def _step_errors(
    runs: tuple[Run, Run], chunked: Chunked, values: ComparedValues
) -> Deviations | None:
    """Return the deviation of each step; None if the shapes are not those of steps and a chunk."""
    long, short = chunked.chunks.longer, 1 - chunked.chunks.longer

    def value(side: int, row: int) -> np.ndarray | None:
        run, program, slot = runs[side], values.programs[side], values.slots[side]
        result = run.values.get(run.timeline, program, row, slot)
        return as_public(result) if is_tensor(result) else None

    parts: list[Deviations] = []
    axis: int | None = None
    chunk: np.ndarray | None = None
    for number, (row, chunk_row) in enumerate(
        zip(chunked.steps.tolist(), chunked.chunk_of_step.tolist(), strict=True)
    ):
        inside = int(chunked.step_numbers[number]) % chunked.chunks.size
        if not inside:
            chunk = value(short, chunk_row)
        step = value(long, row)
        if step is None or chunk is None or not is_comparable(step) or not is_comparable(chunk):
            return None
        if axis is None:
            axis = step_axis(step.shape, chunk.shape, chunked.chunks.size)
        if axis is None or inside >= chunk.shape[axis]:
            return None
        part = np.take(chunk, inside, axis=axis)
        if part.size != step.size:
            return None
        pair = (step, part.reshape(step.shape))
        parts.append(Deviations.of(pair[long][None], pair[short][None]))
    return Deviations.joined(parts)


def first_step(
    pairs: Iterable[MatchedSlots],
    outputs: Sequence[tuple[str, object, object]],
    rows: Iterable[AlignedRows],
    tolerance: float,
) -> StepApart | None:
    """Return the first step at which a value of the body or else an output differs.

    An output is compared along the axis that has all steps. None if no loop was compared in chunks,
    or if everything agrees.
    """
    for pair in pairs:
        chunked = pair.rows.chunked
        if chunked is not None and chunked.per_step and pair.first is not None:
            step = pair.first.iteration or 0
            words = chunked.chunks.step_words(step // chunked.chunks.size, chunked.total)
            name = decode(pair.one.rpartition("/")[2])
            return StepApart(name, step, pair.first.relative, words)
    for aligned in rows:
        if aligned.chunked is not None:
            chunked = aligned.chunked
            apart = first_step_apart(outputs, chunked.total, tolerance)
            if apart is not None:
                name, step, error = apart
                words = chunked.chunks.step_words(step // chunked.chunks.size, chunked.total)
                return StepApart(name, step, error, words)
    return None
