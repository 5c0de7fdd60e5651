"""What is known of the time of one run: its operations, its loops, and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from loopscope.ir.readable import readable

HOLDERS = frozenset({"Loop", "If", "Scan", "TensorIterator"})
"""Operations whose time is that of what is inside them."""
_LEVELS = 2
"""Segments from the address of a loop to those of the operations in its body."""
MOST_TIMES = 10_000
"""Of one operation, that a row lists one by one."""


@dataclass(slots=True)
class Clocked:
    """One operation of the graph that ran."""

    address: str
    """Static; empty for an operation that the runtime has made of others."""
    operation: str
    name: str
    runs: int = 0
    microseconds: float = 0.0
    """Of all runs; of a loop or branch, with what is inside."""
    times: list[float] = field(default_factory=list[float])
    """Of the first ``MOST_TIMES`` runs, in microseconds, in order."""

    def add(self, lasted: float) -> None:
        self.runs += 1
        self.microseconds += lasted
        if len(self.times) < MOST_TIMES:
            self.times.append(lasted)


@dataclass(frozen=True, slots=True)
class Iterations:
    """What one loop did in the runtime, by execution: how often, and the microseconds of each
    iteration.
    """

    address: str
    there: tuple[int, ...]
    here: tuple[int, ...]
    """The same counts of our run; empty where they are the same."""
    times: tuple[float, ...]
    """Of the first ``MOST_TIMES`` iterations of all executions."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Clock:
    """Where the time of one run went."""

    runtime: str
    """Name and version."""
    microseconds: float
    operations: tuple[Clocked, ...]
    """The costliest first."""
    loops: tuple[Iterations, ...] = ()
    """Only of a runtime that tells of bodies."""
    note: str = ""

    @property
    def shares(self) -> Mapping[str, float]:
        """The microseconds of each operation by its static address: of a loop or branch only
        where nothing is known of what is inside.
        """
        told = {
            one.address: one.microseconds
            for one in self.operations
            if one.address and one.operation not in HOLDERS
        }
        held = {
            one.address: one.microseconds
            for one in self.operations
            if one.address and one.operation in HOLDERS
        }
        return told | {
            address: lasted
            for address, lasted in held.items()
            if not any(one.startswith(f"{address}/") for one in told)
        }

    def _own(self, row: Clocked) -> float:
        """Return the microseconds of an operation without those of the operations directly
        inside it.
        """
        if row.operation not in HOLDERS or not row.address:
            return row.microseconds
        depth = row.address.count("/") + _LEVELS
        inside = (
            one
            for one in self.operations
            if one.address.startswith(f"{row.address}/") and one.address.count("/") == depth
        )
        return max(row.microseconds - sum(one.microseconds for one in inside), 0.0)

    @property
    def sentence(self) -> str:
        """The operation that takes most time itself, which may be a loop, and the costliest
        iteration.
        """
        first = max(self.operations, key=self._own, default=None)
        if first is None:
            return f"{self.runtime} told of no operation."
        own = self._own(first)
        part = f", {own / self.microseconds:.0%} of the run" if self.microseconds else ""
        times = f"in {first.runs:,} runs" if first.runs != 1 else "in one run"
        beside = "" if own == first.microseconds else " beside what is inside"
        said = f"In {self.runtime} the costliest operation is {first.name!r} ({first.operation}): {time_words(own)} {times}{part}{beside}."
        iterations = [
            (lasted, number, one) for one in self.loops for number, lasted in enumerate(one.times)
        ]
        if iterations:
            lasted, number, loop = max(iterations, key=lambda found: found[0])
            said += f" The costliest iteration is number {number:,} of {readable(loop.address)}: {time_words(lasted)}."
        differing = [one for one in self.loops if one.here]
        if differing:
            said += f" {readable(differing[0].address)} ran {_counts(differing[0].there)} there, {_counts(differing[0].here)} here."
        return said


def by_cost(rows: Iterable[Clocked]) -> tuple[Clocked, ...]:
    return tuple(sorted(rows, key=lambda row: -row.microseconds))


def time_words(microseconds: float) -> str:
    """As people read it.

    >>> time_words(3.25), time_words(4120.0), time_words(2.5e6)
    ('3.2 µs', '4.12 ms', '2.5 s')
    """
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= factor:
            return f"{microseconds / factor:.3g} {unit}"
    return f"{microseconds:.1f} µs"


def _counts(counts: Sequence[int]) -> str:
    return (
        f"{sum(counts):,} iterations"
        if len(counts) == 1
        else f"{sum(counts):,} iterations in {len(counts):,} executions"
    )
