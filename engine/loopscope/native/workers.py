"""Pool of warm child processes for third-party native code; a process that dies is replaced."""

from __future__ import annotations

import atexit
import subprocess
import sys
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import IO

from loopscope.native.child import MADE, receive, send

_CHILD = Path(__file__).with_name("child.py")
_SECONDS = 20.0
"""Wall-clock limit of one request, in seconds."""
_CPU_SECONDS, _CPU_SECONDS_PER_MEGABYTE = 2.0, 1.0
"""CPU seconds allowed per request: 2, plus 1 per megabyte of it.

ONNX's shape inference takes 0.1 per megabyte.
"""
_MAX_BYTES = 2 * 2**30
"""Memory limit of one process, in bytes."""
_PIPE_BYTES = 2**20
"""Requested size of a pipe, which one side can fill without waiting for the reader.

The usual 64 KB are less than most requests.
"""
_MAX_CONCURRENT = 4
"""Number of simultaneous requests; further requests wait."""


class Refused(Exception):
    """The error that the native code raised, with its message."""


class Crashed(Exception):
    """The end of the process by the native code itself or by a time limit."""


class Workers:
    """A pool of processes that each answer one request at a time; safe to use from any thread.

    The first request starts the first process.
    """

    def __init__(self, seconds: float = _SECONDS, most_bytes: int = _MAX_BYTES) -> None:
        """Set the time limit of a request and, on Linux, the memory limit of a process."""
        self._seconds, self._most_bytes = seconds, most_bytes
        self._idle: deque[subprocess.Popen[bytes]] = deque()
        self._turns = BoundedSemaphore(_MAX_CONCURRENT)
        self._watch = _Watch(seconds)
        atexit.register(self.close)

    def ask(self, work: str, *parts: bytes) -> list[bytes]:
        """Return the answer to a request; raise ``Refused`` or ``Crashed``."""
        with self.asking(work, *parts) as answer:
            return answer()

    @contextmanager
    def asking(self, work: str, *parts: bytes) -> Iterator[Callable[[], list[bytes]]]:
        """Send a request, and yield a function that waits for the answer.

        The function raises as ``ask`` does. The caller can work in between. The same thread must
        not send another request before it has the answer: all slots may be occupied by requests
        that wait.
        """
        request = _Request(self._turns, self._idle, self._watch)
        request.send(self._take_process, [*self._bounds(parts), work.encode(), *parts])
        try:
            yield request.answer
        finally:
            with suppress(Crashed, Refused):
                request.answer()

    def _bounds(self, parts: tuple[bytes, ...]) -> list[bytes]:
        """Return the limits after which the process ends itself if this one has died.

        They are seconds of wall clock and of CPU time.
        """
        cpu_seconds = _CPU_SECONDS + _CPU_SECONDS_PER_MEGABYTE * sum(map(len, parts)) / 1e6
        return [b"%f" % self._seconds, b"%f" % min(cpu_seconds, self._seconds)]

    def warm(self) -> None:
        """Start a process ahead of its first request."""
        if not self._idle:
            self._idle.append(_start(self._most_bytes))

    def close(self) -> None:
        """End the idle processes; a later request starts new ones."""
        while self._idle:
            _end_process(self._idle.pop())

    def _take_process(self) -> subprocess.Popen[bytes]:
        while True:
            try:
                process = self._idle.pop()
            except IndexError:
                return _start(self._most_bytes)
            if process.poll() is None:
                return process
            _end_process(process)


class _Watch:
    """A thread that ends processes of requests that take too long.

    One thread serves all requests, checks periodically and ends when no request is running. A
    thread per request would take longer than most requests.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._start_times: dict[subprocess.Popen[bytes], float] = {}
        self._is_running = False
        self._lock = Lock()

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._start_times[process] = time.monotonic()
            if not self._is_running:
                start_new_thread(self._run, ())  # the new thread waits for the lock
                self._is_running = True

    def end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._start_times.pop(process, None)

    def _run(self) -> None:
        while True:
            time.sleep(min(1.0, self._seconds / 10))
            with self._lock:
                if not self._start_times:
                    self._is_running = False
                    return
                for process, begun in self._start_times.items():
                    if time.monotonic() - begun > self._seconds:
                        process.kill()


class _Request:
    """A request to a process, from its queue slot to its answer."""

    def __init__(
        self, turns: BoundedSemaphore, idle: deque[subprocess.Popen[bytes]], watch: _Watch
    ) -> None:
        self._turns, self._idle, self._watch = turns, idle, watch
        self._process: subprocess.Popen[bytes] | None = None
        self._answer_parts: list[bytes] = []
        self._error: Crashed | Refused | None = None

    def send(self, take: Callable[[], subprocess.Popen[bytes]], parts: list[bytes]) -> None:
        self._turns.acquire()
        try:
            self._process = take()
            self._watch.begin(self._process)
            assert self._process.stdin is not None
            send(self._process.stdin, parts)
        except BaseException as error:
            self._fail(error)

    def answer(self) -> list[bytes]:
        """Wait for the answer; later calls return or raise the same."""
        if self._process is not None:
            try:
                assert self._process.stdout is not None
                status, *parts = receive(self._process.stdout)
            except BaseException as error:
                self._fail(error)
            else:
                process = self._process
                self._end()
                self._idle.append(process)
                self._answer_parts, self._error = (
                    parts,
                    None
                    if status == MADE
                    else Refused(b" ".join(parts).decode("utf-8", "replace")),
                )
        if self._error is not None:
            raise self._error
        return self._answer_parts

    def _fail(self, error: BaseException) -> None:
        """Discard the process after an error: its unread output would answer a later request."""
        if self._process is not None:
            _end_process(self._process)
        self._end()
        if not isinstance(error, (OSError, EOFError)):
            raise error
        self._error = Crashed()

    def _end(self) -> None:
        if self._process is not None:
            self._watch.end(self._process)
        self._process = None
        self._turns.release()


def _start(most_bytes: int) -> subprocess.Popen[bytes]:
    # -P: imports must not come from the folder of the file. The child has a session of its own, so
    # that Ctrl+C reaches only this process, which closes the child's input when it ends.
    command = [sys.executable, "-P", str(_CHILD), str(most_bytes)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
    )
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            _widen(stream)
    return process


def _widen(stream: IO[bytes]) -> None:
    """Enlarge a pipe, where the system supports that and its limit allows it."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _end_process(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # the pipe may contain data that the process did not read
                stream.close()


WORKERS = Workers()
"""Pool of this process."""
