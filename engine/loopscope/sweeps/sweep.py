"""Runs a sweep: takes a model and its samples, gives rows, in order and in bounded memory."""

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
from loopscope.ir.model import Model, expect_model
from loopscope.ir.walk import nodes
from loopscope.sweeps.samples import Given, Samples, expect_all_inputs, samples_of
from loopscope.sweeps.stopping import Stop
from loopscope.sweeps.summary import SweepSummary

if TYPE_CHECKING:
    import pyarrow as pa

    from loopscope.sweeps.batch import Batch
    from loopscope.sweeps.job import SweepJob
    from loopscope.sweeps.parallel_rows import Workers

_CHUNK, _CHUNK_HERE = 64, 16
"""Samples of a chunk that run one by one: in another process, and in this one, where whoever
watches is told after each.
"""
_READ, _READ_BYTES = 1 << 14, 1 << 26
"""Samples that are read together, as far as they are no more bytes than that."""
_WORTH_PROCESSES, _LANES_WORTH_PROCESSES = 512, 1 << 22
"""Samples for which starting as many processes as were asked for pays, which takes some seconds."""
_FIRST_SECONDS, _LONG = 2.0, 12.0
"""Where nobody said how many: seconds for which the runs are tried here first, and what must be
left then for processes to pay.
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
    """Runs a model once for each of many inputs: a row of counts, endings, branches and outputs for
    each, in order.

    ``inputs``: what ``--inputs`` takes as words (a file, a folder, ``random:10000 seed=3``, a grid
    ``number=1..500``), arrays with a leading sample axis by input (``batch`` names those that have
    one, where not all have), or a sequence of inputs. ``limit``: the first so many. ``columns``:
    expressions over addresses or ends of them, a column each. ``limits`` are those of each run,
    ``seed`` that of random operations. ``first_nan=False`` does not look for the first NaN or
    infinity, which takes longer than a run without, nor ``margins=False`` for how narrowly loops
    ended. ``seconds=False`` leaves their column out, so that two sweeps give the same bytes.

    Large sweeps run in ``workers`` processes (not said: one for each core, once two seconds have
    shown that it takes long), which are reached through pipes; a script that starts processes needs
    the usual ``if __name__ == "__main__":``. With ``scheduler``, a sweep runs on the Dask cluster
    at that address, which needs the extra ``cluster``. ``scheduler_tls`` names the files of CA,
    certificate and key for its connections; without it, Dask's own configuration decides. Rows
    depend on none of these, nor on ``lanes``: whether inputs run side by side where that is
    possible. ``out``: a Parquet file that all rows go to; with ``resume`` those of a sweep that was
    stopped are kept.

    ``rounding``: types by patterns of addresses (``{"*": "bf16"}``), as ``loopscope.Debugger``
    takes them: values that are kept in a narrower type in all runs. ``loopscope.sweeps.changes``
    says which inputs another model, or a rounding, treats otherwise.

    Nothing runs before the first row is asked for. ``InputError`` for samples or columns that do
    not fit the model, ``MissingInput`` where no sample has one of its inputs.
    """
    from loopscope.sweeps.job import SweepJob

    expect_model(model, "loopscope.sweep")
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers: a number from 1 on is expected")
    if scheduler_tls is not None and (not scheduler or len(scheduler_tls) != 3):
        raise InputError(
            "scheduler_tls names three files (CA, certificate, key) and needs the address of a scheduler"
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
    """Where the runs of a sweep take place."""

    workers: int | None
    """Processes on this machine; None: as many as there are cores, if the sweep takes long."""
    scheduler: str
    """The address of a Dask cluster; empty: this machine."""
    tls: tuple[Path, ...] | None

    def opened(self, order: SweepJob) -> AbstractContextManager[Workers]:
        """Return the processes that compute chunks; they start when the result is entered."""
        if self.scheduler:
            from loopscope.sweeps.cluster import TLS, Cluster

            return Cluster(order, self.scheduler, None if self.tls is None else TLS(*self.tls))
        from loopscope.sweeps.process_pool import ProcessPool

        return ProcessPool(order, self.workers or _cores())


class Sweep:
    """One model over many inputs. Going over it runs it, once; ``summary`` is that of the rows
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
        """Samples in all."""
        self.summary = SweepSummary()
        self.schema = order.schema
        """Of its rows, as Arrow has them."""
        self.layout = order.layout
        """Which columns are the model's inputs, loops, branches and outputs."""
        self.columns: tuple[str, ...] = tuple(order.schema.names)
        """The names of all columns, in order."""

    def __repr__(self) -> str:
        return f"<Sweep: {self.summary.rows:,} of {self.count:,} rows>"

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Each row by its columns' names; None for what a run did not come to."""
        for batch in self.batches():
            yield from batch.to_pylist()

    def run(self) -> SweepSummary:
        """All of it, for its file and its summary."""
        for _ in self.batches():
            pass
        return self.summary

    def stop(self) -> None:
        """No more rows; the runs under way end, what is done is kept. May be called from another
        thread, and by a signal.
        """
        self._stop.ask()

    @property
    def is_complete(self) -> bool:
        """Whether all rows are there."""
        return self.summary.rows == self.count

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows in chunks, as Arrow has them; those that ``resume`` found come first."""
        if self._out is None:
            yield from self._added(self._rows(0))
            return
        from loopscope.sweeps.storage import KeptRows

        kept = KeptRows(self._out, self._order.schema, self._digest)
        yield from self._added(kept.begin(resume=self._resume))
        try:
            for batch in self._added(self._rows(kept.first)):
                kept.add(batch)
                yield batch
        finally:
            kept.finish(complete=self.is_complete)

    def _added(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.summary.add(self._order.layout, batch)
            yield batch

    def _rows(self, first: int) -> Iterator[pa.RecordBatch]:
        from loopscope.sweeps.runner import lanes_of, rows_of

        lanes = lanes_of(self._order)
        asked = self._place.workers
        workers = asked or _cores()
        left, used = self.count - first, 0.0
        if not self._place.scheduler and (
            asked is None
            or workers == 1
            or left < (_LANES_WORTH_PROCESSES if lanes else _WORTH_PROCESSES)
        ):
            for batch in self._batches(first, lanes or _CHUNK_HERE):
                begun = time.perf_counter()
                yield rows_of(self._order, batch, self._stop)
                first, used = first + len(batch), used + time.perf_counter() - begun
                done = left - (self.count - first)
                if (
                    asked is None
                    and workers > 1
                    and used > _FIRST_SECONDS
                    and used / done * (self.count - first) > _LONG
                ):
                    break
            else:
                return
        from loopscope.sweeps.parallel_rows import rows_in_parallel

        yield from rows_in_parallel(
            self._place.opened(self._order), self._batches(first, lanes or _CHUNK), self._stop
        )

    def _batches(self, first: int, size: int) -> Iterator[Batch]:
        """What is left, in chunks; read in larger parts, which begin at fixed numbers."""
        import numpy as np

        read = max(size, min(_READ, _READ_BYTES // self._sample_bytes) // size * size)
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
        """Of all that decides what the rows are."""
        order = self._order
        made = hashlib.blake2b(digest_size=16)
        made.update(
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
            made.update(
                f"{address} {node.type} {node.inputs!r} {sorted(map(str, node.attributes.items()))}".encode()
            )
            if node.constant is not None:
                made.update(
                    repr(
                        node.constant.array().tobytes()
                        if node.constant.array().dtype != object
                        else node.constant
                    ).encode()
                )
        return made.hexdigest()


def _cores() -> int:
    """That this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
