"""Icicle plot of a run: the body executions that were open at each step, by nesting level, in a
limited number of columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from loopscope.debug.debugger import Debugger
from loopscope.debug.run import Run
from loopscope.debug.seek import next_match
from loopscope.executor.plan.plan import Program
from loopscope.ir.address import decode
from loopscope.timeline.timeline import Level, Moment

MOST_LANES = 12
MOST_MARKS = 200


@dataclass(frozen=True, slots=True, eq=False)
class IcicleSpan:
    """One execution of a body, or a stretch of a graph between executions of its bodies."""

    first: int
    """First step."""
    end: int
    """Step after the last."""
    program: Program
    row: int
    iteration: int | None
    """Iteration (from 0); None for branches and the outermost graph."""
    last_iteration: int | None
    """Last iteration of the span; greater than ``iteration`` if a column covers several
    iterations.
    """
    region: str
    """Label of the running node with bodies, in spans of the outermost graph.

    Empty for plain operations.
    """

    @property
    def branch(self) -> str:
        """``then`` or ``else``; empty outside branches."""
        return (
            self.program.branch_name
            if self.iteration is None and self.program.parent is not None
            else ""
        )


@dataclass(frozen=True, slots=True, eq=False)
class NestingLevel:
    """Spans at one nesting depth."""

    depth: int
    title: str
    spans: tuple[IcicleSpan, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Icicle:
    """Icicle plot of a run."""

    steps: int
    lanes: tuple[NestingLevel, ...]
    deeper: bool
    """True if there are more nesting levels than lanes."""


def icicle(run: Run, most_columns: int = 1000) -> Icicle:
    """Return the plot of the run so far, exact up to ``most_columns`` steps.

    With more steps, each column shows the state at its first step.
    """
    steps = run.steps
    if not steps:
        return Icicle(0, (), False)
    starts = np.unique(np.linspace(0, steps, min(steps, most_columns) + 1).astype(np.int64))[
        :-1
    ].tolist()
    moments = [run.timeline.moment(step) for step in starts]
    depth = max(len(moment) for moment in moments)
    lanes = tuple(
        _nesting_level(moments, [*starts, steps], level) for level in range(min(depth, MOST_LANES))
    )
    return Icicle(steps, lanes, depth > MOST_LANES)


def _nesting_level(moments: list[Moment], edges: list[int], depth: int) -> NestingLevel:
    spans: list[IcicleSpan] = []
    key: object = None
    for number, moment in enumerate(moments):
        if len(moment) <= depth:
            key = None
            continue
        level = moment[depth]
        region = _region(moment) if depth == 0 else ""
        current = (level.program.index, level.row, region)
        if current == key:
            spans[-1] = replace(spans[-1], end=edges[number + 1])
        else:
            spans.append(
                IcicleSpan(
                    edges[number],
                    edges[number + 1],
                    level.program,
                    level.row,
                    level.iteration,
                    level.iteration,
                    region,
                )
            )
        key = current
    return NestingLevel(depth, _title(spans), tuple(_with_last_iterations(spans)))


def _with_last_iterations(spans: list[IcicleSpan]) -> Iterator[IcicleSpan]:
    """Yield the spans with ``last_iteration`` set where columns cover several iterations."""
    for span, after in zip(spans, [*spans[1:], None], strict=True):
        follows = after is not None and after.program is span.program and after.first == span.end
        if (
            follows
            and after is not None
            and span.iteration is not None
            and (after.iteration or 0) > span.iteration + 1
        ):
            last = (after.iteration or 0) - 1
            yield replace(span, last_iteration=last)
        else:
            yield span


def _region(moment: Moment) -> str:
    level: Level = moment[0]
    instructions = level.program.instructions
    inside = len(moment) > 1 and level.position < len(instructions)
    return instructions[level.position].label if inside else ""


def _title(spans: list[IcicleSpan]) -> str:
    """Return the names of the nodes whose bodies ran in the spans."""
    owners = dict.fromkeys(
        decode(span.program.parent.instructions[span.program.owner].label)
        for span in spans
        if span.program.parent is not None
    )
    names = list(islice(owners, 3))
    return ", ".join(names) + (" …" if len(owners) > 3 else "") if names else "main"


def body_begin(run: Run, step: int, depth: int) -> int:
    """Return the step at which the body execution open at a step and depth begins.

    Return the step itself if no body is open at that depth.
    """
    moment = run.timeline.moment(min(step, run.steps))
    if not 0 < depth < len(moment):
        return step
    return run.timeline.step_at(moment[depth].program, moment[depth].row, 0)


def breakpoint_steps(debugger: Debugger) -> list[tuple[int, str]]:
    """Return step and description of the enabled address breakpoints that the run has reached.

    At most ``MOST_MARKS`` are returned.
    """
    marks: list[tuple[int, str]] = []
    for point in debugger.breakpoints.on:
        if point.kind != "address" or point.condition is not None:
            continue
        step: int | None = -1
        for _ in range(MOST_MARKS - len(marks)):
            step = next_match(debugger, point, step if step is not None else -1)
            if step is None:
                break
            marks.append((step, point.describe()))
            if point.iterations and None not in point.iterations:
                break
    return marks
