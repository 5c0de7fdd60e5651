"""Times of one run: its operations, its loops, and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from loopscope.ir.readable import readable, significant

HOLDERS = frozenset({"Loop", "If", "Scan", "TensorIterator"})
"""Operations whose time includes their bodies."""
_LEVELS = 2
"""Number of address segments from a loop to an operation in its body."""
MOST_TIMES = 10_000
"""Maximum number of individual times stored per operation."""


@dataclass(slots=True)
class Clocked:
    """Times of one executed operation."""

    address: str
    """Static address; empty for an operation that the runtime created by fusion."""
    operation: str
    name: str
    runs: int = 0
    microseconds: float = 0.0
    """Total of all runs, including the bodies of a loop or branch."""
    times: list[float] = field(default_factory=list[float])
    """Microseconds of the first ``MOST_TIMES`` runs in order."""

    def add(self, lasted: float) -> None:
        self.runs += 1
        self.microseconds += lasted
        if len(self.times) < MOST_TIMES:
            self.times.append(lasted)


@dataclass(frozen=True, slots=True)
class Iterations:
    """Iteration counts of a loop in the runtime, by execution, and the microseconds of each
    iteration.
    """

    address: str
    there: tuple[int, ...]
    here: tuple[int, ...]
    """Iteration counts of our run; empty if they are equal."""
    times: tuple[float, ...]
    """Microseconds of the first ``MOST_TIMES`` iterations over all executions."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Clock:
    """Times of one run."""

    runtime: str
    """Name and version."""
    microseconds: float
    operations: tuple[Clocked, ...]
    """Operations in descending order of cost."""
    loops: tuple[Iterations, ...] = ()
    """Loops; empty for a runtime that does not report bodies."""
    note: str = ""

    @property
    def shares(self) -> Mapping[str, float]:
        """Microseconds of each operation by static address; loops and branches only if their inner
        times are unknown.
        """
        plain = {
            operation.address: operation.microseconds
            for operation in self.operations
            if operation.address and operation.operation not in HOLDERS
        }
        regions = {
            operation.address: operation.microseconds
            for operation in self.operations
            if operation.address and operation.operation in HOLDERS
        }
        return plain | {
            address: lasted
            for address, lasted in regions.items()
            if not any(inner.startswith(f"{address}/") for inner in plain)
        }

    def _own(self, row: Clocked) -> float:
        """Return the microseconds of an operation without those of the operations directly inside
        it.
        """
        if row.operation not in HOLDERS or not row.address:
            return row.microseconds
        depth = row.address.count("/") + _LEVELS
        inside = (
            operation
            for operation in self.operations
            if operation.address.startswith(f"{row.address}/")
            and operation.address.count("/") == depth
        )
        return max(row.microseconds - sum(operation.microseconds for operation in inside), 0.0)

    @property
    def sentence(self) -> str:
        """Sentence about the operation and the iteration that take most time, excluding time inside
        bodies.
        """
        first = max(self.operations, key=self._own, default=None)
        if first is None:
            return f"{self.runtime} told of no operation."
        own = self._own(first)
        part = f", {own / self.microseconds:.0%} of the run" if self.microseconds else ""
        times = f"in {first.runs:,} runs" if first.runs != 1 else "in one run"
        beside = "" if own == first.microseconds else " beside what is inside"
        text = (
            f"In {self.runtime} the costliest operation is {first.name!r} ({first.operation}): "
            f"{time_words(own)} {times}{part}{beside}."
        )
        iterations = [
            (lasted, number, loop)
            for loop in self.loops
            for number, lasted in enumerate(loop.times)
        ]
        if iterations:
            lasted, number, loop = max(iterations, key=lambda entry: entry[0])
            text += (
                f" The costliest iteration is number {number:,} of {readable(loop.address)}: "
                f"{time_words(lasted)}."
            )
        differing = [loop for loop in self.loops if loop.here]
        if differing:
            text += (
                f" {readable(differing[0].address)} ran {_counts(differing[0].there)} there, "
                f"{_counts(differing[0].here)} here."
            )
        return text


def by_cost(rows: Iterable[Clocked]) -> tuple[Clocked, ...]:
    return tuple(sorted(rows, key=lambda row: -row.microseconds))


def time_words(microseconds: float) -> str:
    """Return a duration as text with a readable unit.

    >>> time_words(3.25), time_words(4120.0), time_words(2.5e6)
    ('3.2 µs', '4.12 ms', '2.5 s')
    """
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= factor:
            return f"{significant(microseconds / factor, 3)} {unit}"
    return f"{microseconds:.1f} µs"


def _counts(counts: Sequence[int]) -> str:
    return (
        f"{sum(counts):,} iterations"
        if len(counts) == 1
        else f"{sum(counts):,} iterations in {len(counts):,} executions"
    )
