"""Progress of a command on a terminal: a line on standard error while it works."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import loopscope
from loopscope.errors import InputError, in_one_line, neutral
from loopscope.ir import is_trace

if TYPE_CHECKING:
    from loopscope.ir import Model
    from loopscope.sweeps import Sweep

_DELAY, _INTERVAL = 0.5, 0.2
"""Seconds before the first progress line, and between two updates."""
_BAR_WIDTH = 20
"""Width of a bar in characters."""


@contextmanager
def doing(what: str, progress: Callable[[], str] = str) -> Iterator[None]:
    """Show what a command does, its progress and the elapsed time, until the block ends.

    ``what`` is such as "reading the model"; ``progress`` returns how far it is. A
    ``KeyboardInterrupt`` gets a message that names ``what``.
    """
    start, ended = time.monotonic(), threading.Event()
    thread = threading.Thread(
        target=_show_progress, args=(what, progress, start, ended), daemon=True
    )
    if sys.stderr.isatty():
        thread.start()
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped while {what}, after {time.monotonic() - start:,.1f} s"
        ) from None
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()


def _show_progress(
    what: str, progress: Callable[[], str], start: float, ended: threading.Event
) -> None:
    if ended.wait(_DELAY):
        return
    while not ended.wait(_INTERVAL):
        show(
            " · ".join(
                filter(
                    None,
                    (what, progress(), f"{time.monotonic() - start:,.0f} s", "Ctrl+C stops it"),
                )
            )
        )
    clear()


def show(line: str) -> None:
    """Replace the progress line. The text is cut to the terminal's width, because a wrapped line
    could not be erased.
    """
    sys.stderr.write(
        f"\r\x1b[K{neutral(line, max(_BAR_WIDTH, shutil.get_terminal_size().columns - 1))}"
    )
    sys.stderr.flush()


def clear() -> None:
    """Erase the progress line."""
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def bar(done: int, total: int) -> str:
    """Return a progress bar.

    >>> bar(5, 20)
    '█████░░░░░░░░░░░░░░░'
    """
    full = _BAR_WIDTH * done // max(total, 1)
    return "█" * full + "░" * (_BAR_WIDTH - full)


@contextmanager
def sweeping(sweep: Sweep) -> Iterator[None]:
    """Show the progress of a sweep: finished runs, rate and remaining time."""
    start = time.monotonic()

    def progress() -> str:
        done = sweep.summary.rows
        if not done:
            return f"{sweep.count:,} inputs"
        rate = done / (time.monotonic() - start)
        left = (sweep.count - done) / rate
        part = f"{bar(done, sweep.count)} {done:,} of {sweep.count:,} inputs"
        return f"{part} · {rate:,.0f} a second, {left:,.0f} s left"

    with doing("running the model", progress):
        yield


def read(path: str, opened: Sequence[str] = ()) -> Model:
    """Read a model, with a progress line: conversion by OpenVINO may take long.

    ``opened``: operators that become loops. Operators that ``all`` cannot open are printed.
    """
    with doing("reading the model"):
        model = loopscope.read_model(path)
        if not opened:
            return model
        result = loopscope.open_as_loop(model, opened)
    for note in result.notes[len(model.notes) :]:
        print(f"loopscope: {in_one_line(note)}", file=sys.stderr)
    return result


def read_operations(path: str, opened: Sequence[str] = ()) -> Model:
    """Read a model whose operations a command needs; raise ``InputError`` for a trace."""
    model = read(path, opened)
    if is_trace(model):
        raise InputError(
            f"{path} is a trace, which has recorded values and no operations: expected a model"
        )
    return model


def run_whole(debugger: loopscope.Debugger, what: str = "running the model") -> loopscope.Debugger:
    """Run to the end, or as far as possible, and show the number of iterations meanwhile."""

    def progress() -> str:
        reached = debugger.machine.control.reached
        return f"{reached:,} iterations" if reached else ""

    with doing(what, progress):
        debugger.run()
    return debugger
