"""Matching of loops, branches and carried values of a file with its source program: by name,
values, structure, then order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from loopscope.debug.lookup import value_names
from loopscope.debug.run import Run
from loopscope.executor.plan.body_ports import Concatenated
from loopscope.executor.plan.plan import CallRegion, IfRegion, Instruction, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import close
from loopscope.peers.source.program import SourceRegion, SourceRun, SourceValue
from loopscope.peers.source.watching import sampled

How = Literal["name", "values", "branches", "structure", "order"]


@dataclass(frozen=True, slots=True, eq=False)
class FileRegion:
    """A loop or branch of the file."""

    program: Program
    """Graph that contains the region."""
    instruction: Instruction
    region: LoopRegion | IfRegion

    @property
    def address(self) -> str:
        """Address without iterations."""
        return f"{self.program.address}/{self.instruction.label}"

    @property
    def is_loop(self) -> bool:
        return isinstance(self.region, LoopRegion)


@dataclass(frozen=True, slots=True, eq=False)
class FileValue:
    """A value that a loop of the file carries, or concatenates over its iterations."""

    label: str
    """Node of the body that computes the value."""
    result: Slot
    """Slot of the body after an iteration."""
    initial: Slot | None
    """Slot of the enclosing graph; None without initial value."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchedRegions:
    """A loop or branch of the source and its match in the file."""

    number: int
    """Number of the source's region."""
    file_region: FileRegion
    how: How
    values: tuple[tuple[int, FileValue, How], ...]
    """Matched source values, by number."""


@dataclass(frozen=True, slots=True, eq=False)
class RegionMatch:
    """Matched regions, outer before inner, and unmatched regions."""

    pairs: tuple[MatchedRegions, ...]
    only_source: tuple[int, ...]
    """Numbers of unmatched source regions."""
    only_file: tuple[FileRegion, ...]


def match_regions(source: SourceRun, run: Run) -> RegionMatch:
    """Match graph by graph; the bodies of matched regions are matched in turn."""
    pairs: list[MatchedRegions] = []
    only_source: list[int] = []
    only_file: list[FileRegion] = []
    waiting: list[tuple[list[int], list[FileRegion]]] = [
        (_child_regions(source, -1), list(_regions_in(run.plan.main)))
    ]
    while waiting:
        numbers, file_regions = waiting.pop(0)
        graph_pairs = _match_graphs(source, numbers, run, file_regions)
        pairs += graph_pairs
        matched = {pair.number for pair in graph_pairs}
        for number in numbers:
            if number not in matched:
                only_source.append(number)
                waiting.append((_child_regions(source, number), []))
        for file_region in file_regions:
            if all(pair.file_region is not file_region for pair in graph_pairs):
                only_file.append(file_region)
                waiting += [([], list(_regions_in(inner))) for inner in file_region.region.programs]
        waiting += [inside for pair in graph_pairs for inside in _bodies(source, pair)]
    return RegionMatch(tuple(pairs), tuple(only_source), tuple(only_file))


def _child_regions(source: SourceRun, parent: int, *bodies: str) -> list[int]:
    return [
        number
        for number, region in enumerate(source.regions)
        if region.parent == parent and (not bodies or region.body in bodies)
    ]


def _regions_in(program: Program) -> Iterator[FileRegion]:
    """Yield the loops and branches of a graph; a called function is part of the enclosing graph."""
    for number in program.regions:
        instruction = program.instructions[number]
        match instruction.region:
            case LoopRegion() | IfRegion() as region:
                yield FileRegion(program, instruction, region)
            case CallRegion() as called:
                yield from _regions_in(called.branch.program)


def _bodies(
    source: SourceRun, pair: MatchedRegions
) -> Iterator[tuple[list[int], list[FileRegion]]]:
    match pair.file_region.region:
        case LoopRegion() as loop:
            yield _child_regions(source, pair.number), list(_regions_in(loop.program))
        case IfRegion() as branches:
            yield (
                _child_regions(source, pair.number, "then"),
                list(_regions_in(branches.then.program)),
            )
            yield (
                _child_regions(source, pair.number, "else"),
                list(_regions_in(branches.otherwise.program)),
            )


def _match_graphs(
    source: SourceRun, numbers: Sequence[int], run: Run, file_regions: Sequence[FileRegion]
) -> list[MatchedRegions]:
    """Match the regions of two graphs, best scores first; equal scores are matched in order."""
    scored: list[tuple[tuple[int, ...], int, int, MatchedRegions]] = []
    for index, number in enumerate(numbers):
        region = source.regions[number]
        for file_index, file_region in enumerate(file_regions):
            if region.is_loop == file_region.is_loop:
                pair, score = _score_pair(source, number, run, file_region)
                scored.append((tuple(-part for part in score), index, file_index, pair))
    chosen: list[MatchedRegions] = []
    for _, _, _, pair in sorted(scored, key=lambda entry: entry[:3]):
        if all(
            pair.number != known.number and pair.file_region is not known.file_region
            for known in chosen
        ):
            chosen.append(pair)
    return [
        _with_structure_criterion(pair, source, numbers, file_regions)
        for pair in sorted(chosen, key=lambda pair: pair.number)
    ]


def _with_structure_criterion(
    pair: MatchedRegions,
    source: SourceRun,
    numbers: Sequence[int],
    file_regions: Sequence[FileRegion],
) -> MatchedRegions:
    """Set the criterion to structure if the pair is the only loop, or only If, in both graphs."""
    kinds = (
        [source.regions[number].is_loop for number in numbers].count(pair.file_region.is_loop),
        [region.is_loop for region in file_regions].count(pair.file_region.is_loop),
    )
    return replace(pair, how="structure") if pair.how == "order" and kinds == (1, 1) else pair


def _score_pair(
    source: SourceRun, number: int, run: Run, file_region: FileRegion
) -> tuple[MatchedRegions, tuple[int, ...]]:
    """Return a candidate pair and its score, most important criterion first."""
    region = source.regions[number]
    values = _match_values(region, run, file_region) if region.is_loop else ()
    same_name = _is_derived_name(region.name, file_region.instruction.node.name)
    equal_count = sum(how == "values" for _, _, how in values)
    all_matched = bool(region.values) and len(values) == len(region.values)
    inside = [len(_child_regions(source, number, body)) for body in ("body", "then", "else")]
    same_nesting = sorted(inside) == sorted(
        [0] * (3 - len(file_region.region.programs))
        + [len(list(_regions_in(body))) for body in file_region.region.programs]
    )
    same_executions = _has_same_executions(region, run, file_region)
    criteria: tuple[tuple[How, bool], ...] = (
        ("name", same_name),
        ("values", equal_count > 0),
        ("structure", all_matched or (same_nesting and any(inside))),
        ("branches", same_executions and not region.is_loop),
        ("order", True),
    )
    how = next(criterion for criterion, is_met in criteria if is_met)
    return MatchedRegions(number, file_region, how, values), (
        same_name,
        equal_count,
        all_matched,
        same_nesting,
        same_executions,
        len(values),
    )


def _has_same_executions(region: SourceRegion, run: Run, file_region: FileRegion) -> bool:
    """Return True if both ran with equal iteration counts or branches in all executions."""
    executions = run.timeline.executions
    match file_region.region:
        case LoopRegion() as loop:
            own: list[int] = np.diff(executions.loop_starts(loop)).tolist()
        case IfRegion() as branches:
            own = executions.taken(branches).tolist()
    return bool(own) and own == list(map(int, region.counts if region.is_loop else region.taken))


def _is_derived_name(name: str, other: str) -> bool:
    """Return True if a converter derived ``other`` from a name by adding scopes before or suffixes
    after it.

    >>> others = ("model/while_loop", "while_loop/Loop", "node_while_loop__1", "while_loop_1")
    >>> [_is_derived_name("while_loop", other) for other in others]
    [True, True, True, False]
    """
    return (
        re.fullmatch(rf"(.*/)?(node_)?{re.escape(name)}(__\d+)?(/.*)?", other, re.DOTALL)
        is not None
    )


# -- values


def _match_values(
    region: SourceRegion, run: Run, file_region: FileRegion
) -> tuple[tuple[int, FileValue, How], ...]:
    """Match each value of a source loop with the file value of its shape whose first values are
    most similar.

    Equal similarities are matched in order.
    """
    candidates = [
        (candidate, *_first_values(candidate, run, file_region))
        for candidate in file_values(file_region)
    ]
    scored: list[tuple[int, int, int]] = []
    for number, value in enumerate(region.values):
        source_firsts = [
            None if rows is None or not len(rows) else rows[0]
            for rows in (value.starts, value.rows)
        ]
        for place, (_, *firsts) in enumerate(candidates):
            if any(_is_same_kind_and_shape(value, array) for array in firsts):
                similar = [
                    _are_close(array, first)
                    for array, first in zip(firsts, source_firsts, strict=True)
                ]
                scored.append((-2 * similar[0] - similar[1], number, place))
    matches: dict[int, tuple[int, FileValue, How]] = {}
    used: set[int] = set()
    for score, number, place in sorted(scored):
        if number not in matches and place not in used:
            used.add(place)
            matches[number] = number, candidates[place][0], "values" if score else "order"
    return tuple(matches[number] for number in sorted(matches))


def file_values(file_region: FileRegion) -> list[FileValue]:
    """Return the carried values of a loop, then its concatenated values."""
    loop = file_region.region
    assert isinstance(loop, LoopRegion)
    names = value_names(loop.program)
    carried = [FileValue(names[port.parameter], port.result, port.initial) for port in loop.carried]
    joined = dict.fromkeys(port.result for port in loop.outputs if isinstance(port, Concatenated))
    return [*carried, *(FileValue(names.get(slot, ""), slot, None) for slot in joined)]


def _first_values(
    value: FileValue, run: Run, file_region: FileRegion
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return a value before and after the first iteration of the first execution; None if
    missing.
    """
    loop, rows = file_region.region, run.timeline.executions.rows
    assert isinstance(loop, LoopRegion)
    start = (
        _first_row(run, file_region.program, value.initial)
        if value.initial is not None and rows[file_region.program.index]
        else None
    )
    return start, _first_row(run, loop.program, value.result) if rows[loop.program.index] else None


def _first_row(run: Run, program: Program, slot: Slot) -> np.ndarray | None:
    value = run.values.get(run.timeline, program, 0, slot)
    return np.asarray(value) if is_tensor(value) else None


def _are_close(own: np.ndarray | None, source: np.ndarray | None) -> bool:
    if own is None or source is None:
        return False
    own_sample = sampled(own).reshape(-1)
    return own_sample.size == source.size and bool(
        close(own_sample[None], source.reshape(1, -1), _TOLERANCE).all()
    )


def _is_same_kind_and_shape(value: SourceValue, array: np.ndarray | None) -> bool:
    """Return True if both are booleans, integers or floats, of one shape."""
    if array is None or value.shape is None:
        return False
    stored = value.starts if value.rows is None else value.rows
    return (
        stored is not None
        and _VALUE_KINDS.get(stored.dtype.kind) == _VALUE_KINDS.get(array.dtype.kind)
        and same_shape(array.shape, value.shape)
    )


def same_shape(left: Sequence[int], right: Sequence[int]) -> bool:
    """Return True if two shapes are equal except for axes of length 1, which converters add."""
    return [length for length in left if length != 1] == [length for length in right if length != 1]


_VALUE_KINDS = {
    "b": "truth value",
    "i": "whole number",
    "u": "whole number",
    "f": "float",
    "V": "float",
}
"""Kind of value by the kind of numpy's dtype; narrow floats have kind V."""
_TOLERANCE = 1e-5
"""Tolerance relative to the largest magnitude, before errors have grown."""
