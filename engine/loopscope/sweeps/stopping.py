"""The word to stop a sweep, which any thread may give and the run under way hears at once."""

from __future__ import annotations

from loopscope.executor.machine.limits import RunControl


class SweepStopped(Exception):
    """What is under way is given up: its rows are not whole."""


class Stop:
    """Of one sweep, in the process that its runs are in."""

    def __init__(self) -> None:
        self.asked = False
        self._control: RunControl | None = None

    def ask(self) -> None:
        """No more runs; the one under way ends."""
        self.asked = True
        if self._control is not None:
            self._control.stop.set()

    def watch(self, control: RunControl) -> None:
        """The run that begins now."""
        self._control = control
        if self.asked:
            control.stop.set()

    def check(self) -> None:
        """``SweepStopped`` once it was asked for."""
        if self.asked:
            raise SweepStopped
