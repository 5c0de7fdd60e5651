"""The screen of many runs: which inputs it is to run, and the sweep that it shows."""

from __future__ import annotations

from dataclasses import dataclass

from app.state.background_sweep import Sweeping

GRID, RANDOM_NUMBERS, FILE = "Grid", "Random", "File"
KINDS = (GRID, RANDOM_NUMBERS, FILE)
"""Of inputs."""


@dataclass(slots=True)
class ManyRuns:
    """Part of the session; written by ``app.actions.running_many`` only."""

    shown: bool = False
    """The screen shows it, and not one run."""
    words: str = ""
    """The inputs that are to run, as ``loopscope sweep --inputs`` takes them."""
    file: str = ""
    """Name of the file that the inputs of the sweep came from; empty where they came from words."""
    sweeping: Sweeping | None = None
    """The last sweep, under way or over."""
    generation: int = 0
    """Part of the keys of its widgets, which begin afresh with another sweep."""

    def forget(self) -> None:
        """Another model comes, or nobody looks any more."""
        if self.sweeping is not None:
            self.sweeping.stop()
        self.sweeping, self.words, self.file, self.shown = None, "", "", False
        self.generation += 1
