"""Runs in a thread of their own, which the user waits for or which finish in the background."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import loopscope
from loopscope.errors import EngineError
from loopscope_app.describe.random_inputs import OPEN_LENGTHS, Lengths, lengths_by_trials
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.open_model import Opened, prepared

OUT_OF_MEMORY = (
    "The server has no memory for this run at the moment: it is back at its beginning. "
    "Try again in a minute."
)
MOST_SECONDS = 60.0
"""Time limit in seconds of a run that continues by itself."""
_STOP_INTERVAL = 0.05
"""Seconds between two stop requests: a request before the work begins has no effect."""


class Running:
    """A run in its own thread, so that a long run neither blocks the page nor outlives it."""

    doing = "Running"
    """Name of the work, shown to the user."""

    def __init__(
        self,
        debuggers: loopscope.Debugger | Sequence[loopscope.Debugger],
        work: Callable[[], object],
    ) -> None:
        self.debuggers = (
            (debuggers,) if isinstance(debuggers, loopscope.Debugger) else tuple(debuggers)
        )
        self.since = time.monotonic()
        self.error: Exception | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except (
            Exception
        ) as error:  # an error of the engine or of Loopscope itself: the page shows which
            self.error = error
        if LAUNCH.server:
            self._free_exhausted()

    def _free_exhausted(self) -> None:
        """If this run exhausted the shared memory budget, free its values at once."""
        exhausted = [
            debugger
            for debugger in self.debuggers
            if debugger.out_of_memory or isinstance(self.error, MemoryError)
        ]
        if exhausted:
            reason = next(
                (f"{debugger.failure}. " for debugger in exhausted if debugger.failure), ""
            )
            self.error = EngineError(reason + OUT_OF_MEMORY)
            for debugger in exhausted:
                debugger.restart()

    def done(self, patience: float = 0) -> bool:
        self._thread.join(patience)
        return not self._thread.is_alive()

    def stop(self) -> None:
        for debugger in self.debuggers:
            debugger.stop()

    @property
    def iterations(self) -> int:
        """Number of iterations that ran."""
        return sum(debugger.machine.control.reached for debugger in self.debuggers)


class Preparing(Running):
    """Check of a large model and construction of its plan, while the user sees its picture.

    ``then`` receives the prepared model.
    """

    def __init__(self, opened: Opened, then: Callable[[Opened], None]) -> None:
        self.phase = ""
        self.is_stopped = False
        self._then = then
        self._opened = opened
        super().__init__((), self._prepare)

    def stop(self) -> None:
        self.is_stopped = True

    def done(self, patience: float = 0) -> bool:
        """Return True at once after a stop: the current phase ends by itself."""
        return self.is_stopped or super().done(patience)

    def tell(self) -> None:
        """Pass the prepared model on, unless the work was stopped."""
        if not self.is_stopped and self.error is None:
            self._then(self._opened)

    def _prepare(self) -> None:
        self._opened = prepared(self._opened, self._going)

    def _going(self, phase: str) -> bool:
        self.phase = phase
        return not self.is_stopped


class Differentiating(Running):
    """Construction of the gradient of a large model, while the user sees its picture.

    ``then`` receives the gradient if it is still requested.
    """

    doing = phase = "Building the gradient"

    def __init__(
        self, make: Callable[[Callable[[], bool]], Opened], then: Callable[[Opened], None]
    ) -> None:
        """Begin the work. ``make`` receives a function that returns False once the work is stopped,
        and then raises ``EngineError`` soon.
        """
        self.is_stopped = False
        self._then = then
        self.made: Opened | None = None
        super().__init__((), partial(self._make, make))

    def _make(self, make: Callable[[Callable[[], bool]], Opened]) -> None:
        try:
            self.made = make(lambda: not self.is_stopped)
        except EngineError:
            if not self.is_stopped:
                raise

    def stop(self) -> None:
        self.is_stopped = True

    def done(self, patience: float = 0) -> bool:
        """Return True at once after a stop: the work ends at its next operation."""
        return self.is_stopped or super().done(patience)

    def tell(self) -> None:
        """Pass the gradient on, unless the work was stopped."""
        if self.made is not None and not self.is_stopped:
            self._then(self.made)


class Fitting(Running):
    """Search for lengths of generated inputs with which a model runs, by a few short trials."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.trying = self.lengths = OPEN_LENGTHS[0]
        self.over = False
        """True once the result was used."""
        self._stopped = False
        super().__init__((), self._search)

    def stop(self) -> None:
        self._stopped = True

    def _search(self) -> None:
        self.lengths = lengths_by_trials(self.opened.model, 0, self._going)

    def _going(self, lengths: Lengths) -> bool:
        self.trying = lengths
        return not self._stopped


class Comparing(Running):
    """Runs that finish one after the other, and work on their results; a stop ends both."""

    def __init__(
        self,
        debuggers: Sequence[loopscope.Debugger],
        then: Callable[[Callable[[], bool]], None],
        doing: str = "Comparing",
        after: str = "the runs are done, their values are being compared",
    ) -> None:
        """Begin the runs. ``then`` receives a function that returns True after a stop; ``after``
        describes its work.
        """
        self.doing = doing
        self.after = after
        self.is_after = False
        """True once all runs ended."""
        self._stopped = threading.Event()
        self._then = then
        super().__init__(debuggers, self._compare)

    def stop(self) -> None:
        self._stopped.set()
        super().stop()

    def _compare(self) -> None:
        for debugger in self.debuggers:
            if not self._stopped.is_set():
                debugger.run()
        self.is_after = True
        try:
            if not self._stopped.is_set():
                self._then(self._stopped.is_set)
        except EngineError:
            if not self._stopped.is_set():
                raise


class Onward:
    """A run that continues to its end in the background while its cursor stays where it is."""

    def __init__(self, debugger: loopscope.Debugger) -> None:
        self.debugger = debugger
        self.over = False
        self._left = MOST_SECONDS
        self._running: Running | None = None

    def go_on(self, patience: float = 0) -> None:
        """Continue the run in a thread until it is halted."""
        if self._running is None and not self.over:
            self._running = Running(self.debugger, self._run)
        if self._running is not None and self._running.done(patience):
            self.over = True
            self._settle(self._running)

    def halt(self) -> None:
        """Pause the run so that the debugger can be read; what ran is stored, and the run can
        continue.
        """
        if self._running is None:
            return
        while not self._running.done():
            self.debugger.stop()
            self._running.done(_STOP_INTERVAL)
        self._settle(self._running)

    def _run(self) -> None:
        step, start = self.debugger.cursor.step, time.monotonic()
        alarm = threading.Timer(self._left, self.debugger.stop)
        alarm.daemon = True
        alarm.start()
        try:
            self.debugger.run()
        finally:
            alarm.cancel()
            alarm.join()
            self.debugger.seek(step)
            self._left -= time.monotonic() - start

    def _settle(self, running: Running) -> None:
        self._running = None
        # Clear a late stop request, or it would stop the next run.
        self.debugger.machine.control.stop.clear()
        self.over = self.over or self.debugger.state != "paused" or self._left <= 0
        if running.error is not None:
            raise running.error
