"""Workers of an existing Dask cluster; requires the extra ``cluster``."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa

from loopscope.errors import EngineError, InputError, shorten
from loopscope.ops.custom import installed_files
from loopscope.sweeps.job import LOOK_SECONDS, Batch, RowsOfChunk, Stop, SweepJob, install_texts
from loopscope.sweeps.runner import rows_of

try:
    from distributed import (
        Client,
        Future,
        KilledWorker,
        Security,
        Worker,
        WorkerPlugin,
        get_worker,
        wait,
    )
except ImportError:
    raise EngineError(
        'a sweep on a Dask cluster needs the extra `cluster`: pip install "loopscope[cluster]"'
    ) from None


class TLS(NamedTuple):
    """Files in PEM form that a cluster's connections are secured with."""

    ca: Path
    certificate: Path
    key: Path


class Holder(WorkerPlugin):
    """Job of a sweep in a worker. Dask sends it to each worker once, also to workers that join
    later.
    """

    def __init__(self, name: str, order: SweepJob) -> None:
        self.name = name
        self.order = order
        self.operations = installed_files()
        self.stop = Stop()

    def setup(self, worker: Worker) -> None:
        """Install the user's own operations."""
        install_texts(self.operations)


def compute(name: str, batch: Batch) -> pa.RecordBatch:
    """Return the rows of a chunk, in a worker."""
    holder = get_worker().plugins[name]
    assert isinstance(holder, Holder)
    return rows_of(
        holder.order, batch if not holder.stop.asked else batch.at(np.arange(0)), holder.stop
    )


async def stop_there(name: str, dask_worker: Worker) -> None:
    """Stop the current run in a worker, and do not begin the waiting ones."""
    holder = dask_worker.plugins.get(name)
    if isinstance(holder, Holder):
        holder.stop.ask()


class Cluster:
    """The workers of a Dask scheduler. ``tls=None`` leaves security to Dask's configuration."""

    def __init__(self, order: SweepJob, address: str, tls: TLS | None) -> None:
        self.count = 1
        self._order, self._address, self._tls = order, address, tls
        self._name = f"loopscope-{uuid4().hex}"
        """Unique, so that stopping this sweep does not stop another on the same cluster."""
        self._futures = set[Future]()
        self._close = ExitStack()

    def __enter__(self) -> Self:
        self._client = self._close.enter_context(_client(self._address, self._tls))
        self._client.register_plugin(Holder(self._name, replace(self._order)))
        self.count = max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))
        return self

    def __exit__(self, *error: object) -> None:
        with self._close:
            if self._futures:
                self._client.run(stop_there, self._name, wait=False)
            self._client.cancel(list(self._futures))
            self._client.unregister_worker_plugin(self._name)

    def submit(self, batch: Batch) -> RowsOfChunk:
        """Queue a chunk and return at once."""
        future = self._client.submit(compute, self._name, batch, pure=False)
        self._futures.add(future)

        def rows(stop: Stop) -> pa.RecordBatch:
            while not future.done():
                with suppress(TimeoutError):
                    wait(future, timeout=LOOK_SECONDS)
                if stop.asked:  # repeated, for a worker that replaces a lost one
                    self._client.run(stop_there, self._name, wait=False)
            self._futures.discard(future)
            try:
                return future.result()
            except KilledWorker as error:
                message = shorten(str(error), 200)
                raise EngineError(
                    f"a chunk of the sweep has ended its worker again and again: {message}"
                ) from None

        return rows


def _client(address: str, tls: TLS | None) -> Client:
    security = None
    if tls is not None:
        for file in tls:
            if not file.is_file():
                raise InputError(
                    f"--scheduler-tls: there is no file {shorten(str(file), 100)}; "
                    "expected CA, certificate and key as PEM"
                )
        security = Security(
            tls_ca_file=str(tls.ca),
            tls_client_cert=str(tls.certificate),
            tls_client_key=str(tls.key),
            require_encryption=True,
        )
    try:
        return Client(address, timeout=5, security=security)
    except (OSError, ValueError, ImportError, TypeError, RuntimeError) as error:
        where, why = shorten(address, 100), shorten(str(error), 200)
        raise EngineError(f"there is no Dask scheduler at {where}: {why}") from None
