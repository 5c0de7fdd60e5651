"""Rows of chunks that the processes of a pool or a cluster compute, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Protocol

import pyarrow as pa

from loopscope.sweeps.batch import Batch
from loopscope.sweeps.stopping import Stop

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
