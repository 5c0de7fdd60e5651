"""A run in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import engine


class Running:
    """A run in a thread of its own, so that a long one neither blocks nor outlives the page."""

    def __init__(self, debugger: engine.Debugger, work: Callable[[], object]) -> None:
        self.debugger = debugger
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

    def done(self, patience: float = 0) -> bool:
        self._thread.join(patience)
        return not self._thread.is_alive()
