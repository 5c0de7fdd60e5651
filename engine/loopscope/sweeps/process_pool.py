"""Worker processes of a sweep on this machine, connected by pipes only."""

from __future__ import annotations

import copyreg
import io
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import connection, resource_tracker
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from loopscope.errors import EngineError
from loopscope.ops.custom import installed_files
from loopscope.sweeps.job import (
    LOOK_SECONDS,
    MOST_FAILURES,
    Batch,
    RowsOfChunk,
    Stop,
    SweepJob,
    install_texts,
)
from loopscope.sweeps.runner import rows_of

if TYPE_CHECKING:
    _Pipe = connection.Connection[Any, Any]

_STOP = b"stop"
_CHUNKS_PER_PIPE = 2
"""Number of chunks in a worker's pipe: the running chunk and the next, so that workers are not
idle.
"""
_END_SECONDS = 2.0
"""Seconds that workers have to end before they are killed."""
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that give each worker one thread of BLAS, unless the user has set them."""


@dataclass(eq=False)
class _Chunk:
    """Samples that were submitted, and their rows once a worker has sent them."""

    message: bytes
    rows: pa.RecordBatch | None = None
    failures: int = 0


@dataclass(eq=False)
class _Worker:
    """A worker process, as its parent sees it."""

    process: BaseProcess
    pipe: _Pipe
    is_ready: bool = False
    is_stopped: bool = False
    chunks: deque[_Chunk] = field(default_factory=deque[_Chunk])
    """Chunks that were handed out, the running chunk first."""


class ProcessPool:
    """Processes that compute chunks of one sweep, from the first chunk to the end of ``with``."""

    def __init__(self, order: SweepJob, count: int) -> None:
        self.count = count
        self._order = order
        self._order_message = b""
        self._workers: list[_Worker] = []
        self._waiting = deque[_Chunk]()

    def __enter__(self) -> Self:
        self._order_message = _pickled((installed_files(), replace(self._order)))
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.pipe.close()
        until = time.monotonic() + _END_SECONDS
        for worker in self._workers:
            _end(worker.process, until)
        self._workers.clear()
        self._waiting.clear()

    def submit(self, batch: Batch) -> RowsOfChunk:
        """Queue a chunk and return at once."""
        chunk = _Chunk(_pickled(batch))
        self._waiting.append(chunk)

        def rows(stop: Stop) -> pa.RecordBatch:
            while chunk.rows is None:
                self._advance(stop)
            return chunk.rows

        return rows

    def _advance(self, stop: Stop) -> None:
        """Send chunks to workers, and receive the rows that arrive before the next check of
        ``stop``.
        """
        open_chunks = len(self._waiting) + sum(len(worker.chunks) for worker in self._workers)
        while len(self._workers) < min(self.count, open_chunks):
            self._workers.append(_start())
        for worker in tuple(self._workers):
            if stop.asked and worker.is_ready and not worker.is_stopped:
                worker.is_stopped = self._send(worker, _STOP)
        for chunk_limit in range(1, _CHUNKS_PER_PIPE + 1):
            for worker in tuple(self._workers):
                if worker.is_ready and len(worker.chunks) < chunk_limit and self._waiting:
                    worker.chunks.append(self._waiting.popleft())
                    self._send(worker, worker.chunks[-1].message)
        by_pipe = {worker.pipe: worker for worker in self._workers}
        for pipe in connection.wait(list(by_pipe), LOOK_SECONDS):
            self._receive(by_pipe[pipe])  # type: ignore[index]  # wait returns items of its list

    def _send(self, worker: _Worker, message: bytes) -> bool:
        """Return False if the worker has ended; the next receiving from its pipe loses it."""
        try:
            worker.pipe.send_bytes(message)
        except OSError:
            return False
        return True

    def _receive(self, worker: _Worker) -> None:
        try:
            answer = worker.pipe.recv()
        except (EOFError, OSError):
            self._lose(worker)
            return
        if isinstance(answer, _Ready):
            worker.is_ready = self._send(worker, self._order_message)
        elif isinstance(answer, _Failure):
            raise EngineError(answer.text) if answer.is_sentence else RuntimeError(answer.text)
        else:
            worker.chunks.popleft().rows = answer

    def _lose(self, worker: _Worker) -> None:
        """Queue the chunks of an ended worker again, before all others."""
        self._workers.remove(worker)
        worker.pipe.close()
        _end(worker.process, time.monotonic() + _END_SECONDS)
        if not worker.is_ready:
            raise EngineError(
                "a worker process of the sweep ended while it started (exit code "
                f"{worker.process.exitcode}): {_start_advice(worker.process.exitcode)}; "
                "workers=1 runs without processes"
            )
        if worker.chunks:
            worker.chunks[0].failures += 1
            if worker.chunks[0].failures > MOST_FAILURES:
                raise EngineError(
                    f"a chunk of the sweep has ended its worker {worker.chunks[0].failures} times, "
                    f"the last time with exit code {worker.process.exitcode}: fewer --workers "
                    "leave each run more memory"
                )
        self._waiting.extendleft(reversed(worker.chunks))


@dataclass(frozen=True)
class _Ready:
    """The first message of a worker: it receives messages from now on."""


@dataclass(frozen=True)
class _Failure:
    """The message of a worker that could not compute a chunk."""

    text: str
    is_sentence: bool


def _start() -> _Worker:
    context = multiprocessing.get_context("spawn")
    parent_end, worker_end = context.Pipe()
    process = context.Process(target=_work, args=(worker_end,), daemon=True)
    with _interrupts_blocked(), _single_threaded():
        process.start()
    worker_end.close()
    return _Worker(process, parent_end)


def _start_advice(exit_code: int | None) -> str:
    """Return what to do about a worker that ended while it started."""
    if exit_code is not None and exit_code < 0:  # a signal, as of a system without memory
        return "another process or a lack of memory ended it, so try fewer --workers"
    return 'a script that starts processes needs the usual `if __name__ == "__main__":`'


def _end(process: BaseProcess, until: float) -> None:
    """Wait for a process whose pipe is closed, and kill it if one operation takes longer."""
    process.join(max(0.0, until - time.monotonic()))
    if process.exitcode is None:
        process.kill()
        process.join()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start workers without Ctrl+C, which a terminal sends to all processes of a command."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it below would unblock interrupts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Set the environment that a worker inherits: BLAS reads it when numpy is imported."""
    missing = [name for name in _ONE_THREAD if name not in os.environ]
    os.environ.update(dict.fromkeys(missing, "1"))
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


def _work(pipe: _Pipe) -> None:
    """Compute chunks until the pipe is closed, which also happens when the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop, messages = Stop(), SimpleQueue[bytes]()
    threading.Thread(target=_listen, args=(pipe, stop, messages), daemon=True).start()
    with suppress(OSError):
        pipe.send(_Ready())
        order: SweepJob | None = None
        while message := messages.get():
            try:
                if order is None:
                    operations, order = pickle.loads(message)
                    install_texts(operations)
                    continue
                batch: Batch = pickle.loads(message)
                answer = rows_of(order, batch.at(np.arange(0)) if stop.asked else batch, stop)
            except EngineError as error:
                answer = _Failure(str(error), True)
            except MemoryError:
                answer = _Failure(
                    "a worker of the sweep is out of memory: use fewer --workers", True
                )
            except Exception:
                answer = _Failure(f"a worker of the sweep failed:\n{traceback.format_exc()}", False)
            pipe.send(answer)


def _listen(pipe: _Pipe, stop: Stop, messages: SimpleQueue[bytes]) -> None:
    """Receive messages while a run is under way, so that a stop reaches the run."""
    with suppress(EOFError, OSError):
        while True:
            message = pipe.recv_bytes()
            if message == _STOP:
                stop.ask()
            else:
                messages.put(message)
    stop.ask()
    messages.put(b"")


def _pickled(value: object) -> bytes:
    """Pickle a value. Models have read-only mappings and views of mapped weights, which plain
    pickle rejects.
    """
    target = io.BytesIO()
    pickler = pickle.Pickler(target, pickle.HIGHEST_PROTOCOL)
    reducers: dict[type, Callable[[Any], Any]] = {
        MappingProxyType: _reduce_mapping,
        memoryview: _reduce_view,
    }
    pickler.dispatch_table = copyreg.dispatch_table | reducers
    pickler.dump(value)
    return target.getvalue()


def _reduce_mapping(mapping: Mapping[Any, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return _read_only, (dict(mapping),)


def _reduce_view(view: memoryview) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return bytes, (view.tobytes(),)


def _read_only(entries: dict[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(entries)
