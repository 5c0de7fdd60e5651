"""Job of a sweep, the same in every process, the batches of samples that a runner computes for it,
and their rows.

The job has the model's plan, the columns, limits and seed. Rows are returned in order. A stop
request ends a batch early. The user's own operations are installed in each worker process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from loopscope.errors import InputError
from loopscope.executor.machine.limits import Limits, RunControl
from loopscope.executor.plan.plan import Plan
from loopscope.executor.plan.planner import plan_of
from loopscope.ir.model import Model
from loopscope.ops.custom import install_file
from loopscope.sweeps.row_layout import RowLayout, column_of, layout_of


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Consecutive samples of a sweep."""

    samples: np.ndarray
    """Number of each sample, from 0."""
    varying: Mapping[int, np.ndarray | Sequence[Any]]
    """Values by input position, along the first axis; a list if samples differ in shape."""
    fixed: Mapping[int, Any]
    """Value that all samples share, by input position."""
    refused: Mapping[int, str] = field(default_factory=dict[int, str])
    """Reason why a sample cannot be read, by sample number."""

    def __len__(self) -> int:
        return len(self.samples)

    def at(self, places: np.ndarray) -> Batch:
        """Return some of the samples, by their index in this batch."""
        return Batch(
            self.samples[places],
            {
                key: values[places]
                if isinstance(values, np.ndarray)
                else [values[place] for place in places]
                for key, values in self.varying.items()
            },
            self.fixed,
            self.refused,
        )

    def inputs(self, place: int) -> dict[int, Any]:
        """Return the inputs of one sample by position; ``InputError`` for a sample that cannot be
        read.
        """
        if (reason := self.refused.get(int(self.samples[place]))) is not None:
            raise InputError(reason)
        return {
            **self.fixed,
            **{
                key: values[place]
                for key, values in self.varying.items()
                if values[place] is not None
            },
        }


class SweepStopped(Exception):
    """Signal that the current samples are abandoned, because their rows are incomplete."""


class Stop:
    """Stop request of one sweep, in the process of its runs."""

    def __init__(self) -> None:
        self.asked = False
        self._control: RunControl | None = None

    def ask(self) -> None:
        """Request the stop: the current run ends, and no further run begins."""
        self.asked = True
        if self._control is not None:
            self._control.stop.set()

    def watch(self, control: RunControl) -> None:
        """Register the run that begins now."""
        self._control = control
        if self.asked:
            control.stop.set()

    def check(self) -> None:
        """Raise ``SweepStopped`` after a request."""
        if self.asked:
            raise SweepStopped


@dataclass(frozen=True, eq=False)
class SweepJob:
    """Work of one sweep, without its samples."""

    model: Model
    columns: Sequence[str] = ()
    """Expressions, one column each."""
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    first_nan: bool = True
    margins: bool = True
    seconds: bool = True
    lanes: bool = True
    """True if samples may run side by side when that gives the same rows."""

    @cached_property
    def plan(self) -> Plan:
        """The unpruned plan, as in a Debugger: a branch that no output needs is counted too."""
        return plan_of(self.model)

    @cached_property
    def layout(self) -> RowLayout:
        expressions = [(text, column_of(text)) for text in self.columns]
        return layout_of(
            self.plan,
            expressions,
            first_nan=self.first_nan,
            seconds=self.seconds,
            margins=self.margins,
        )

    @cached_property
    def schema(self) -> pa.Schema:
        return self.layout.schema()


RowsOfChunk = Callable[[Stop], pa.RecordBatch]
"""Function that waits for the rows of a chunk. After a stop, it returns the first rows of the
chunk.
"""

MOST_FAILURES = 3
"""Number of times that a chunk may end its worker before the sweep fails."""
LOOK_SECONDS = 0.2
"""Seconds between two checks for a stop request."""
_CHUNKS_PER_WORKER = 3
"""Number of chunks per worker: the running chunk and the next ones."""


class RowWorkers(Protocol):
    """Processes that compute chunks of one sweep, and chunks of a lost process again."""

    @property
    def count(self) -> int:
        """Number of processes."""

    def submit(self, batch: Batch) -> RowsOfChunk:
        """Queue a chunk and return at once."""


def rows_in_parallel(
    opened: AbstractContextManager[RowWorkers], batches: Iterator[Batch], stop: Stop
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of batches, in order. After a stop, the first rows of the next chunk are the
    last.
    """
    waiting = deque[tuple[RowsOfChunk, int]]()
    with opened as workers:
        while True:
            for batch in islice(batches, _CHUNKS_PER_WORKER * workers.count - len(waiting)):
                waiting.append((workers.submit(batch), len(batch)))
            if not waiting:
                return
            rows_of_chunk, length = waiting.popleft()
            rows = rows_of_chunk(stop)
            yield rows
            if len(rows) < length:  # stopped in this chunk: later rows would leave a gap
                return


def install_texts(texts: Mapping[str, str]) -> None:
    """Install operations from the texts of their files, by file name without ``.py``."""
    with TemporaryDirectory() as folder:
        for stem, text in texts.items():
            file = Path(folder) / f"{stem}.py"
            file.write_text(text, encoding="utf-8")
            install_file(file, replace=True)
