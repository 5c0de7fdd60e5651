"""Two sweeps over the same inputs, side by side: which inputs change how often a loop runs, how
it ends, or which branch is taken.
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

_LISTED = 1000
"""Changes that are kept one by one."""
Place = TypeVar("Place", LoopColumns, BranchColumns)


@dataclass(frozen=True, slots=True)
class Change:
    """One column of one sample."""

    sample: int
    column: str
    """As the first sweep calls it."""
    one: int | str | None
    other: int | str | None


@dataclass(slots=True)
class ColumnChanges:
    """Of all samples."""

    changed: int = 0
    largest: Change | None = None
    """The first of those that change a count the most; of texts, the first."""


@dataclass(slots=True)
class Changes:
    """What one sweep counts otherwise than the other."""

    pairs: tuple[tuple[str, str], ...]
    """The columns that belong together, as either sweep calls them."""
    alone: tuple[str, ...]
    """Addresses of loops and branches that only one of the models has."""
    samples: int = 0
    changed: int = 0
    """Samples in which any of the columns is another."""
    columns: dict[str, ColumnChanges] = field(default_factory=dict[str, ColumnChanges])
    listed: list[Change] = field(default_factory=list[Change])
    """The first thousand."""

    def add(self, one: pa.Table, other: pa.Table) -> None:
        """Rows of the same samples. ``InputError`` where they are of others."""
        samples = one["sample"].to_numpy()
        if not np.array_equal(samples, other["sample"].to_numpy()):
            raise InputError("the two sweeps are of different samples: give both the same inputs")
        anywhere = np.zeros(len(samples), bool)
        for name, called in self.pairs:
            values = one[name].to_pylist(), other[called].to_pylist()
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

    def _add(self, name: str, found: Sequence[Change]) -> None:
        column = self.columns.setdefault(name, ColumnChanges())
        column.changed += len(found)
        candidates = [*([column.largest] if column.largest else []), *found]
        column.largest = max(candidates, key=_size)
        self.listed += found[: _LISTED - len(self.listed)]

    def sentences(self) -> Iterator[str]:
        """In words, a line each."""
        whole = f"{self.samples:,} input{'s' * (self.samples != 1)}"
        yield (
            f"{self.changed:,} of {whole} change a count, an ending or a branch"
            if self.changed
            else f"none of {whole} changes a count"
        )
        for name, column in self.columns.items():
            one = column.largest
            if one is not None:
                most = "the most" if isinstance(one.one, int) and column.changed > 1 else "it"
                yield f"{name}: {column.changed:,} change, {most} in sample {one.sample}, from {_said(one.one)} to {_said(one.other)}"
        if self.alone:
            yield f"only one of the models has {', '.join(self.alone)}"

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "samples": self.samples,
            "changed": self.changed,
            "columns": {
                name: {
                    "changed": one.changed,
                    "largest": None if one.largest is None else _plain(one.largest),
                }
                for name, one in self.columns.items()
            },
            "only_in_one": list(self.alone),
            "changes": [_plain(one) for one in self.listed],
        }


def changes_between(one: RowLayout, other: RowLayout) -> Changes:
    """Nothing compared yet. Loops and branches belong together by address; where models name
    them otherwise, in their order.
    """
    loops, lonely = _matched(one.loops, other.loops, lambda loop: loop.nested)
    branches, single = _matched(one.branches, other.branches, lambda _: None)
    pairs: list[tuple[str, str]] = []
    for first, second in loops:
        pairs += zip(first.counts, second.counts, strict=True)
        pairs.append((f"ended {first.address}", f"ended {second.address}"))
    for before, after in branches:
        pairs += [(f"{way} {before.address}", f"{way} {after.address}") for way in ("then", "else")]
    return Changes(tuple(pairs), (*lonely, *single))


def changes(one: Sweep, other: Sweep) -> Changes:
    """Runs both sweeps, chunk by chunk in bounded memory. ``InputError`` where their samples
    differ in number.
    """
    if one.count != other.count:
        raise InputError(
            f"the sweeps have {one.count:,} and {other.count:,} samples: give both the same inputs"
        )
    found = changes_between(one.layout, other.layout)
    for rows in _together(one, other):
        found.add(*rows)
    return found


def _together(one: Sweep, other: Sweep) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The rows of both, as many of one as of the other, whatever their chunks are."""
    import pyarrow as pa

    waiting = [one.schema.empty_table(), other.schema.empty_table()]
    sources = [one.batches(), other.batches()]
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
            order = [
                1,
                0,
            ]  # what began last ends first: each cluster puts back the log that it found
    finally:
        for source in reversed(sources):
            source.close()


def _matched(
    one: Sequence[Place], other: Sequence[Place], kind: Callable[[Place], object]
) -> tuple[list[tuple[Place, Place]], tuple[str, ...]]:
    """Pairs by address; of the rest, pairs in order where both have as many; and the addresses
    of what is left over.
    """
    named = {place.address: place for place in other}
    pairs: list[tuple[Place, Place]] = [
        (place, named[place.address])
        for place in one
        if place.address in named and kind(place) == kind(named[place.address])
    ]
    taken = {place.address for place, _ in pairs}
    left: tuple[list[Place], list[Place]] = (
        [place for place in one if place.address not in taken],
        [place for place in other if place.address not in taken],
    )
    if [kind(place) for place in left[0]] == [kind(place) for place in left[1]]:
        return pairs + list(zip(left[0], left[1], strict=True)), ()
    return pairs, tuple(place.address for side in left for place in side)


def _size(change: Change) -> int:
    if isinstance(change.one, int) and isinstance(change.other, int):
        return abs(change.one - change.other)
    return 0


def _said(value: int | str | None) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else value


def _plain(change: Change) -> dict[str, Any]:
    return {
        "sample": change.sample,
        "column": change.column,
        "one": change.one,
        "other": change.other,
    }
