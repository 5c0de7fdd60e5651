"""Execution of a Python file with third-party native code in a process of its own.

The process may crash or hang. Memory that this process has freed is returned to the system first.
"""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loopscope.errors import MOST_OF_A_SENTENCE, elided, without_places

_POLL_SECONDS = 0.1
"""Seconds between two checks whether the caller still waits."""


class CallStopped(Exception):
    """The error for a caller that no longer waits for the result."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has exited: its exit code, standard output and standard error."""

    code: int
    said: str
    complained: str

    @property
    def reason(self) -> str:
        """The last error line of a failed process; empty if it crashed without a message."""
        lines = [line for line in self.complained.splitlines() if line.strip()]
        return (
            elided(without_places(lines[-1]), MOST_OF_A_SENTENCE) if self.code > 0 and lines else ""
        )


def never() -> bool:
    return False


def run_alone(
    file: Path, *arguments: str, seconds: float, stopped: Callable[[], bool] = never
) -> Ended:
    """Run a Python file in a process of its own, and return its result.

    ``TimeoutError`` after ``seconds``, ``CallStopped`` when ``stopped`` returns True.
    """
    trim_heap()
    # -P: the folder of the file may contain modules with the names of packages that it imports.
    command = [sys.executable, "-P", str(file), *arguments]
    deadline, pipe = time.monotonic() + seconds, subprocess.PIPE
    with subprocess.Popen(
        command, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
    ) as process:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    output, errors = process.communicate(timeout=_POLL_SECONDS)
                    return Ended(process.returncode, output, errors)
                if stopped():
                    raise CallStopped
                if time.monotonic() > deadline:
                    raise TimeoutError
        finally:
            process.kill()


def trim_heap() -> None:
    """Return freed memory of the heap to the system, which takes some milliseconds.

    Only glibc retains much freed memory.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
