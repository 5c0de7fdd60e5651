"""Sweep of a model over samples: yields rows in order and in bounded memory."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopscope.errors import InputError
from loopscope.executor.machine.limits import Limits
from loopscope.ir.address import nodes
from loopscope.ir.model import Model, expect_model
from loopscope.sweeps.job import Stop
from loopscope.sweeps.samples import Given, Samples, expect_all_inputs, samples_of
from loopscope.sweeps.summary import SweepSummary

if TYPE_CHECKING:
    import pyarrow as pa

    from loopscope.sweeps.job import Batch, RowWorkers, SweepJob

_CHUNK, _LOCAL_CHUNK = 64, 16
"""Samples per chunk that run one by one: in another process, and in this one, where progress is
reported per chunk.
"""
_SAMPLES_PER_READ, _BYTES_PER_READ = 1 << 14, 1 << 26
"""Maximum number of samples that are read together, and of their bytes."""
_MIN_SAMPLES_FOR_PROCESSES, _MIN_LANE_SAMPLES_FOR_PROCESSES = 512, 1 << 22
"""Numbers of samples for which starting processes, which takes some seconds, is worthwhile."""
_TRIAL_SECONDS, _MIN_SECONDS_FOR_PROCESSES = 2.0, 12.0
"""Without a given number of workers: seconds that runs are tried in this process, and remaining
seconds for which processes are worthwhile.
"""


def sweep(
    model: Model,
    inputs: Given,
    *,
    columns: Sequence[str] = (),
    batch: Sequence[str] = (),
    limit: int | None = None,
    workers: int | None = None,
    scheduler: str = "",
    scheduler_tls: Sequence[str | Path] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    limits: Limits | None = None,
    seed: int = 0,
    first_nan: bool = True,
    margins: bool = True,
    seconds: bool = True,
    lanes: bool = True,
    rounding: Mapping[str, str] | None = None,
) -> Sweep:
    """Run a model once for each of many inputs, and yield a row of counts, endings, branches and
    outputs for each, in order.

    ``inputs`` are the words of ``--inputs`` (a file, a folder, ``random:10000 seed=3``, a grid
    ``number=1..500``), arrays with a leading sample axis by input, or a sequence of inputs.
    ``batch`` names the arrays with a sample axis, if not all have one. ``limit`` is the maximum
    number of samples. ``columns`` are expressions over addresses or ends of them, one column each.
    ``limits`` apply to each run, ``seed`` is for random operations. ``first_nan=False`` does not
    search for the first NaN or infinity, which takes longer than a run without. ``margins=False``
    does not compute how narrowly loops ended. ``seconds=False`` omits the column of times, so that
    two sweeps return the same bytes.

    Large sweeps run in ``workers`` processes, which are connected by pipes. By default there is one
    process per core, once two seconds have shown that the sweep takes long. A script that starts
    processes requires the usual ``if __name__ == "__main__":``. With ``scheduler``, a sweep runs on
    the Dask cluster at that address, which requires the extra ``cluster``. ``scheduler_tls`` names
    the files of CA, certificate and key for its connections; without it, Dask's own configuration
    decides. ``lanes`` runs inputs side by side where possible. The rows do not depend on any of
    these settings. ``out`` is a Parquet file for all rows; ``resume`` continues a sweep that was
    stopped.

    ``rounding`` are types by patterns of addresses (``{"*": "bf16"}``), as in
    ``loopscope.Debugger``: values that all runs round to a narrower type.
    ``loopscope.sweeps.changes`` finds the inputs that another model, or a rounding, handles
    differently.

    Nothing runs before the first row is requested. Raises ``InputError`` for samples or columns
    that do not fit the model, and ``MissingInput`` if no sample has one of its inputs.
    """
    from loopscope.sweeps.job import SweepJob

    expect_model(model, "loopscope.sweep")
    if workers is not None and workers < 1:
        raise InputError(f"workers: expected a number of at least 1, got {workers}")
    if scheduler_tls is not None and (not scheduler or len(scheduler_tls) != 3):
        raise InputError(
            "scheduler_tls names three files (CA, certificate, key) "
            "and needs the address of a scheduler"
        )
    if rounding:
        from loopscope.transform.rounding import rounded

        model = rounded(model, rounding)
    order = SweepJob(
        model, tuple(columns), limits or Limits(), seed, first_nan, margins, seconds, lanes
    )
    samples = samples_of(model, inputs, batch)
    expect_all_inputs(model, samples)
    count = samples.count if limit is None else min(limit, samples.count)
    place = _Place(
        workers, scheduler, None if scheduler_tls is None else tuple(map(Path, scheduler_tls))
    )
    return Sweep(order, samples, count, place, None if out is None else Path(out), resume)


@dataclass(frozen=True)
class _Place:
    """Place where the runs of a sweep execute."""

    workers: int | None
    """Number of processes on this machine; None for one per core, if the sweep takes long."""
    scheduler: str
    """Address of a Dask cluster; empty for this machine."""
    tls: tuple[Path, ...] | None

    def opened(self, order: SweepJob) -> AbstractContextManager[RowWorkers]:
        """Return the processes that compute chunks; they start when the result is entered."""
        if self.scheduler:
            from loopscope.sweeps.cluster import TLS, Cluster

            return Cluster(order, self.scheduler, None if self.tls is None else TLS(*self.tls))
        from loopscope.sweeps.process_pool import ProcessPool

        return ProcessPool(order, self.workers or _cores())


class Sweep:
    """One model over many inputs. Iterating over it runs it once; ``summary`` is that of the rows
    so far.
    """

    def __init__(
        self,
        order: SweepJob,
        samples: Samples,
        count: int,
        place: _Place,
        out: Path | None,
        resume: bool,
    ) -> None:
        self._order, self._samples = order, samples
        self._place = place
        self._out, self._resume = out, resume
        self._stop = Stop()
        self.count = count
        """Number of all samples."""
        self.summary = SweepSummary()
        self.schema = order.schema
        """Arrow schema of the rows."""
        self.layout = order.layout
        """Layout with the columns of inputs, loops, branches and outputs."""
        self.columns: tuple[str, ...] = tuple(order.schema.names)
        """Names of all columns, in order."""

    def __repr__(self) -> str:
        return f"<Sweep: {self.summary.rows:,} of {self.count:,} rows>"

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Yield each row by column name; None for a value that the run did not reach."""
        for batch in self.batches():
            yield from batch.to_pylist()

    def run(self) -> SweepSummary:
        """Run the whole sweep, for its file and its summary."""
        for _ in self.batches():
            pass
        return self.summary

    def stop(self) -> None:
        """Stop the sweep: current runs end, completed rows are stored. Other threads and signal
        handlers may call this.
        """
        self._stop.ask()

    @property
    def is_complete(self) -> bool:
        """True if all rows have been computed."""
        return self.summary.rows == self.count

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows in chunks as Arrow batches. Rows that ``resume`` found come first."""
        if self._out is None:
            yield from self._added(self._rows(0))
            return
        from loopscope.sweeps.storage import KeptRows

        storage = KeptRows(self._out, self._order.schema, self._digest)
        yield from self._added(storage.begin(resume=self._resume))
        try:
            for batch in self._added(self._rows(storage.first)):
                storage.add(batch)
                yield batch
        finally:
            storage.finish(complete=self.is_complete)

    def _added(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.summary.add(self._order.layout, batch)
            yield batch

    def _rows(self, first: int) -> Iterator[pa.RecordBatch]:
        from loopscope.sweeps.runner import lanes_of, rows_of

        lanes = lanes_of(self._order)
        requested_workers = self._place.workers
        workers = requested_workers or _cores()
        remaining, used = self.count - first, 0.0
        if not self._place.scheduler and (
            requested_workers is None
            or workers == 1
            or remaining
            < (_MIN_LANE_SAMPLES_FOR_PROCESSES if lanes else _MIN_SAMPLES_FOR_PROCESSES)
        ):
            for batch in self._batches(first, lanes or _LOCAL_CHUNK):
                begun = time.perf_counter()
                yield rows_of(self._order, batch, self._stop)
                first, used = first + len(batch), used + time.perf_counter() - begun
                done = remaining - (self.count - first)
                if (
                    requested_workers is None
                    and workers > 1
                    and used > _TRIAL_SECONDS
                    and used / done * (self.count - first) > _MIN_SECONDS_FOR_PROCESSES
                ):
                    break
            else:
                return
        from loopscope.sweeps.job import rows_in_parallel

        yield from rows_in_parallel(
            self._place.opened(self._order), self._batches(first, lanes or _CHUNK), self._stop
        )

    def _batches(self, first: int, size: int) -> Iterator[Batch]:
        """Yield the remaining samples in chunks. They are read in larger parts that begin at fixed
        numbers.
        """
        import numpy as np

        read = max(
            size, min(_SAMPLES_PER_READ, _BYTES_PER_READ // self._sample_bytes) // size * size
        )
        for begin in range(first, self.count, read):
            end = min(begin + read, self.count)
            part = self._samples.batch(begin, end)
            for place in range(0, end - begin, size):
                if self._stop.asked:
                    return
                yield part.at(np.arange(place, min(place + size, end - begin)))

    @property
    def _sample_bytes(self) -> int:
        import numpy as np

        first = self._samples.batch(0, min(1, self.count))
        return (
            sum(np.asarray(value).nbytes for values in first.varying.values() for value in values)
            or 1
        )

    @property
    def _digest(self) -> str:
        """Digest of everything that determines the rows."""
        order = self._order
        digest = hashlib.blake2b(digest_size=16)
        digest.update(
            repr(
                (
                    order.columns,
                    order.limits,
                    order.seed,
                    order.first_nan,
                    self._samples.description,
                    self.columns,
                )
            ).encode()
        )
        for address, node in nodes(order.model):
            attributes = sorted(map(str, node.attributes.items()))
            digest.update(f"{address} {node.type} {node.inputs!r} {attributes}".encode())
            if node.constant is not None:
                digest.update(
                    repr(
                        node.constant.array().tobytes()
                        if node.constant.array().dtype != object
                        else node.constant
                    ).encode()
                )
        return digest.hexdigest()


def _cores() -> int:
    """Return the number of cores that this process may use, if the system reports it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
