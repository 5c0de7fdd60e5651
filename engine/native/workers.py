"""Asks the child processes in which native code of other people runs: they are kept warm, and where one dies, another one follows."""

from __future__ import annotations

import atexit
import contextlib
import subprocess
import sys
from _thread import start_new_thread
from collections import deque
from pathlib import Path
from threading import BoundedSemaphore, Lock

from engine.native.child import MADE, received, send

_CHILD = Path(__file__).with_name("child.py")
_SECONDS = 20.0
"""That one request may take, by the clock."""
_PROCESSOR_SECONDS, _PER_MEGABYTE = 2.0, 1.0
"""What it may take of the processor: so much, and as much again for each megabyte of it. ONNX's shape inference takes 0.1 for one."""
_MOST_BYTES = 2 * 2**30
"""Memory of one process."""
_MOST_AT_ONCE = 4
"""Requests; what comes meanwhile waits."""


class Refused(Exception):
    """The native code has raised an error; its words."""


class Crashed(Exception):
    """The native code has ended its process, or was ended because it took too long."""


class Workers:
    """Processes that answer one request at a time each; safe to ask from any thread. None is started before the first request."""

    def __init__(self, seconds: float = _SECONDS, most_bytes: int = _MOST_BYTES) -> None:
        """``seconds`` bounds a request, ``most_bytes`` the memory of a process (on Linux)."""
        self._seconds, self._most_bytes = seconds, most_bytes
        self._idle: deque[subprocess.Popen[bytes]] = deque()
        self._turns = BoundedSemaphore(_MOST_AT_ONCE)
        atexit.register(self.close)

    def ask(self, work: str, *parts: bytes) -> list[bytes]:
        """What the work makes of the parts; ``Refused`` or ``Crashed``."""
        with self._turns:
            process = self._taken()
            answered = Lock()
            answered.acquire()
            # Not a Timer, which waits for its thread to begin: on a busy machine longer than most requests take.
            start_new_thread(_kill_unless, (answered, self._seconds, process))
            try:
                status, *made = _asked(process, [*self._bounds(parts), work.encode(), *parts])
            except BaseException as error:  # whatever it was: what is still in its pipes answers no later request
                process.kill()
                _end(process)
                if isinstance(error, (OSError, EOFError)):
                    raise Crashed from None
                raise
            finally:
                answered.release()
            self._idle.append(process)
        if status != MADE:
            raise Refused(b" ".join(made).decode("utf-8", "replace"))
        return made

    def _bounds(self, parts: tuple[bytes, ...]) -> list[bytes]:
        """By which the process ends itself, should we have died: seconds by the clock, and of the processor."""
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


def _kill_unless(answered: Lock, seconds: float, process: subprocess.Popen[bytes]) -> None:
    if not answered.acquire(timeout=seconds):
        process.kill()


def _started(most_bytes: int) -> subprocess.Popen[bytes]:
    # -P: the folder of the file is not a place for imports. A session of its own: Ctrl+C is for us, who close its input at our end.
    command = [sys.executable, "-P", str(_CHILD), str(most_bytes)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True)


def _asked(process: subprocess.Popen[bytes], parts: list[bytes]) -> list[bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    send(process.stdin, parts)
    return received(process.stdout)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # it may hold what the process did not take
                stream.close()


WORKERS = Workers()
"""Those of this process."""
