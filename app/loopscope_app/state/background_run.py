"""A run in its own thread: one that the user waits for, or one that finishes a run in the
background.
"""

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

OUT_OF_MEMORY = "The server has no memory left for this run just now: it stands at its beginning again. Try again in a minute."
MOST_SECONDS = 60.0
"""Seconds of computing for a run that finishes without being asked to."""
_AGAIN = 0.05
"""Seconds between two words to stop: one that comes before the work has begun is not heard."""


class Running:
    """A run in its own thread, so that a long run neither blocks the page nor outlives it."""

    doing = "Running"
    """What is under way, in a word."""

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
        except Exception as error:  # of the engine or of Loopscope itself: the page says which
            self.error = error
        if LAUNCH.server:
            self._give_back()

    def _give_back(self) -> None:
        """Who has used up the memory that all users share gives back what it holds of it, before
        anybody else asks for some.
        """
        exhausted = [
            one
            for one in self.debuggers
            if one.out_of_memory or isinstance(self.error, MemoryError)
        ]
        if exhausted:
            reason = next((f"{one.failure}. " for one in exhausted if one.failure), "")
            self.error = EngineError(reason + OUT_OF_MEMORY)
            for one in exhausted:
                one.restart()

    def done(self, patience: float = 0) -> bool:
        self._thread.join(patience)
        return not self._thread.is_alive()

    def stop(self) -> None:
        for one in self.debuggers:
            one.stop()

    @property
    def iterations(self) -> int:
        """That have been run."""
        return sum(one.machine.control.reached for one in self.debuggers)


class Preparing(Running):
    """A large model is checked, and the plan of its run made, while people look at its picture;
    ``then`` hears of it where it is needed.
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
        """At once when it is stopped: what is left of its present phase ends by itself, in vain."""
        return self.is_stopped or super().done(patience)

    def tell(self) -> None:
        """Hands over what was made, unless it was stopped."""
        if not self.is_stopped and self.error is None:
            self._then(self._opened)

    def _prepare(self) -> None:
        self._opened = prepared(self._opened, self._going)

    def _going(self, phase: str) -> bool:
        self.phase = phase
        return not self.is_stopped


class Differentiating(Running):
    """The gradient of a large model is made, while people look at its picture; ``then`` hears of
    it where it is still wanted.
    """

    doing = phase = "Making the gradient"

    def __init__(
        self, make: Callable[[Callable[[], bool]], Opened], then: Callable[[Opened], None]
    ) -> None:
        """``make`` is given a function that says whether it is still to go on, and ends with an
        ``EngineError`` soon after it is not.
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
        """At once when it is stopped: the work ends at its next operation, and nobody waits for
        that.
        """
        return self.is_stopped or super().done(patience)

    def tell(self) -> None:
        """Hands over what was made, unless it was stopped."""
        if self.made is not None and not self.is_stopped:
            self._then(self.made)


class Fitting(Running):
    """The search for lengths of made-up inputs with which a model runs: a few short trials,
    while people look at its picture.
    """

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.trying = self.lengths = OPEN_LENGTHS[0]
        self.over = False
        """What it has found was looked at."""
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
    """Runs to their ends, one after the other, and what is then made of them; all of it in vain
    once it is stopped.
    """

    def __init__(
        self,
        debuggers: Sequence[loopscope.Debugger],
        then: Callable[[Callable[[], bool]], None],
        doing: str = "Comparing",
        after: str = "the runs are done, their values are being compared",
    ) -> None:
        """``then`` receives a function that says whether the run has been stopped meanwhile;
        ``after`` says what it does, in words.
        """
        self.doing = doing
        self.after = after
        self.is_after = False
        """The runs have come to their ends."""
        self._stopped = threading.Event()
        self._then = then
        super().__init__(debuggers, self._compare)

    def stop(self) -> None:
        self._stopped.set()
        super().stop()

    def _compare(self) -> None:
        for one in self.debuggers:
            if not self._stopped.is_set():
                one.run()
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
        """Runs in a thread until it is halted."""
        if self._running is None and not self.over:
            self._running = Running(self.debugger, self._run)
        if self._running is not None and self._running.done(patience):
            self.over = True
            self._settle(self._running)

    def halt(self) -> None:
        """For who wants to look at the debugger: what has run is kept, and it can go on."""
        if self._running is None:
            return
        while not self._running.done():
            self.debugger.stop()
            self._running.done(_AGAIN)
        self._settle(self._running)

    def _run(self) -> None:
        step, began = self.debugger.cursor.step, time.monotonic()
        alarm = threading.Timer(self._left, self.debugger.stop)
        alarm.daemon = True
        alarm.start()
        try:
            self.debugger.run()
        finally:
            alarm.cancel()
            alarm.join()
            self.debugger.seek(step)
            self._left -= time.monotonic() - began

    def _settle(self, running: Running) -> None:
        self._running = None
        # a word that came when it was over would stop the next run
        self.debugger.machine.control.stop.clear()
        self.over = self.over or self.debugger.state != "paused" or self._left <= 0
        if running.error is not None:
            raise running.error
