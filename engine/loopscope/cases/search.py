"""The search for the smallest model that shows a fault: the best so far, and its limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from loopscope.cases.candidate import Candidate
from loopscope.cases.faults import Fault
from loopscope.errors import EngineError


class TimeUp(Exception):
    """The end of the time of a search."""


@dataclass(slots=True)
class ReductionSearch:
    """The smallest model so far that shows the fault."""

    fault: Fault
    best: Candidate
    deadline: float = float("inf")
    """Time at which the search ends, in seconds of ``time.monotonic``."""
    report: Callable[[ReductionSearch], None] = lambda _: None
    """Called after each attempt."""
    attempts: int = 0
    accepted: int = 0

    def accepts(self, candidate: Candidate) -> bool:
        """Return True if a candidate shows the fault; it is the best one from then on.

        Raise ``TimeUp`` after the deadline.
        """
        if time.monotonic() > self.deadline:
            raise TimeUp
        self.attempts += 1
        try:
            shows = self.fault.shows(candidate)
        except EngineError:  # a candidate that no file can express, for example
            shows = False
        if shows:
            self.accepted += 1
            self.best = candidate
        self.report(self)
        return shows
