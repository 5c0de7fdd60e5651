"""What many runs have in common and which stand out: the least, the most, the branch that none
took, the first that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from loopscope.sweeps.row_layout import RowLayout


_MOST_LISTED = 8
"""Branches of one sentence."""


@dataclass(slots=True)
class LoopSummary:
    """Iterations of one loop over all runs; of one that a run executes many times, of single
    executions.
    """

    runs: int = 0
    """That executed it."""
    total: int = 0
    least: int | None = None
    most: int | None = None
    most_sample: int | None = None
    """The first sample with the most."""
    most_inputs: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its inputs of one number, by name."""
    endings: dict[str, int] = field(default_factory=dict[str, int])
    """Runs by how it ended."""


@dataclass(slots=True)
class BranchSummary:
    """How often each branch of an If was taken, all runs together."""

    then: int = 0
    otherwise: int = 0


@dataclass(slots=True)
class SweepSummary:
    """Of all rows so far."""

    rows: int = 0
    failed: int = 0
    first_failed: tuple[int, str] | None = None
    """Sample and error."""
    with_nan: int = 0
    first_nan: tuple[int, str] | None = None
    """Sample, and address of the operation that made it."""
    loops: dict[str, LoopSummary] = field(default_factory=dict[str, LoopSummary])
    branches: dict[str, BranchSummary] = field(default_factory=dict[str, BranchSummary])

    @property
    def never_taken(self) -> tuple[str, ...]:
        """Branches that no run took, such as ``else main/if_2``."""
        found = [(f"then {address}", one.then) for address, one in self.branches.items()]
        found += [(f"else {address}", one.otherwise) for address, one in self.branches.items()]
        return tuple(name for name, count in found if not count)

    @property
    def other_never_taken(self) -> tuple[str, ...]:
        """Those of Ifs that did run: of the others neither branch was."""
        never_ran = set(self.never_ran)
        return tuple(name for name in self.never_taken if name.partition(" ")[2] not in never_ran)

    @property
    def never_ran(self) -> tuple[str, ...]:
        """Ifs that no run came to, since they are in branches or loops that it did not run."""
        return tuple(
            address for address, one in self.branches.items() if not one.then and not one.otherwise
        )

    def sentences(self) -> Iterator[str]:
        """The same in words, a line each."""
        yield f"{self.rows:,} run{'s' * (self.rows != 1)}" + (
            f", {self.failed:,} of which failed" if self.failed else ""
        )
        for address, loop in self.loops.items():
            yield f"{address}: {_of_loop(loop)}"
        never_ran = set(self.never_ran)
        for address, branch in self.branches.items():
            if address not in never_ran:
                yield f"{address}: then {branch.then:,}, else {branch.otherwise:,}"
        if self.other_never_taken and self.rows:
            yield f"never taken: {_some(self.other_never_taken)}"
        if never_ran and self.rows:
            yield f"never reached: {_some(self.never_ran)}"
        if self.first_nan is not None:
            sample, address = self.first_nan
            yield f"{self.with_nan:,} with a NaN or infinity; the first is sample {sample}, at {address}"
        if self.first_failed is not None:
            yield f"the first that failed is sample {self.first_failed[0]}: {self.first_failed[1]}"

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "rows": self.rows,
            "failed": self.failed,
            "first_failed": _pair(self.first_failed, "error"),
            "with_nan": self.with_nan,
            "first_nan": _pair(self.first_nan, "address"),
            "loops": {address: _plain_loop(one) for address, one in self.loops.items()},
            "branches": {
                address: {"then": one.then, "else": one.otherwise}
                for address, one in self.branches.items()
            },
            "never_taken": list(self.never_taken),
        }

    def add(self, layout: RowLayout, batch: pa.RecordBatch) -> None:
        """Some more rows."""
        samples = batch["sample"].to_numpy()
        self.rows += len(samples)
        failed, self.first_failed = _first(samples, batch["error"], self.first_failed)
        with_nan, self.first_nan = _first(samples, batch["first NaN"], self.first_nan)
        self.failed, self.with_nan = self.failed + failed, self.with_nan + with_nan
        for loop in layout.loops:
            found = self.loops.setdefault(loop.address, LoopSummary())
            numbers = [batch[name] for name in loop.counts]
            place = _add_loop(
                found,
                samples,
                numbers[0],
                numbers[1 if loop.nested else 0],
                numbers[-1],
                batch[f"ended {loop.address}"],
            )
            if place is not None:
                found.most_inputs = {
                    one.name: batch[one.name][place].as_py() for one in layout.inputs
                }
        for branch in layout.branches:
            tally = self.branches.setdefault(branch.address, BranchSummary())
            tally.then += _sum(batch[f"then {branch.address}"])
            tally.otherwise += _sum(batch[f"else {branch.address}"])


def _add_loop(
    found: LoopSummary,
    samples: np.ndarray,
    total: pa.Array,
    least: pa.Array,
    most: pa.Array,
    endings: pa.Array,
) -> int | None:
    """The place of the row that has more iterations than all before, where there is one."""
    there = np.flatnonzero(most.is_valid().to_numpy(zero_copy_only=False))
    if not len(there):
        return None
    counts = most.drop_null().to_numpy()
    smallest, place = int(least.drop_null().to_numpy().min()), int(counts.argmax())
    found.runs += len(there)
    found.total += _sum(total)
    found.least = smallest if found.least is None else min(found.least, smallest)
    for one in endings.drop_null().value_counts().to_pylist():
        found.endings[one["values"]] = found.endings.get(one["values"], 0) + one["counts"]
    if found.most is not None and int(counts[place]) <= found.most:
        return None
    found.most, found.most_sample = int(counts[place]), int(samples[there[place]])
    return int(there[place])


def _first(
    samples: np.ndarray, column: pa.Array, before: tuple[int, str] | None
) -> tuple[int, tuple[int, str] | None]:
    """How many rows have a text, and the first of all so far."""
    count = len(column) - column.null_count
    if not count or before is not None:
        return count, before
    place = int(column.is_valid().to_numpy(zero_copy_only=False).argmax())
    return count, (int(samples[place]), column[place].as_py())


def _sum(column: pa.Array) -> int:
    numbers = column.drop_null()
    return int(numbers.to_numpy().sum()) if len(numbers) else 0


def _of_loop(loop: LoopSummary) -> str:
    if loop.most is None:
        return "never ran"
    mean = loop.total / loop.runs
    least, most = (f"{one or 0:,}" for one in (loop.least, loop.most))
    counts = (
        f"{most} iteration{'s' * (loop.most != 1)} each"
        if loop.least == loop.most
        else f"{least} to {most} iterations"
    )
    given = ", ".join(f"{name} = {value}" for name, value in loop.most_inputs.items())
    longest = (
        ""
        if loop.least == loop.most
        else f", most in sample {loop.most_sample}" + (f" ({given})" if given else "")
    )
    return f"{counts}, {mean:,.1f} a run{longest}; ended by {_said(loop.endings)}"


def _said(endings: Mapping[str, int]) -> str:
    pairs: Iterable[Sequence[Any]] = sorted(endings.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} ({count:,})" for name, count in pairs)


def _some(names: Sequence[str]) -> str:
    """
    >>> _some(["a"] * 3), _some(["a"] * 12)
    ('a, a, a', 'a, a, a, a, a, a, a, a and 4 more')
    """
    return ", ".join(names[:_MOST_LISTED]) + (
        f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    )


def _pair(found: tuple[int, str] | None, name: str) -> dict[str, Any] | None:
    return None if found is None else {"sample": found[0], name: found[1]}


def _plain_loop(one: LoopSummary) -> dict[str, Any]:
    return {
        "runs": one.runs,
        "total": one.total,
        "least": one.least,
        "most": one.most,
        "most_sample": one.most_sample,
        "most_inputs": one.most_inputs,
        "ended": dict(sorted(one.endings.items())),
    }
