"""A sweep on Dask: a local cluster of processes that starts and ends with it, or one that is there already."""

from __future__ import annotations

import logging
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from multiprocessing import resource_tracker
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import numpy as np
import pyarrow as pa
from distributed import Client, Future, KilledWorker, LocalCluster, Worker, WorkerPlugin, get_worker, wait

from engine.errors import EngineError, shorten
from engine.ops.custom import install_file, installed_files
from engine.sweep.batch import Batch
from engine.sweep.sample_rows import rows_of
from engine.sweep.stopping import Stop
from engine.sweep.work_order import Order

_NO_PORT_OF_ITS_OWN = "127.0.0.1:0"
"""The scheduler's page is on a free port: nobody is told that the usual one is taken."""
_WAITING = 3
"""Chunks under way for each worker: one that runs and those that it finds next."""
_LOOK_AGAIN = 0.2
"""Seconds between two looks whether the sweep is to stop."""


class Holder(WorkerPlugin):
    """Holds the order in a worker: model and constants go there once, to those that join later too; so do the files of own operations."""

    def __init__(self, name: str, order: Order) -> None:
        self.name = name
        self.order = order
        self.operations = installed_files()
        self.stop = Stop()

    def setup(self, worker: Worker) -> None:
        """Adds the user's own operations to those that the worker has."""
        with TemporaryDirectory() as folder:
            for stem, text in self.operations.items():
                file = Path(folder) / f"{stem}.py"
                file.write_text(text, encoding="utf-8")
                install_file(file, replace=True)


def compute(name: str, batch: Batch) -> pa.RecordBatch:
    """The rows of a chunk, in a worker."""
    holder = get_worker().plugins[name]
    assert isinstance(holder, Holder)
    return rows_of(holder.order, batch if not holder.stop.asked else batch.at(np.arange(0)), holder.stop)


async def stop_there(name: str, dask_worker: Worker) -> None:
    """The run that is under way in a worker ends, and those that wait there do not begin."""
    holder = dask_worker.plugins.get(name)
    if isinstance(holder, Holder):
        holder.stop.ask()


def rows_on_cluster(
    order: Order, digest: str, batches: Iterator[Batch], workers: int, scheduler: str, stop: Stop
) -> Iterator[pa.RecordBatch]:
    """The rows of batches, in their order. A worker that is lost has its chunks done again by others.

    ``scheduler``: the address of a cluster; empty: one of ``workers`` processes on this machine. After a ``stop``, which workers hear
    within a second, the first rows of the chunk that comes next are the last. ``EngineError`` when there is no cluster at that address,
    or a chunk ended its worker again and again.
    """
    name = f"loopscope-{digest}-{uuid4().hex}"  # another sweep of the same on the same cluster is not stopped with this one
    with ExitStack() as open_until_done:
        client = _client(open_until_done, workers, scheduler)
        client.register_plugin(Holder(name, replace(order)))
        most = _WAITING * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        waiting = deque[tuple[Future, int]]()
        try:
            while True:
                for batch in islice(batches, most - len(waiting)):
                    waiting.append((client.submit(compute, name, batch, pure=False), len(batch)))
                if not waiting:
                    return
                future, count = waiting.popleft()
                rows = _result(client, name, future, stop)
                yield rows
                if len(rows) < count:  # it was stopped there: what others have is not next to it
                    return
        except KilledWorker as error:
            raise EngineError(f"a chunk of the sweep has ended its worker again and again: {shorten(str(error), 200)}") from None
        finally:
            if waiting:
                client.run(stop_there, name, wait=False)
            client.cancel([future for future, _ in waiting])
            client.unregister_worker_plugin(name)


def _result(client: Client, name: str, future: Future, stop: Stop) -> pa.RecordBatch:
    while not future.done():
        with suppress(TimeoutError):
            wait(future, timeout=_LOOK_AGAIN)
        if stop.asked:  # again and again: a worker that is started in place of a lost one has not heard it
            client.run(stop_there, name, wait=False)
    return future.result()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl+C on a terminal goes to all processes of a command: those that are started here leave it to the one that started them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would listen again to interrupts, once it is started, in the thread that needs it first
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _client(open_until_done: ExitStack, workers: int, scheduler: str) -> Client:
    if not scheduler:
        with _deaf_to_interrupts():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=_NO_PORT_OF_ITS_OWN,
                silence_logs=logging.CRITICAL,
            )
        return open_until_done.enter_context(Client(open_until_done.enter_context(cluster)))
    try:
        return open_until_done.enter_context(Client(scheduler, timeout=5))
    except (OSError, ValueError, ImportError) as error:
        raise EngineError(f"there is no Dask scheduler at {shorten(scheduler, 100)}: {shorten(str(error), 200)}") from None
