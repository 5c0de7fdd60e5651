"""Pairs of loops and values that a person requests, before any other match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loopscope.comparison.entries import Entry, entries_of
from loopscope.comparison.region_matching import NestedRegion
from loopscope.errors import InputError, elided
from loopscope.executor.plan.plan import Instruction, LoopRegion, Program
from loopscope.ir.address import decode
from loopscope.ir.recorded_rows import RECORDED


@dataclass(frozen=True, slots=True)
class RequestedPair:
    """A name in the first model and a name in the second, or addresses without iterations."""

    left: str
    right: str

    @staticmethod
    def parse(text: str) -> tuple[RequestedPair, ...]:
        """Parse pairs such as ``decode=main/while;state=S``; ``InputError`` for other texts.

        >>> RequestedPair.parse("decode=main/while;state=S")[1]
        RequestedPair(left='state', right='S')
        """
        pairs = []
        for part in filter(None, map(str.strip, text.split(";"))):
            left, equals, right = part.partition("=")
            if not (equals and left.strip() and right.strip()):
                raise InputError(
                    f"--match: {part!r} is not a pair: expected NAME=NAME, such as "
                    "'decode=main/while;state=S'"
                )
            pairs.append(RequestedPair(left.strip(), right.strip()))
        return tuple(pairs)


@dataclass(slots=True, eq=False)
class Requests:
    """Requested pairs, and those that matched something."""

    pairs: Sequence[RequestedPair] = ()
    used: set[RequestedPair] = field(default_factory=set[RequestedPair])

    def partners(
        self, lefts: Sequence[NestedRegion], rights: Sequence[NestedRegion]
    ) -> Mapping[Instruction, Instruction]:
        """Return the requested pairs of loops and branches."""
        partners: dict[Instruction, Instruction] = {}
        for pair in self.pairs:
            left, right = (
                next(
                    (region for region in regions if _is_named(region.program, region.entry, name)),
                    None,
                )
                for regions, name in ((lefts, pair.left), (rights, pair.right))
            )
            if left and right and left.entry.region_class == right.entry.region_class:
                partners[left.instruction] = right.instruction
                self.used.add(pair)
        return partners

    def values(
        self, left: Program, lefts: Sequence[Entry], right: Program, rights: Sequence[Entry]
    ) -> list[tuple[Entry, Entry]]:
        """Return the requested pairs of values of two graphs.

        If only one side is a carried Parameter, its value after the iteration is meant.
        """
        matches = []
        for pair in self.pairs:
            entry = next((item for item in lefts if _is_value(left, item, pair.left)), None)
            partner = next((item for item in rights if _is_value(right, item, pair.right)), None)
            if entry is None or partner is None:
                continue
            if entry.instruction is not None and partner.instruction is None:
                partner = after_iteration(right, partner)
            elif entry.instruction is None and partner.instruction is not None:
                entry = after_iteration(left, entry)
            matches.append((entry, partner))
            self.used.add(pair)
        return matches

    def expect_used(self) -> None:
        """Raise ``InputError`` for a pair that matched nothing."""
        unused = next((pair for pair in self.pairs if pair not in self.used), None)
        if unused is not None:
            raise InputError(
                f"--match: {elided(unused.left)!r} in the first and {elided(unused.right)!r} in "
                "the second are not two loops, two branches or two values of matching graphs"
            )


def after_iteration(program: Program, entry: Entry) -> Entry:
    """Return the operation that computes the next value of a carried Parameter.

    Return ``entry`` if it is not carried, or if no operation of the body computes the value.
    """
    if program.loop is None or entry.instruction is not None:
        return entry
    result = next(
        (port.result for port in program.loop.carried if port.parameter in entry.outputs), None
    )
    return next(
        (
            operation
            for operation in entries_of(program)
            if operation.instruction is not None and operation.outputs[:1] == (result,)
        ),
        entry,
    )


def is_recorded(entry: Entry) -> bool:
    """Return True if an entry returns values of a trace."""
    return entry.type == RECORDED


def is_carried(program: Program, entry: Entry) -> bool:
    """Return True if an entry is carried from iteration to iteration, before or after the body."""
    return program.loop is not None and any(
        port.parameter in entry.outputs or port.result in entry.outputs
        for port in program.loop.carried
    )


def is_received(program: Program, entry: Entry) -> bool:
    """Return True if an entry is a state that each iteration receives."""
    return program.loop is not None and any(
        port.parameter in entry.outputs for port in program.loop.carried
    )


def _is_named(program: Program, entry: Entry, name: str) -> bool:
    address = f"{program.address}/{entry.label}"
    return decode(entry.label) == name or address == name or address.endswith(f"/{name}")


def _is_value(program: Program, entry: Entry, name: str) -> bool:
    return (
        not isinstance(entry.region, LoopRegion)
        and bool(entry.outputs)
        and (_is_named(program, entry, name) or entry.tensor == name)
    )
