"""The whole run as an icicle plot: which body execution was open at which steps, level by level,
in at most so many columns.
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
    """One execution of a body, or what a graph did between the executions of its bodies."""

    first: int
    """Step at which it begins."""
    end: int
    """Step after its last."""
    program: Program
    row: int
    iteration: int | None
    """0-based; None for branches and the outermost graph."""
    last_iteration: int | None
    """Greater than ``iteration`` where a column holds several iterations."""
    region: str
    """Of the outermost graph: label of the node with bodies that runs; empty for plain
    operations.
    """

    @property
    def branch(self) -> str:
        """``then`` or ``else``; empty elsewhere."""
        return (
            self.program.branch_name
            if self.iteration is None and self.program.parent is not None
            else ""
        )


@dataclass(frozen=True, slots=True, eq=False)
class NestingLevel:
    """All that was open at one depth of nesting."""

    depth: int
    title: str
    spans: tuple[IcicleSpan, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Icicle:
    """What ran when."""

    steps: int
    lanes: tuple[NestingLevel, ...]
    deeper: bool
    """There are more levels than lanes."""


def icicle(run: Run, most_columns: int = 1000) -> Icicle:
    """Everything that has run so far. Exact up to ``most_columns`` steps; beyond, what stood at
    the first step of each column.
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
        _lane(moments, [*starts, steps], level) for level in range(min(depth, MOST_LANES))
    )
    return Icicle(steps, lanes, depth > MOST_LANES)


def _lane(moments: list[Moment], edges: list[int], depth: int) -> NestingLevel:
    spans: list[IcicleSpan] = []
    key: object = None
    for number, moment in enumerate(moments):
        if len(moment) <= depth:
            key = None
            continue
        level = moment[depth]
        region = _region(moment) if depth == 0 else ""
        this = (level.program.index, level.row, region)
        if this == key:
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
        key = this
    return NestingLevel(depth, _title(spans), tuple(_filled(spans)))


def _filled(spans: list[IcicleSpan]) -> Iterator[IcicleSpan]:
    """Where columns hold several iterations, each span says so."""
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
    """The nodes whose bodies ran there."""
    owners = dict.fromkeys(
        decode(one.program.parent.instructions[one.program.owner].label)
        for one in spans
        if one.program.parent is not None
    )
    names = list(islice(owners, 3))
    return ", ".join(names) + (" …" if len(owners) > 3 else "") if names else "main"


def body_begin(run: Run, step: int, depth: int) -> int:
    """The step at which the body execution begins that is open at a step, at some depth; the
    step itself where none is.
    """
    moment = run.timeline.moment(min(step, run.steps))
    if not 0 < depth < len(moment):
        return step
    return run.timeline.step_at(moment[depth].program, moment[depth].row, 0)


def breakpoint_steps(debugger: Debugger) -> list[tuple[int, str]]:
    """Where breakpoints that are on and name a place hold, in what has run: step and
    description, at most so many.
    """
    found: list[tuple[int, str]] = []
    for one in debugger.breakpoints.on:
        if one.kind != "address" or one.condition is not None:
            continue
        step: int | None = -1
        for _ in range(MOST_MARKS - len(found)):
            step = next_match(debugger, one, step if step is not None else -1)
            if step is None:
                break
            found.append((step, one.describe()))
            if one.iterations and None not in one.iterations:
                break
    return found
