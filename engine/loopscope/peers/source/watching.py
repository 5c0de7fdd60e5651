"""What is written down while a source program runs: counts, branches, and values of each iteration.

Loaded in the process of a framework by ``source_process.py``, so it imports nothing of ours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LARGE = 1 << 16
"""Elements of a value beyond which only a sample of them is written down."""
SAMPLED = 1 << 12
"""Elements of a sample."""
MOST_BYTES = 256 * 2**20
"""Of all values together; what comes after them is not written down."""
MOST_EXECUTIONS = 1_000_000
"""Of one loop or branch; the program is ended where there are more."""


def sampled(value: np.ndarray) -> np.ndarray:
    """A large value as elements of it, evenly spread; a small one as it is."""
    flat = value.reshape(-1)
    return (
        value
        if flat.size <= LARGE
        else flat[np.linspace(0, flat.size - 1, SAMPLED).astype(np.int64)]
    )


@dataclass(slots=True)
class LoopValue:
    """One value of a loop, execution after execution."""

    name: str
    starts: list[np.ndarray] = field(default_factory=list[np.ndarray])
    """Before the first iteration of each execution; none of a value that iterations only give."""
    rows: list[np.ndarray] = field(default_factory=list[np.ndarray])
    """After each iteration."""
    shape: tuple[int, ...] | None = None
    """Before it was sampled."""
    refused: str = ""
    """Why it is not written down; empty where it is."""


@dataclass(slots=True)
class ProgramRegion:
    """One loop or branch of the program."""

    name: str
    kind: str
    """``while_loop``, ``scan``, ``map`` or ``cond``, as torch calls them."""
    parent: int
    """Number of the region around; -1 outermost."""
    body: str
    """The body of that region that it is in: ``body``, ``condition``, ``then`` or ``else``."""
    carried: int
    """How many of its values it carries; the others its iterations only give."""
    columns: list[LoopValue]
    counts: list[int] = field(default_factory=list[int])
    """Iterations of each execution, in the order in which they ran."""
    taken: list[bool] = field(default_factory=list[bool])
    """For each execution of a branch whether it was the first one, then."""


class Watch:
    """The regions of a program, outer ones before inner ones."""

    def __init__(self) -> None:
        self.regions: list[ProgramRegion] = []
        self.whole: list[str] = []
        """What has graphs inside and is not watched."""
        self._left = MOST_BYTES

    def declare(
        self,
        name: str,
        kind: str,
        parent: int,
        body: str,
        carried: Sequence[str] = (),
        given: int = 0,
    ) -> int:
        """A region, before anything runs; its number. ``carried`` are the names of what it
        carries.
        """
        columns = [
            *map(LoopValue, carried),
            *(
                LoopValue(f"output {number}")
                for number in range(len(carried), len(carried) + given)
            ),
        ]
        self.regions.append(ProgramRegion(name, kind, parent, body, len(carried), columns))
        return len(self.regions) - 1

    def began(self, number: int, values: Sequence[Any]) -> None:
        """A loop begins with what it carries; None for what is no tensor."""
        region = self.regions[number]
        if len(region.counts) >= MOST_EXECUTIONS:
            raise ValueError(f"{region.name} runs more than {MOST_EXECUTIONS:,} times")
        region.counts.append(0)
        for column, value in zip(region.columns, values, strict=False):
            self._put(column, column.starts, value)

    def iterated(self, number: int, values: Sequence[Any]) -> None:
        """An iteration has ended: what it carries on, then what it gives."""
        region = self.regions[number]
        region.counts[-1] += 1
        for column, value in zip(region.columns, values, strict=True):
            self._put(column, column.rows, value)

    def took(self, number: int, first: bool) -> None:
        """A branch is taken."""
        region = self.regions[number]
        if len(region.taken) >= MOST_EXECUTIONS:
            raise ValueError(f"{region.name} runs more than {MOST_EXECUTIONS:,} times")
        region.taken.append(first)

    def run_as_a_whole(self) -> str:
        """A sentence on what is not watched; empty where all is."""
        return f"Run as a whole, and not watched: {', '.join(self.whole)}." if self.whole else ""

    def _put(self, column: LoopValue, target: list[np.ndarray], value: Any) -> None:
        if column.refused:
            return
        if value is None or value.dtype.kind not in "biuf":
            column.refused = "not a tensor of numbers"
        elif column.shape is not None and value.shape != column.shape:
            column.refused = "of a shape that changes"
        if column.refused:
            column.starts, column.rows = [], []
            return
        column.shape = value.shape
        kept = np.array(sampled(value))
        self._left -= kept.nbytes
        if self._left >= 0:
            target.append(kept)

    def write(self, target: str, names: Sequence[str], outputs: Sequence[Any], **told: Any) -> None:
        """A file of arrays, and ``told`` with what they are as JSON."""
        arrays: dict[str, np.ndarray] = {
            f"output/{number}": one for number, one in enumerate(outputs) if one is not None
        }
        regions = []
        for number, region in enumerate(self.regions):
            columns = []
            for place, column in enumerate(region.columns):
                for part, rows in (("start", column.starts), ("row", column.rows)):
                    if rows:
                        arrays[f"{part}/{number}/{place}"] = np.stack(rows)
                columns.append(
                    {"name": column.name, "shape": column.shape, "refused": column.refused}
                )
            plain = {
                key: getattr(region, key)
                for key in ("name", "kind", "parent", "body", "carried", "counts", "taken")
            }
            regions.append(plain | {"columns": columns})
        np.savez(
            target,
            allow_pickle=False,
            told=np.array(json.dumps({**told, "outputs": list(names), "regions": regions})),
            **arrays,
        )


def ordered(wanted: Sequence[str], given: Sequence[Sequence[str]], called: str) -> list[int]:
    """For each input of a program the number of the file's input that it is: by name where all are
    found, else by order.

    ``ValueError`` where there are not as many.
    """
    if len(wanted) != len(given):
        raise ValueError(
            f"{called} takes {len(wanted)} inputs ({', '.join(wanted)}), and the file {len(given)}"
        )
    names = {
        plain(name): number for number, some in reversed(list(enumerate(given))) for name in some
    }
    found = [names.get(plain(name), -1) for name in wanted]
    return found if sorted(found) == list(range(len(given))) else list(range(len(given)))


def plain(name: str) -> str:
    """A name without what TensorFlow's exports add to it."""
    return name.removeprefix("serving_default_").partition(":")[0]


def fitting(name: str, array: np.ndarray, shape: Sequence[int | None]) -> np.ndarray:
    """An input as a program takes it; ``ValueError`` for one of another shape. None: any length."""
    if len(shape) != array.ndim or any(
        length not in (None, own) for length, own in zip(shape, array.shape, strict=True)
    ):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(
            f"the input {name!r} is of shape {list(array.shape)}, and the program takes [{wanted}]"
        )
    return array
