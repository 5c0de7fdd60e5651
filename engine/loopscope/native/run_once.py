"""Runs a file of ours that works with native code of other people in a process of its own, once:
it may crash or hang, alone.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loopscope.errors import MOST_OF_A_SENTENCE, elided, without_places
from loopscope.native.trim_memory import give_back

_LOOK_AGAIN = 0.1
"""Seconds between two checks whether the caller still waits."""


class CallStopped(Exception):
    """The caller no longer waits for the result."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has come to its end by itself."""

    code: int
    said: str
    complained: str

    @property
    def reason(self) -> str:
        """Why it failed, in its own last words; empty where it crashed without any."""
        lines = [line for line in self.complained.splitlines() if line.strip()]
        return (
            elided(without_places(lines[-1]), MOST_OF_A_SENTENCE) if self.code > 0 and lines else ""
        )


def never() -> bool:
    return False


def run_alone(
    file: Path, *arguments: str, seconds: float, stopped: Callable[[], bool] = never
) -> Ended:
    """The end of a Python file's process; ``TimeoutError`` and ``CallStopped`` when it was ended
    before.
    """
    give_back()
    # -P: the folder of the file may hold modules that are called like the packages it needs.
    command = [sys.executable, "-P", str(file), *arguments]
    until, given = time.monotonic() + seconds, subprocess.PIPE
    with subprocess.Popen(
        command, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=given, stderr=given
    ) as process:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    said, complained = process.communicate(timeout=_LOOK_AGAIN)
                    return Ended(process.returncode, said, complained)
                if stopped():
                    raise CallStopped
                if time.monotonic() > until:
                    raise TimeoutError
        finally:
            process.kill()
