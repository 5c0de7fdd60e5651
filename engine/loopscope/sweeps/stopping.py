"""Stop request of a sweep, which any thread may make and which reaches the current run at once."""

from __future__ import annotations

from loopscope.executor.machine.limits import RunControl


class SweepStopped(Exception):
    """Signal that the current samples are abandoned, because their rows are incomplete."""


class Stop:
    """Stop request of one sweep, in the process of its runs."""

    def __init__(self) -> None:
        self.asked = False
        self._control: RunControl | None = None

    def ask(self) -> None:
        """Request the stop: the current run ends, and no further run begins."""
        self.asked = True
        if self._control is not None:
            self._control.stop.set()

    def watch(self, control: RunControl) -> None:
        """Register the run that begins now."""
        self._control = control
        if self.asked:
            control.stop.set()

    def check(self) -> None:
        """Raise ``SweepStopped`` after a request."""
        if self.asked:
            raise SweepStopped
