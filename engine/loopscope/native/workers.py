"""Asks the child processes in which native code of other people runs: they are kept warm, and
where one dies, another one follows.
"""

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

from loopscope.native.child import MADE, received, send

_CHILD = Path(__file__).with_name("child.py")
_SECONDS = 20.0
"""That one request may take, by the clock."""
_PROCESSOR_SECONDS, _PER_MEGABYTE = 2.0, 1.0
"""What it may take of the processor: so much, and as much again for each megabyte of it. ONNX's
shape inference takes 0.1 for one.
"""
_MOST_BYTES = 2 * 2**30
"""Memory of one process."""
_PIPE_BYTES = 2**20
"""That one side sends without waiting for the other, where the system lets it: 64 KB are usual,
less than most requests.
"""
_MOST_AT_ONCE = 4
"""Requests; what comes meanwhile waits."""


class Refused(Exception):
    """The native code has raised an error; its words."""


class Crashed(Exception):
    """The native code has ended its process, or was ended because it took too long."""


class Workers:
    """Processes that answer one request at a time each; safe to ask from any thread. None is
    started before the first request.
    """

    def __init__(self, seconds: float = _SECONDS, most_bytes: int = _MOST_BYTES) -> None:
        """``seconds`` bounds a request, ``most_bytes`` the memory of a process (on Linux)."""
        self._seconds, self._most_bytes = seconds, most_bytes
        self._idle: deque[subprocess.Popen[bytes]] = deque()
        self._turns = BoundedSemaphore(_MOST_AT_ONCE)
        self._watch = _Watch(seconds)
        atexit.register(self.close)

    def ask(self, work: str, *parts: bytes) -> list[bytes]:
        """What the work makes of the parts; ``Refused`` or ``Crashed``."""
        with self.asking(work, *parts) as answer:
            return answer()

    @contextmanager
    def asking(self, work: str, *parts: bytes) -> Iterator[Callable[[], list[bytes]]]:
        """Asks, and gives what waits for the answer, so that something else can be done meanwhile;
        errors as of ``ask``.

        Nothing else may be asked by the same thread until the answer is there: all turns may be
        taken by such as wait.
        """
        request = _Request(self._turns, self._idle, self._watch)
        request.send(self._taken, [*self._bounds(parts), work.encode(), *parts])
        try:
            yield request.answer
        finally:
            with suppress(Crashed, Refused):
                request.answer()

    def _bounds(self, parts: tuple[bytes, ...]) -> list[bytes]:
        """By which the process ends itself, should we have died: seconds by the clock, and of
        the processor.
        """
        of_processor = _PROCESSOR_SECONDS + _PER_MEGABYTE * sum(map(len, parts)) / 1e6
        return [b"%f" % self._seconds, b"%f" % min(of_processor, self._seconds)]

    def warm(self) -> None:
        """Starts a process ahead of the request that will need it."""
        if not self._idle:
            self._idle.append(_started(self._most_bytes))

    def close(self) -> None:
        """Ends the processes that are idle; a later request starts others."""
        while self._idle:
            _end(self._idle.pop())

    def _taken(self) -> subprocess.Popen[bytes]:
        while True:
            try:
                process = self._idle.pop()
            except IndexError:
                return _started(self._most_bytes)
            if process.poll() is None:
                return process
            _end(process)


class _Watch:
    """Ends the processes that take too long: one thread for all requests, which looks now and then,
    and ends when none is under way.

    A thread for each request would take longer than most requests.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun: dict[subprocess.Popen[bytes], float] = {}
        self._is_looking = False
        self._lock = Lock()

    def begins(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._begun[process] = time.monotonic()
            if not self._is_looking:
                start_new_thread(self._look, ())  # which waits for the lock
                self._is_looking = True

    def ends(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._begun.pop(process, None)

    def _look(self) -> None:
        while True:
            time.sleep(min(1.0, self._seconds / 10))
            with self._lock:
                if not self._begun:
                    self._is_looking = False
                    return
                for process, begun in self._begun.items():
                    if time.monotonic() - begun > self._seconds:
                        process.kill()


class _Request:
    """One request to one process, from its turn to its answer."""

    def __init__(
        self, turns: BoundedSemaphore, idle: deque[subprocess.Popen[bytes]], watch: _Watch
    ) -> None:
        self._turns, self._idle, self._watch = turns, idle, watch
        self._process: subprocess.Popen[bytes] | None = None
        self._made: list[bytes] = []
        self._error: Crashed | Refused | None = None

    def send(self, take: Callable[[], subprocess.Popen[bytes]], parts: list[bytes]) -> None:
        self._turns.acquire()
        try:
            self._process = take()
            self._watch.begins(self._process)
            assert self._process.stdin is not None
            send(self._process.stdin, parts)
        except BaseException as error:
            self._fail(error)

    def answer(self) -> list[bytes]:
        """Waits; asked again, it says the same again."""
        if self._process is not None:
            try:
                assert self._process.stdout is not None
                status, *made = received(self._process.stdout)
            except BaseException as error:
                self._fail(error)
            else:
                process = self._process
                self._end()
                self._idle.append(process)
                self._made, self._error = (
                    made,
                    None if status == MADE else Refused(b" ".join(made).decode("utf-8", "replace")),
                )
        if self._error is not None:
            raise self._error
        return self._made

    def _fail(self, error: BaseException) -> None:
        """Whatever it was: what is still in the pipes of the process answers no later request."""
        if self._process is not None:
            _end(self._process)
        self._end()
        if not isinstance(error, (OSError, EOFError)):
            raise error
        self._error = Crashed()

    def _end(self) -> None:
        if self._process is not None:
            self._watch.ends(self._process)
        self._process = None
        self._turns.release()


def _started(most_bytes: int) -> subprocess.Popen[bytes]:
    # -P: the folder of the file is not a place for imports. A session of its own: Ctrl+C is for us,
    # who close its input at our end.
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
    """Where the system has such a thing, and enough of it left."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # it may hold what the process did not take
                stream.close()


WORKERS = Workers()
"""Those of this process."""
