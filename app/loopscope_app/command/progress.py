"""What a command is at, on a terminal: a line on standard error that goes when there is a
result, and what Ctrl+C stopped.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import loopscope
from loopscope.errors import neutral

if TYPE_CHECKING:
    from loopscope.ir import Model
    from loopscope.sweeps import Sweep

_AT_FIRST, _EVERY = 0.5, 0.2
"""Seconds: what takes less than the first is not told, what takes longer is told so often."""
_WIDE = 20
"""Characters of a bar."""


@contextmanager
def doing(what: str, far: Callable[[], str] = str) -> Iterator[None]:
    """Says ``what`` a command does, as in "reading the model", how ``far`` it is and for how
    long; a ``KeyboardInterrupt`` says so too.
    """
    begun, over = time.monotonic(), threading.Event()
    telling = threading.Thread(target=_tell, args=(what, far, begun, over), daemon=True)
    if sys.stderr.isatty():
        telling.start()
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped while {what}, after {time.monotonic() - begun:,.1f} s"
        ) from None
    finally:
        over.set()
        if telling.ident is not None:
            telling.join()


def _tell(what: str, far: Callable[[], str], begun: float, over: threading.Event) -> None:
    if over.wait(_AT_FIRST):
        return
    while not over.wait(_EVERY):
        show(
            " · ".join(
                filter(None, (what, far(), f"{time.monotonic() - begun:,.0f} s", "Ctrl+C stops it"))
            )
        )
    clear()


def show(line: str) -> None:
    """In place of the line before; what a terminal breaks in two could not be taken back."""
    sys.stderr.write(f"\r\x1b[K{neutral(line, max(_WIDE, shutil.get_terminal_size().columns - 1))}")
    sys.stderr.flush()


def clear() -> None:
    """Takes the line back."""
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def bar(done: int, total: int) -> str:
    """How much of a whole is done.

    >>> bar(5, 20)
    '█████░░░░░░░░░░░░░░░'
    """
    full = _WIDE * done // max(total, 1)
    return "█" * full + "░" * (_WIDE - full)


@contextmanager
def sweeping(sweep: Sweep) -> Iterator[None]:
    """Many runs, with the part that is done, the rate and what is left."""
    begun = time.monotonic()

    def far() -> str:
        done = sweep.summary.rows
        if not done:
            return f"{sweep.count:,} inputs"
        rate = done / (time.monotonic() - begun)
        return f"{bar(done, sweep.count)} {done:,} of {sweep.count:,} inputs · {rate:,.0f} a second, {(sweep.count - done) / rate:,.0f} s left"

    with doing("running the model", far):
        yield


def read(path: str) -> Model:
    """The model of a file; one that OpenVINO converts takes a while."""
    with doing("reading the model"):
        return loopscope.read_model(path)


def run_whole(debugger: loopscope.Debugger, what: str = "running the model") -> loopscope.Debugger:
    """Runs it to its end, or as far as it comes; its iterations are told meanwhile."""

    def far() -> str:
        reached = debugger.machine.control.reached
        return f"{reached:,} iterations" if reached else ""

    with doing(what, far):
        debugger.run()
    return debugger
