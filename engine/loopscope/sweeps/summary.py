"""Summary of many runs: minimum and maximum counts, branches that none took, the first failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from loopscope.sweeps.row_layout import RowLayout


_MAX_LISTED = 8
"""Maximum number of branches in one sentence."""


@dataclass(slots=True)
class LoopSummary:
    """Iteration counts of one loop over all runs; of a nested loop, of single executions."""

    runs: int = 0
    """Number of runs that executed the loop."""
    total: int = 0
    least: int | None = None
    most: int | None = None
    most_sample: int | None = None
    """The first sample with the maximum."""
    most_inputs: dict[str, Any] = field(default_factory=dict[str, Any])
    """Inputs of that sample with one number, by name."""
    endings: dict[str, int] = field(default_factory=dict[str, int])
    """Number of runs by ending."""


@dataclass(slots=True)
class BranchSummary:
    """Number of executions of each branch of an If, over all runs."""

    then: int = 0
    otherwise: int = 0


@dataclass(slots=True)
class SweepSummary:
    """Summary of all rows so far."""

    rows: int = 0
    failed: int = 0
    first_failed: tuple[int, str] | None = None
    """Sample and error."""
    with_nan: int = 0
    first_nan: tuple[int, str] | None = None
    """Sample, and address of the operation that computed the NaN."""
    loops: dict[str, LoopSummary] = field(default_factory=dict[str, LoopSummary])
    branches: dict[str, BranchSummary] = field(default_factory=dict[str, BranchSummary])

    @property
    def never_taken(self) -> tuple[str, ...]:
        """Branches that no run took, such as ``else main/if_2``."""
        branches = [(f"then {address}", branch.then) for address, branch in self.branches.items()]
        branches += [
            (f"else {address}", branch.otherwise) for address, branch in self.branches.items()
        ]
        return tuple(name for name, count in branches if not count)

    @property
    def other_never_taken(self) -> tuple[str, ...]:
        """Branches that no run took, of Ifs that did run."""
        never_ran = set(self.never_ran)
        return tuple(name for name in self.never_taken if name.partition(" ")[2] not in never_ran)

    @property
    def never_ran(self) -> tuple[str, ...]:
        """Ifs that no run executed, because their own branch or loop did not run."""
        return tuple(
            address
            for address, branch in self.branches.items()
            if not branch.then and not branch.otherwise
        )

    def sentences(self) -> Iterator[str]:
        """Yield the summary in words, one line each."""
        yield f"{self.rows:,} run{'s' * (self.rows != 1)}" + (
            f", {self.failed:,} of which failed" if self.failed else ""
        )
        for address, loop in self.loops.items():
            yield f"{address}: {_describe_loop(loop)}"
        never_ran = set(self.never_ran)
        for address, branch in self.branches.items():
            if address not in never_ran:
                yield f"{address}: then {branch.then:,}, else {branch.otherwise:,}"
        if self.other_never_taken and self.rows:
            yield f"never taken: {_format_names(self.other_never_taken)}"
        if never_ran and self.rows:
            yield f"never reached: {_format_names(self.never_ran)}"
        if self.first_nan is not None:
            sample, address = self.first_nan
            yield (
                f"{self.with_nan:,} with a NaN or infinity; "
                f"the first is sample {sample}, at {address}"
            )
        if self.first_failed is not None:
            yield f"the first that failed is sample {self.first_failed[0]}: {self.first_failed[1]}"

    def plain(self) -> dict[str, Any]:
        """Return the summary for JSON."""
        return {
            "rows": self.rows,
            "failed": self.failed,
            "first_failed": _plain_pair(self.first_failed, "error"),
            "with_nan": self.with_nan,
            "first_nan": _plain_pair(self.first_nan, "address"),
            "loops": {address: _plain_loop(item) for address, item in self.loops.items()},
            "branches": {
                address: {"then": item.then, "else": item.otherwise}
                for address, item in self.branches.items()
            },
            "never_taken": list(self.never_taken),
        }

    def add(self, layout: RowLayout, batch: pa.RecordBatch) -> None:
        """Add rows to the summary."""
        samples = batch["sample"].to_numpy()
        self.rows += len(samples)
        failed, self.first_failed = _first_text(samples, batch["error"], self.first_failed)
        with_nan, self.first_nan = _first_text(samples, batch["first NaN"], self.first_nan)
        self.failed, self.with_nan = self.failed + failed, self.with_nan + with_nan
        for loop in layout.loops:
            loop_summary = self.loops.setdefault(loop.address, LoopSummary())
            numbers = [batch[name] for name in loop.counts]
            place = _add_loop(
                loop_summary,
                samples,
                numbers[0],
                numbers[1 if loop.nested else 0],
                numbers[-1],
                batch[f"ended {loop.address}"],
            )
            if place is not None:
                loop_summary.most_inputs = {
                    column.name: batch[column.name][place].as_py() for column in layout.inputs
                }
        for branch in layout.branches:
            tally = self.branches.setdefault(branch.address, BranchSummary())
            tally.then += _sum(batch[f"then {branch.address}"])
            tally.otherwise += _sum(batch[f"else {branch.address}"])


def _add_loop(
    loop_summary: LoopSummary,
    samples: np.ndarray,
    total: pa.Array,
    minimum: pa.Array,
    maximum: pa.Array,
    endings: pa.Array,
) -> int | None:
    """Add the rows of a loop. Return the index of the row with a new maximum, or None."""
    executed = np.flatnonzero(maximum.is_valid().to_numpy(zero_copy_only=False))
    if not len(executed):
        return None
    counts = maximum.drop_null().to_numpy()
    smallest, place = int(minimum.drop_null().to_numpy().min()), int(counts.argmax())
    loop_summary.runs += len(executed)
    loop_summary.total += _sum(total)
    loop_summary.least = (
        smallest if loop_summary.least is None else min(loop_summary.least, smallest)
    )
    for ending in endings.drop_null().value_counts().to_pylist():
        loop_summary.endings[ending["values"]] = (
            loop_summary.endings.get(ending["values"], 0) + ending["counts"]
        )
    if loop_summary.most is not None and int(counts[place]) <= loop_summary.most:
        return None
    loop_summary.most, loop_summary.most_sample = int(counts[place]), int(samples[executed[place]])
    return int(executed[place])


def _first_text(
    samples: np.ndarray, column: pa.Array, before: tuple[int, str] | None
) -> tuple[int, tuple[int, str] | None]:
    """Return the number of rows with a text, and the first sample with a text so far."""
    count = len(column) - column.null_count
    if not count or before is not None:
        return count, before
    place = int(column.is_valid().to_numpy(zero_copy_only=False).argmax())
    return count, (int(samples[place]), column[place].as_py())


def _sum(column: pa.Array) -> int:
    numbers = column.drop_null()
    return int(numbers.to_numpy().sum()) if len(numbers) else 0


def _describe_loop(loop: LoopSummary) -> str:
    if loop.most is None:
        return "never ran"
    mean = loop.total / loop.runs
    minimum, maximum = (f"{count or 0:,}" for count in (loop.least, loop.most))
    counts = (
        f"{maximum} iteration{'s' * (loop.most != 1)} each"
        if loop.least == loop.most
        else f"{minimum} to {maximum} iterations"
    )
    inputs = ", ".join(f"{name} = {value}" for name, value in loop.most_inputs.items())
    longest = (
        ""
        if loop.least == loop.most
        else f", most in sample {loop.most_sample}" + (f" ({inputs})" if inputs else "")
    )
    return f"{counts}, {mean:,.1f} a run{longest}; ended by {_format_endings(loop.endings)}"


def _format_endings(endings: Mapping[str, int]) -> str:
    pairs: Iterable[Sequence[Any]] = sorted(endings.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} ({count:,})" for name, count in pairs)


def _format_names(names: Sequence[str]) -> str:
    """
    >>> _format_names(["a"] * 3), _format_names(["a"] * 12)
    ('a, a, a', 'a, a, a, a, a, a, a, a and 4 more')
    """
    return ", ".join(names[:_MAX_LISTED]) + (
        f" and {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else ""
    )


def _plain_pair(sample_and_text: tuple[int, str] | None, name: str) -> dict[str, Any] | None:
    return (
        None
        if sample_and_text is None
        else {"sample": sample_and_text[0], name: sample_and_text[1]}
    )


def _plain_loop(loop: LoopSummary) -> dict[str, Any]:
    return {
        "runs": loop.runs,
        "total": loop.total,
        "least": loop.least,
        "most": loop.most,
        "most_sample": loop.most_sample,
        "most_inputs": loop.most_inputs,
        "ended": dict(sorted(loop.endings.items())),
    }
