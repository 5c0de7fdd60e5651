"""Recording of a running source program: counts, branches, and values of each iteration.

Loaded in the framework's process by ``source_process.py``; it imports nothing of Loopscope.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LARGE = 1 << 16
"""Number of elements above which only a sample of a value is stored."""
SAMPLED = 1 << 12
"""Number of elements of a sample."""
MOST_BYTES = 256 * 2**20
"""Maximum bytes of all values; later values are not stored."""
MOST_EXECUTIONS = 1_000_000
"""Maximum executions of one loop or branch; the program is stopped above it."""


def sampled(value: np.ndarray) -> np.ndarray:
    """Return evenly spaced elements of a large value; a small value unchanged."""
    flat = value.reshape(-1)
    return (
        value
        if flat.size <= LARGE
        else flat[np.linspace(0, flat.size - 1, SAMPLED).astype(np.int64)]
    )


@dataclass(slots=True)
class LoopValue:
    """A value of a loop over all executions."""

    name: str
    starts: list[np.ndarray] = field(default_factory=list[np.ndarray])
    """Values before the first iteration of each execution; empty for a value that is not
    carried.
    """
    rows: list[np.ndarray] = field(default_factory=list[np.ndarray])
    """Values after each iteration."""
    shape: tuple[int, ...] | None = None
    """Shape before sampling."""
    refused: str = ""
    """Reason why the value is not stored; empty if it is."""


@dataclass(slots=True)
class ProgramRegion:
    """A loop or branch of the program."""

    name: str
    kind: str
    """``while_loop``, ``scan``, ``map`` or ``cond``, as in torch."""
    parent: int
    """Number of the enclosing region; -1 for the outermost graph."""
    body: str
    """Body of the enclosing region: ``body``, ``condition``, ``then`` or ``else``."""
    carried: int
    """Number of carried values; the remaining values are outputs of each iteration."""
    columns: list[LoopValue]
    counts: list[int] = field(default_factory=list[int])
    """Iteration count of each execution, in execution order."""
    taken: list[bool] = field(default_factory=list[bool])
    """True for each execution of a branch that took then."""


class Watch:
    """Recorded regions of a program, outer before inner."""

    def __init__(self) -> None:
        self.regions: list[ProgramRegion] = []
        self.whole: list[str] = []
        """Names of operations with inner graphs that are not recorded."""
        self._left = MOST_BYTES

    def declare(
        self,
        name: str,
        kind: str,
        parent: int,
        body: str,
        carried: Sequence[str] = (),
        output_count: int = 0,
    ) -> int:
        """Declare a region before the run and return its number; ``carried`` are the names of its
        carried values.
        """
        columns = [
            *map(LoopValue, carried),
            *(
                LoopValue(f"output {number}")
                for number in range(len(carried), len(carried) + output_count)
            ),
        ]
        self.regions.append(ProgramRegion(name, kind, parent, body, len(carried), columns))
        return len(self.regions) - 1

    def began(self, number: int, values: Sequence[Any]) -> None:
        """Record the start of a loop with its carried values; None for a value that is not a
        tensor.
        """
        region = self.regions[number]
        if len(region.counts) >= MOST_EXECUTIONS:
            raise ValueError(f"{region.name} runs more than {MOST_EXECUTIONS:,} times")
        region.counts.append(0)
        for column, value in zip(region.columns, values, strict=False):
            self._store(column, column.starts, value)

    def iterated(self, number: int, values: Sequence[Any]) -> None:
        """Record the end of an iteration: carried values, then outputs."""
        region = self.regions[number]
        region.counts[-1] += 1
        for column, value in zip(region.columns, values, strict=True):
            self._store(column, column.rows, value)

    def took(self, number: int, first: bool) -> None:
        """Record the branch taken."""
        region = self.regions[number]
        if len(region.taken) >= MOST_EXECUTIONS:
            raise ValueError(f"{region.name} runs more than {MOST_EXECUTIONS:,} times")
        region.taken.append(first)

    def run_as_a_whole(self) -> str:
        """Return a sentence about operations that are not recorded; empty if all are."""
        return f"Run as a whole, and not watched: {', '.join(self.whole)}." if self.whole else ""

    def _store(self, column: LoopValue, target: list[np.ndarray], value: Any) -> None:
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
        sample = np.array(sampled(value))
        self._left -= sample.nbytes
        if self._left >= 0:
            target.append(sample)

    def write(
        self, target: str, names: Sequence[str], outputs: Sequence[Any], **metadata: Any
    ) -> None:
        """Write a file of arrays, with ``metadata`` and the regions as JSON."""
        arrays: dict[str, np.ndarray] = {
            f"output/{number}": output
            for number, output in enumerate(outputs)
            if output is not None
        }
        regions = []
        for number, region in enumerate(self.regions):
            columns = []
            for index, column in enumerate(region.columns):
                for part, rows in (("start", column.starts), ("row", column.rows)):
                    if rows:
                        arrays[f"{part}/{number}/{index}"] = np.stack(rows)
                columns.append(
                    {"name": column.name, "shape": column.shape, "refused": column.refused}
                )
            fields = {
                key: getattr(region, key)
                for key in ("name", "kind", "parent", "body", "carried", "counts", "taken")
            }
            regions.append(fields | {"columns": columns})
        np.savez(
            target,
            allow_pickle=False,
            told=np.array(json.dumps({**metadata, "outputs": list(names), "regions": regions})),
            **arrays,
        )


def ordered(inputs: Sequence[str], file_names: Sequence[Sequence[str]], subject: str) -> list[int]:
    """Return the file's input number of each program input: by name if all names match, otherwise
    by order.

    Raise ``ValueError`` if the numbers of inputs differ.
    """
    if len(inputs) != len(file_names):
        raise ValueError(
            f"{subject} takes {len(inputs)} inputs ({', '.join(inputs)}), "
            f"and the file {len(file_names)}"
        )
    names = {
        plain(name): number
        for number, aliases in reversed(list(enumerate(file_names)))
        for name in aliases
    }
    numbers = [names.get(plain(name), -1) for name in inputs]
    return (
        numbers if sorted(numbers) == list(range(len(file_names))) else list(range(len(file_names)))
    )


def plain(name: str) -> str:
    """Return a name without the prefix and suffix that TensorFlow's exports add."""
    return name.removeprefix("serving_default_").partition(":")[0]


def fitting(name: str, array: np.ndarray, shape: Sequence[int | None]) -> np.ndarray:
    """Return an input if it has the shape that a program accepts; otherwise raise ``ValueError``.

    None in ``shape`` allows any length.
    """
    if len(shape) != array.ndim or any(
        length not in (None, own) for length, own in zip(shape, array.shape, strict=True)
    ):
        expected = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(
            f"the input {name!r} is of shape {list(array.shape)}, "
            f"and the program takes [{expected}]"
        )
    return array
