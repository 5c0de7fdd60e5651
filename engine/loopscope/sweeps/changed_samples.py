"""Comparison of two sweeps over the same inputs: inputs that change an iteration count, an ending
or a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from loopscope.errors import InputError
from loopscope.sweeps.row_layout import BranchColumns, LoopColumns, RowLayout

if TYPE_CHECKING:
    import pyarrow as pa

    from loopscope.sweeps.sweep import Sweep

_MAX_LISTED = 1000
"""Maximum number of changes that are stored one by one."""
Place = TypeVar("Place", LoopColumns, BranchColumns)


@dataclass(frozen=True, slots=True)
class Change:
    """Difference in one column of one sample."""

    sample: int
    column: str
    """Name of the column in the first sweep."""
    one: int | str | None
    other: int | str | None


@dataclass(slots=True)
class ColumnChanges:
    """Changes of one column over all samples."""

    changed: int = 0
    largest: Change | None = None
    """First of the largest changes of a count; for texts, the first change."""


@dataclass(slots=True)
class Changes:
    """Differences between the counts, endings and branches of two sweeps."""

    pairs: tuple[tuple[str, str], ...]
    """Matched columns, by their names in both sweeps."""
    alone: tuple[str, ...]
    """Addresses of loops and branches that only one of the models has."""
    samples: int = 0
    changed: int = 0
    """Number of samples in which any of the columns differs."""
    columns: dict[str, ColumnChanges] = field(default_factory=dict[str, ColumnChanges])
    listed: list[Change] = field(default_factory=list[Change])
    """The first thousand changes."""

    def add(self, left: pa.Table, right: pa.Table) -> None:
        """Add rows of the same samples of both sweeps; ``InputError`` if the samples differ."""
        samples = left["sample"].to_numpy()
        if not np.array_equal(samples, right["sample"].to_numpy()):
            raise InputError("the two sweeps are of different samples: give both the same inputs")
        anywhere = np.zeros(len(samples), bool)
        for name, right_name in self.pairs:
            values = left[name].to_pylist(), right[right_name].to_pylist()
            places = [
                place
                for place, (before, after) in enumerate(zip(*values, strict=True))
                if before != after
            ]
            anywhere[places] = True
            if places:
                self._add(
                    name,
                    [
                        Change(int(samples[place]), name, values[0][place], values[1][place])
                        for place in places
                    ],
                )
        self.samples += len(samples)
        self.changed += int(np.count_nonzero(anywhere))

    def _add(self, name: str, changes: Sequence[Change]) -> None:
        column = self.columns.setdefault(name, ColumnChanges())
        column.changed += len(changes)
        candidates = [*([column.largest] if column.largest else []), *changes]
        column.largest = max(candidates, key=_size)
        self.listed += changes[: _MAX_LISTED - len(self.listed)]

    def sentences(self) -> Iterator[str]:
        """Yield the differences in words, one line each."""
        whole = f"{self.samples:,} input{'s' * (self.samples != 1)}"
        yield (
            f"{self.changed:,} of {whole} change a count, an ending or a branch"
            if self.changed
            else f"none of {whole} changes a count"
        )
        for name, column in self.columns.items():
            largest = column.largest
            if largest is not None:
                rank = "the most" if isinstance(largest.one, int) and column.changed > 1 else "it"
                yield (
                    f"{name}: {column.changed:,} change, {rank} in sample {largest.sample}, "
                    f"from {_format_value(largest.one)} to {_format_value(largest.other)}"
                )
        if self.alone:
            yield f"only one of the models has {', '.join(self.alone)}"

    def plain(self) -> dict[str, Any]:
        """Return the differences for JSON."""
        return {
            "samples": self.samples,
            "changed": self.changed,
            "columns": {
                name: {
                    "changed": change.changed,
                    "largest": None if change.largest is None else _plain(change.largest),
                }
                for name, change in self.columns.items()
            },
            "only_in_one": list(self.alone),
            "changes": [_plain(change) for change in self.listed],
        }


def changes_between(left: RowLayout, right: RowLayout) -> Changes:
    """Return an empty comparison of two layouts.

    Loops and branches are matched by address. The unmatched ones are matched in order if both
    models have equally many.
    """
    loops, lonely = _match_places(left.loops, right.loops, lambda loop: loop.nested)
    branches, single = _match_places(left.branches, right.branches, lambda _: None)
    pairs: list[tuple[str, str]] = []
    for first, second in loops:
        pairs += zip(first.counts, second.counts, strict=True)
        pairs.append((f"ended {first.address}", f"ended {second.address}"))
    for before, after in branches:
        pairs += [
            (f"{branch_name} {before.address}", f"{branch_name} {after.address}")
            for branch_name in ("then", "else")
        ]
    return Changes(tuple(pairs), (*lonely, *single))


def changes(left: Sweep, right: Sweep) -> Changes:
    """Run and compare both sweeps, chunk by chunk in bounded memory; ``InputError`` if they differ
    in the number of samples.
    """
    if left.count != right.count:
        raise InputError(
            f"the sweeps have {left.count:,} and {right.count:,} samples: give both the same inputs"
        )
    differences = changes_between(left.layout, right.layout)
    for rows in _aligned_rows(left, right):
        differences.add(*rows)
    return differences


def _aligned_rows(left: Sweep, right: Sweep) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the same number of rows of both sweeps, independent of their chunks."""
    import pyarrow as pa

    waiting = [left.schema.empty_table(), right.schema.empty_table()]
    sources = [left.batches(), right.batches()]
    order = [0, 1]
    try:
        while True:
            for side in order:
                if not len(waiting[side]):
                    batch = next(sources[side], None)
                    if batch is None:
                        return
                    waiting[side] = pa.Table.from_batches([batch])
            count = min(map(len, waiting))
            yield waiting[0].slice(0, count), waiting[1].slice(0, count)
            waiting = [rows.slice(count) for rows in waiting]
            # The newest sweep ends first: each cluster restores the previous log configuration.
            order = [1, 0]
    finally:
        for source in reversed(sources):
            source.close()


def _match_places(
    left: Sequence[Place], right: Sequence[Place], kind: Callable[[Place], object]
) -> tuple[list[tuple[Place, Place]], tuple[str, ...]]:
    """Return pairs by address, then pairs in order if equally many are left, and the addresses of
    the unmatched places.
    """
    named = {place.address: place for place in right}
    pairs: list[tuple[Place, Place]] = [
        (place, named[place.address])
        for place in left
        if place.address in named and kind(place) == kind(named[place.address])
    ]
    matched_addresses = {place.address for place, _ in pairs}
    unmatched: tuple[list[Place], list[Place]] = (
        [place for place in left if place.address not in matched_addresses],
        [place for place in right if place.address not in matched_addresses],
    )
    if [kind(place) for place in unmatched[0]] == [kind(place) for place in unmatched[1]]:
        return pairs + list(zip(unmatched[0], unmatched[1], strict=True)), ()
    return pairs, tuple(place.address for side in unmatched for place in side)


def _size(change: Change) -> int:
    if isinstance(change.one, int) and isinstance(change.other, int):
        return abs(change.one - change.other)
    return 0


def _format_value(value: int | str | None) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else value


def _plain(change: Change) -> dict[str, Any]:
    return {
        "sample": change.sample,
        "column": change.column,
        "one": change.one,
        "other": change.other,
    }
