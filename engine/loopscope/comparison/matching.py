"""Matching of the graphs and values of two runs: by name, then structure, then shape and
correlation of values.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from loopscope.comparison.entries import Entry, MatchState, correlated, entries_of, tells
from loopscope.comparison.region_matching import (
    NestedRegion,
    RequestedPair,
    Requests,
    after_iteration,
    branches_of,
    is_recorded,
    nested_regions,
    region_partners,
)
from loopscope.debug.run import Run
from loopscope.executor.plan.plan import Instruction, Program, Region
from loopscope.executor.plan.slots import Slot
from loopscope.ir.recorded_rows import is_trace

How = Literal["request", "name", "tensor", "structure", "shape", "correlation"]
Key = Callable[[MatchState, Entry], Hashable | None]
"""Property that two matching entries share; None if it does not apply to an entry."""
_MAX_CANDIDATES = 1000
"""Maximum number of entries of one shape whose correlations are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """A pair of matching entries."""

    one: Entry
    other: Entry
    how: How


@dataclass(frozen=True, slots=True, eq=False)
class MatchedGraphs:
    """A pair of matching graphs, with the pairs of their entries and the entries without a
    partner.
    """

    left: Program
    right: Program
    pairs: tuple[Matched, ...]
    only_one: tuple[Entry, ...]
    only_other: tuple[Entry, ...]
    unpacking: tuple[tuple[Entry, ...], tuple[Entry, ...]]
    """Entries of each graph that only unpack weights and whose name the other graph does not
    have.
    """
    opened: OpenedRegion | None = None
    """Set if one graph is a branch or function whose node the other model does not have."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenedRegion:
    """A branch or function of one model, compared with a graph of the other, which does not have
    its node.
    """

    around: tuple[Program, Program]
    """Pair of graphs that contains the node."""
    side: Literal[0, 1]
    """Number of the run that has the node."""
    region: Region
    program: Program
    """The branch or function."""


def match(
    left: Run, right: Run, requested: Sequence[RequestedPair] = ()
) -> tuple[MatchedGraphs, ...]:
    """Return the matching graphs of two finished runs, outer first; the outermost graphs always
    match.

    Raise ``InputError`` for a requested pair that matches nothing.
    """
    requests = Requests(requested)
    matched: list[MatchedGraphs] = []
    waiting = [(left.plan.main, right.plan.main)]
    while waiting:
        level = _Level((left, right), waiting.pop(), requests).matched()
        matched += level
        inside = [
            bodies
            for graphs in level
            for pair in graphs.pairs
            for bodies in _bodies(pair.one.region, pair.other.region)
        ]
        waiting += reversed(inside)
    requests.expect_used()
    return tuple(matched)


def value_pairs(pair: Matched) -> Iterable[tuple[int, Slot, Slot]]:
    """Return index and slots of the outputs of a matching pair."""
    return (
        (number, *slots)
        for number, slots in enumerate(zip(pair.one.outputs, pair.other.outputs, strict=False))
    )


def _bodies(left: Region | None, right: Region | None) -> Iterator[tuple[Program, Program]]:
    if left is not None and right is not None:
        yield from zip(left.programs, right.programs, strict=True)


@dataclass(slots=True, eq=False)
class _Level:
    """Matching of two graphs with all branches and functions inside them."""

    runs: tuple[Run, Run]
    graphs: tuple[Program, Program]
    requests: Requests
    numbers: Iterator[int] = field(default_factory=count)

    def matched(self) -> list[MatchedGraphs]:
        nested = [
            nested_regions(run, graph) for run, graph in zip(self.runs, self.graphs, strict=True)
        ]
        partners = dict(region_partners(*nested)) if all(nested) else {}
        for region, partner in self.requests.partners(*nested).items():
            partners = {
                key: value for key, value in partners.items() if key != region and value != partner
            }
            partners[region] = partner
        sides = (
            MatchState.of(self.runs[0], self.graphs[0]),
            MatchState.of(self.runs[1], self.graphs[1]),
        )
        outer = _Matching(*sides, self.numbers)
        outer.match_partners(partners)
        outer.match_requests(self.requests)
        nested_partners = [
            {*partners} - _instructions(sides[0].matched),
            {*partners.values()} - _instructions(sides[1].matched),
        ]
        for side, instructions in zip(sides, nested_partners, strict=True):
            side.reserved |= {entry for entry in side.entries if entry.instruction in instructions}
        outer.match_by_names()
        for number, side in enumerate(sides):
            single = _instructions(sides[1 - number].unmatched)
            inner = {
                entry.label
                for region in nested[1 - number]
                if region.instruction in single
                for entry in _nested_operations(region)
            }
            side.reserved |= {entry for entry in side.unmatched if entry.label in inner}
        outer.match_by_structure()
        outer.match_by_values()
        for side in sides:
            side.reserved.clear()
        opened = self._opened_branches(sides, partners)
        for matching, _ in opened:
            matching.match_by_names()
        for matching, _ in opened:
            matching.match_by_structure()
        reported: set[MatchState] = set()
        return [
            outer.graphs(None, reported),
            *(matching.graphs(within, reported) for matching, within in opened),
        ]

    def _opened_branches(
        self, sides: tuple[MatchState, MatchState], partners: Mapping[Instruction, Instruction]
    ) -> list[tuple[_Matching, OpenedRegion]]:
        """Return matchings of the branches and functions of unmatched nodes with graphs of the
        other run.
        """
        paired: tuple[Container[Instruction | None], ...] = (partners.keys(), {*partners.values()})
        states = [sides[0]], [sides[1]]
        matchings: list[tuple[_Matching, OpenedRegion]] = []
        for number in _BOTH:
            for side in states[number]:
                for entry in side.unmatched:
                    if entry.region is None or entry.instruction in paired[number]:
                        continue
                    for branch in branches_of(entry):
                        inner = side.opened(entry, branch)
                        if inner.rows:
                            states[number].append(inner)
                            matchings += self._branch_matchings(
                                number, entry.region, side, inner, states[1 - number], partners
                            )
        return matchings

    def _branch_matchings(
        self,
        number: Literal[0, 1],
        region: Region,
        side: MatchState,
        inner: MatchState,
        others: Sequence[MatchState],
        partners: Mapping[Instruction, Instruction],
    ) -> Iterator[tuple[_Matching, OpenedRegion]]:
        for other in others:
            enclosing = (other.program, side.program) if number else (side.program, other.program)
            matching = (
                _Matching(other, inner, self.numbers)
                if number
                else _Matching(inner, other, self.numbers)
            )
            matching.match_partners(partners)
            yield matching, OpenedRegion(enclosing, number, region, inner.program)


_BOTH: tuple[Literal[0, 1], Literal[0, 1]] = (0, 1)


def _instructions(entries: Iterable[Entry]) -> set[Instruction]:
    return {entry.instruction for entry in entries if entry.instruction is not None}


def _nested_operations(region: NestedRegion) -> Iterator[Entry]:
    """Yield the operations in the branches and functions of a region."""
    waiting = [branch.program for branch in branches_of(region.entry)]
    for program in waiting:
        for entry in entries_of(program):
            if entry.instruction is not None:
                yield entry
                waiting += [branch.program for branch in branches_of(entry)]


@dataclass(slots=True, eq=False)
class _Matching:
    """Matching of two graphs: the most reliable criteria first, then the structure that follows
    from found pairs.
    """

    left: MatchState
    right: MatchState
    numbers: Iterator[int]
    matches: dict[Entry, Matched] = field(default_factory=dict[Entry, Matched])

    def graphs(self, within: OpenedRegion | None, reported: set[MatchState]) -> MatchedGraphs:
        """Return the pairs found, and the entries without a partner.

        A state reports unmatched entries only in its first pair of graphs, and not for branches
        without any match.
        """
        pairs = tuple(self.matches[entry] for entry in self.left.entries if entry in self.matches)
        is_first = [
            (within is None or bool(pairs)) and side not in reported
            for side in (self.left, self.right)
        ]
        reported |= {
            side for side, is_new in zip((self.left, self.right), is_first, strict=True) if is_new
        }
        missing = [
            side.missing() if is_new else ()
            for side, is_new in zip((self.left, self.right), is_first, strict=True)
        ]
        unpacking = [
            side.unpacking if is_new else ()
            for side, is_new in zip((self.left, self.right), is_first, strict=True)
        ]
        graphs = self.left.program, self.right.program
        return MatchedGraphs(
            *graphs, pairs, missing[0], missing[1], (unpacking[0], unpacking[1]), within
        )

    def match_partners(self, partners: Mapping[Instruction, Instruction]) -> None:
        """Match the partner regions that are in both graphs."""
        others = {
            entry.instruction: entry for entry in self.right.unmatched if entry.region is not None
        }
        for entry in self.left.unmatched:
            partner = partners.get(entry.instruction) if entry.instruction is not None else None
            if partner is not None and partner in others:
                other = others[partner]
                self._add_match(entry, other, "name" if entry.label == other.label else "structure")

    def match_requests(self, requests: Requests) -> None:
        """Match the requested pairs of values."""
        for left, right in requests.values(
            self.left.program, self.left.unmatched, self.right.program, self.right.unmatched
        ):
            if left not in self.matches and right not in self.right.matched:
                self._add_match(left, right, "request")

    def match_by_names(self) -> None:
        self._match_by_tensor()
        self._match_by_name()

    def match_by_structure(self) -> None:
        self._match_by_key(MatchState.binding, "structure")
        while self._match_by_key(MatchState.structure, "structure") or self._match_by_result():
            pass

    def match_by_values(self) -> None:
        if is_trace(self.left.run.model) != is_trace(self.right.run.model):
            # The operations of a trace and of a model have nothing in common but their values.
            self._match_by_correlation()
            return
        while self._match_by_single_shape() or self._match_by_correlation():
            self._match_by_structure()
        self._match_by_key(
            lambda side, entry: side.shape_if_uncorrelated(entry, self._rows), "shape"
        )
        self._match_by_structure()

    @property
    def _rows(self) -> int:
        """Number of rows that both graphs have."""
        return min(self.left.rows, self.right.rows)

    def _add_match(self, left: Entry, right: Entry, how: How) -> None:
        self.matches[left] = Matched(left, right, how)
        self.left.matched.add(left)
        self.right.matched.add(right)
        for left_slot, right_slot in zip(left.outputs, right.outputs, strict=False):
            number = next(self.numbers)
            self.left.same.setdefault(left_slot, number)
            self.right.same.setdefault(right_slot, number)

    def _match_by_tensor(self) -> None:
        """Match floats with the same tensor name but operations of different type or name.

        A quantizer moves the tensor name to the dequantized value, and the operation's name to the
        byte product.
        """
        if {self.left.run.model.dialect, self.right.run.model.dialect} != {"onnx"}:
            return
        by_tensor = {
            candidate.tensor: candidate for candidate in self.right.entries if candidate.tensor
        }
        for entry in self.left.entries:
            partner = by_tensor.get(entry.tensor)
            if partner is None or entry.region or partner.region or entry.rounds or partner.rounds:
                continue
            if entry.type != partner.type and _are_like_floats(
                self.left.shape(entry), self.right.shape(partner)
            ):
                self._add_match(entry, partner, "tensor")

    def _match_by_name(self) -> None:
        by_label = {candidate.label: candidate for candidate in self.right.entries}
        models = self.left.run.model, self.right.run.model
        is_foreign = models[0].dialect != models[1].dialect or any(map(is_trace, models))
        for entry in self.left.entries:
            partner = by_label.get(entry.label)
            if partner is not None and is_recorded(partner):
                entry = after_iteration(self.left.program, entry)
            elif partner is not None and is_recorded(entry):
                partner = after_iteration(self.right.program, partner)
            if (
                partner is None
                or {entry, partner} & (self.left.matched | self.right.matched)
                or entry.region_class != partner.region_class
            ):
                continue
            if (entry.position in self.left.unpacks) != (partner.position in self.right.unpacks):
                continue
            if (
                entry.type == partner.type
                or entry.rounds
                or partner.rounds
                or is_foreign
                or (entry.region and partner.region)
            ):
                self._add_match(entry, partner, "name")

    def _match_by_structure(self) -> None:
        while self._match_by_key(MatchState.structure, "structure"):
            pass

    def _match_by_result(self) -> bool:
        same_count = len(self.left.program.results) == len(self.right.program.results)
        return same_count and self._match_by_key(MatchState.result, "structure")

    def _match_by_key(self, key: Key, how: How) -> bool:
        """Match the unmatched entries with an equal key that occurs equally often in both graphs.

        Several entries with one key are paired by their values, the rest in execution order. Return
        True if there was a match.
        """
        pairs: list[tuple[Entry, Entry, How]] = []
        for lefts, rights in self._groups(key):
            if len(lefts) == len(rights):
                correlated_pairs = self._correlated_pairs(lefts, rights) if len(lefts) > 1 else {}
                for left, right in _in_order(lefts, rights, correlated_pairs):
                    is_reordered = left in correlated_pairs and lefts.index(left) != rights.index(
                        right
                    )
                    pairs.append((left, right, "correlation" if is_reordered else how))
        for left, right, reason in pairs:
            self._add_match(left, right, reason)
        return bool(pairs)

    def _match_by_correlation(self) -> bool:
        """Match entries of one shape whose values are each other's best correlation; return True if
        there was a match.
        """
        pairs = [
            pair
            for lefts, rights in self._groups(self._shape_key)
            for pair in self._correlated_pairs(lefts, rights).items()
        ]
        for left, right in pairs:
            self._add_match(left, right, "correlation")
        return bool(pairs)

    @property
    def _shape_key(self) -> Key:
        """Key of a shape, without the operation if one side is a trace."""
        if is_trace(self.left.run.model) == is_trace(self.right.run.model):
            return MatchState.shape
        return lambda side, entry: None if entry.region else _any_operation(side.shape(entry))

    def _groups(self, key: Key) -> list[tuple[list[Entry], list[Entry]]]:
        """Return the unmatched entries of both graphs, grouped by equal key."""
        groups: dict[Hashable, tuple[list[Entry], list[Entry]]] = {}
        for number, side in enumerate((self.left, self.right)):
            for entry in side.unmatched:
                if (value := key(side, entry)) is not None:
                    groups.setdefault(value, ([], []))[number].append(entry)
        return list(groups.values())

    def _correlated_pairs(
        self, lefts: Sequence[Entry], rights: Sequence[Entry]
    ) -> dict[Entry, Entry]:
        """Return the pairs of entries whose values correlate best with each other."""
        groups: dict[int, tuple[list[Entry], list[Entry]]] = {}
        for number, (side, entries) in enumerate(((self.left, lefts), (self.right, rights))):
            for entry in entries:
                if side.shape(entry) is not None and tells(
                    vector := side.numbers(entry, self._rows)
                ):
                    groups.setdefault(vector.size, ([], []))[number].append(entry)
        return {
            left: right
            for group in groups.values()
            if max(map(len, group)) <= _MAX_CANDIDATES
            for left, right in self._best_pairs(*group)
        }

    def _best_pairs(
        self, lefts: Sequence[Entry], rights: Sequence[Entry]
    ) -> Iterator[tuple[Entry, Entry]]:
        vectors = (
            [self.left.numbers(entry, self._rows) for entry in lefts],
            [self.right.numbers(entry, self._rows) for entry in rights],
        )
        yield from ((lefts[row], rights[column]) for row, column in correlated(*vectors))

    def _match_by_single_shape(self) -> bool:
        """Match shapes with exactly one unmatched entry in each graph; return True if there was a
        match.
        """
        pairs = [
            (lefts[0], rights[0])
            for lefts, rights in self._groups(MatchState.shape)
            if len(lefts) == len(rights) == 1
        ]
        for left, right in pairs:
            self._add_match(left, right, "shape")
        return bool(pairs)


def _any_operation(key: Hashable | None) -> Hashable | None:
    """Return a ``MatchState.shape`` key without the operation; None without floats."""
    return key[2:] if isinstance(key, tuple) and key[2] == "f" else None


def _are_like_floats(left: Hashable | None, right: Hashable | None) -> bool:
    """Return True if two ``MatchState.shape`` keys are of floats and differ at most in the
    operation.
    """
    return (
        isinstance(left, tuple)
        and isinstance(right, tuple)
        and left[1:] == right[1:]
        and left[2] == "f"
    )


def _in_order(
    lefts: Sequence[Entry], rights: Sequence[Entry], known: Mapping[Entry, Entry]
) -> Iterator[tuple[Entry, Entry]]:
    """Yield pairs of two sequences of one length: known pairs, and the remaining entries in
    order.
    """
    used = set(known.values())
    remaining = (partner for partner in rights if partner not in used)
    yield from ((entry, known[entry] if entry in known else next(remaining)) for entry in lefts)
