"""Which loop, branch and carried value of a file is which of its source program: by name, by
values, by structure, then by order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from loopscope.debug.run import Run
from loopscope.debug.suggestions import value_names
from loopscope.executor.plan.body_ports import Concatenated
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import CallRegion, IfRegion, Instruction, LoopRegion, Program
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import close
from loopscope.peers.source.program import SourceRegion, SourceRun, SourceValue
from loopscope.peers.source.watching import sampled

How = Literal["name", "values", "branches", "structure", "order"]


@dataclass(frozen=True, slots=True, eq=False)
class FileRegion:
    """A loop or branch of the file."""

    program: Program
    """The graph that it is in."""
    instruction: Instruction
    region: LoopRegion | IfRegion

    @property
    def address(self) -> str:
        """Without iterations."""
        return f"{self.program.address}/{self.instruction.label}"

    @property
    def is_loop(self) -> bool:
        return isinstance(self.region, LoopRegion)


@dataclass(frozen=True, slots=True, eq=False)
class FileValue:
    """What a loop of the file carries, or what it joins over its iterations."""

    label: str
    """The node of the body that gives it."""
    result: Slot
    """Of the body: after an iteration."""
    initial: Slot | None
    """Of the graph around; None for what has no first value."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchedRegions:
    """A loop or branch of the source and the one of the file that it became."""

    number: int
    """Of the source's region."""
    placed: FileRegion
    how: How
    values: tuple[tuple[int, FileValue, How], ...]
    """Of the source's values those that were found, by their numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class RegionMatch:
    """What belongs together, outer ones before inner ones, and what does not."""

    pairs: tuple[MatchedRegions, ...]
    only_source: tuple[int, ...]
    """Numbers of the source's regions."""
    only_file: tuple[FileRegion, ...]


def belonging(source: SourceRun, run: Run) -> RegionMatch:
    """Matches graph by graph: bodies of what belongs together belong together."""
    pairs: list[MatchedRegions] = []
    only_source: list[int] = []
    only_file: list[FileRegion] = []
    waiting: list[tuple[list[int], list[FileRegion]]] = [
        (_children(source, -1), list(_placed(run.plan.main)))
    ]
    while waiting:
        theirs, ours = waiting.pop(0)
        found = _matched(source, theirs, run, ours)
        pairs += found
        matched = {pair.number for pair in found}
        for number in theirs:
            if number not in matched:
                only_source.append(number)
                waiting.append((_children(source, number), []))
        for placed in ours:
            if all(pair.placed is not placed for pair in found):
                only_file.append(placed)
                waiting += [([], list(_placed(inner))) for inner in placed.region.programs]
        waiting += [inside for pair in found for inside in _bodies(source, pair)]
    return RegionMatch(tuple(pairs), tuple(only_source), tuple(only_file))


def _children(source: SourceRun, parent: int, *bodies: str) -> list[int]:
    return [
        number
        for number, one in enumerate(source.regions)
        if one.parent == parent and (not bodies or one.body in bodies)
    ]


def _placed(program: Program) -> Iterator[FileRegion]:
    """The loops and branches of a graph; a called function is part of the graph around."""
    for number in program.regions:
        instruction = program.instructions[number]
        match instruction.region:
            case LoopRegion() | IfRegion() as region:
                yield FileRegion(program, instruction, region)
            case CallRegion() as called:
                yield from _placed(called.branch.program)


def _bodies(
    source: SourceRun, pair: MatchedRegions
) -> Iterator[tuple[list[int], list[FileRegion]]]:
    match pair.placed.region:
        case LoopRegion() as loop:
            yield _children(source, pair.number), list(_placed(loop.program))
        case IfRegion() as branches:
            yield _children(source, pair.number, "then"), list(_placed(branches.then.program))
            yield _children(source, pair.number, "else"), list(_placed(branches.otherwise.program))


def _matched(
    source: SourceRun, theirs: Sequence[int], run: Run, ours: Sequence[FileRegion]
) -> list[MatchedRegions]:
    """Of two graphs: what fits best first; where several fit alike, in their order."""
    found: list[tuple[tuple[int, ...], int, int, MatchedRegions]] = []
    for place, number in enumerate(theirs):
        region = source.regions[number]
        for other, placed in enumerate(ours):
            if region.is_loop == placed.is_loop:
                pair, score = _tried(source, number, run, placed)
                found.append((tuple(-part for part in score), place, other, pair))
    chosen: list[MatchedRegions] = []
    for _, _, _, pair in sorted(found, key=lambda one: one[:3]):
        if all(pair.number != one.number and pair.placed is not one.placed for one in chosen):
            chosen.append(pair)
    return [
        _alone(pair, source, theirs, ours) for pair in sorted(chosen, key=lambda pair: pair.number)
    ]


def _alone(
    pair: MatchedRegions, source: SourceRun, theirs: Sequence[int], ours: Sequence[FileRegion]
) -> MatchedRegions:
    """What is the only loop or If of its graph on both sides belongs together by the structure
    of the graph.
    """
    kinds = (
        [source.regions[number].is_loop for number in theirs].count(pair.placed.is_loop),
        [one.is_loop for one in ours].count(pair.placed.is_loop),
    )
    return replace(pair, how="structure") if pair.how == "order" and kinds == (1, 1) else pair


def _tried(
    source: SourceRun, number: int, run: Run, placed: FileRegion
) -> tuple[MatchedRegions, tuple[int, ...]]:
    """Two that may belong together, and how well they fit: what weighs most first."""
    region = source.regions[number]
    values = _values(region, run, placed) if region.is_loop else ()
    named = _is_named(region.name, placed.instruction.node.name)
    equal = sum(how == "values" for _, _, how in values)
    whole = bool(region.values) and len(values) == len(region.values)
    inside = [len(_children(source, number, body)) for body in ("body", "then", "else")]
    same = sorted(inside) == sorted(
        [0] * (3 - len(placed.region.programs))
        + [len(list(_placed(one))) for one in placed.region.programs]
    )
    alike = _goes_alike(region, run, placed)
    ways: tuple[tuple[How, bool], ...] = (
        ("name", named),
        ("values", equal > 0),
        ("structure", whole or (same and any(inside))),
        ("branches", alike and not region.is_loop),
        ("order", True),
    )
    how = next(way for way, found in ways if found)
    return MatchedRegions(number, placed, how, values), (
        named,
        equal,
        whole,
        same,
        alike,
        len(values),
    )


def _goes_alike(region: SourceRegion, run: Run, placed: FileRegion) -> bool:
    """Whether both ran, and as often or through the same branches in all of their executions."""
    executions = run.timeline.executions
    match placed.region:
        case LoopRegion() as loop:
            here: list[int] = np.diff(executions.loop_starts(loop)).tolist()
        case IfRegion() as branches:
            here = executions.taken(branches).tolist()
    return bool(here) and here == list(map(int, region.counts if region.is_loop else region.taken))


def _is_named(name: str, other: str) -> bool:
    """Whether a converter has kept a name: it puts scopes before it, and what it made of it behind
    it.

    >>> [_is_named("while_loop", other) for other in ("model/while_loop", "while_loop/Loop", "node_while_loop__1", "while_loop_1")]
    [True, True, True, False]
    """
    return (
        re.fullmatch(rf"(.*/)?(node_)?{re.escape(name)}(__\d+)?(/.*)?", other, re.DOTALL)
        is not None
    )


# -- values


def _values(
    region: SourceRegion, run: Run, placed: FileRegion
) -> tuple[tuple[int, FileValue, How], ...]:
    """For each value of a source's loop the file's of its shape that is most like it where both
    begin; of several, in their order.
    """
    ours = [(one, *_firsts(one, run, placed)) for one in file_values(placed)]
    scored: list[tuple[int, int, int]] = []
    for number, value in enumerate(region.values):
        theirs = [
            None if rows is None or not len(rows) else rows[0]
            for rows in (value.starts, value.rows)
        ]
        for place, (_, *firsts) in enumerate(ours):
            if any(_of_one_form(value, array) for array in firsts):
                alike = [_alike(array, first) for array, first in zip(firsts, theirs, strict=True)]
                scored.append((-2 * alike[0] - alike[1], number, place))
    found: dict[int, tuple[int, FileValue, How]] = {}
    gone: set[int] = set()
    for score, number, place in sorted(scored):
        if number not in found and place not in gone:
            gone.add(place)
            found[number] = number, ours[place][0], "values" if score else "order"
    return tuple(found[number] for number in sorted(found))


def file_values(placed: FileRegion) -> list[FileValue]:
    """What a loop carries, then what it joins."""
    loop = placed.region
    assert isinstance(loop, LoopRegion)
    names = value_names(loop.program)
    carried = [FileValue(names[one.parameter], one.result, one.initial) for one in loop.carried]
    joined = dict.fromkeys(one.result for one in loop.outputs if isinstance(one, Concatenated))
    return [*carried, *(FileValue(names.get(slot, ""), slot, None) for slot in joined)]


def _firsts(
    value: FileValue, run: Run, placed: FileRegion
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Before the first iteration of the first execution, and after it; None for what there is
    not.
    """
    loop, rows = placed.region, run.timeline.executions.rows
    assert isinstance(loop, LoopRegion)
    start = (
        _number(run, placed.program, value.initial)
        if value.initial is not None and rows[placed.program.index]
        else None
    )
    return start, _number(run, loop.program, value.result) if rows[loop.program.index] else None


def _number(run: Run, program: Program, slot: Slot) -> np.ndarray | None:
    value = run.values.get(run.timeline, program, 0, slot)
    return np.asarray(value) if is_tensor(value) else None


def _alike(here: np.ndarray | None, there: np.ndarray | None) -> bool:
    if here is None or there is None:
        return False
    plain = sampled(here).reshape(-1)
    return plain.size == there.size and bool(close(plain[None], there.reshape(1, -1), _ALIKE).all())


def _of_one_form(value: SourceValue, array: np.ndarray | None) -> bool:
    """Whether both are truth values, whole numbers or floats, of one shape."""
    if array is None or value.shape is None:
        return False
    kept = value.starts if value.rows is None else value.rows
    return (
        kept is not None
        and _FORMS.get(kept.dtype.kind) == _FORMS.get(array.dtype.kind)
        and same_shape(array.shape, value.shape)
    )


def same_shape(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes are the same but for axes of length 1, which converters add."""
    return [length for length in one if length != 1] == [length for length in other if length != 1]


_FORMS = {"b": "truth value", "i": "whole number", "u": "whole number", "f": "float", "V": "float"}
"""By numpy's kind of an element type; the narrow floats are of kind V."""
_ALIKE = 1e-5
"""Of the largest magnitude: before errors have grown."""
