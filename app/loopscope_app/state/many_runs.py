"""The screen of many runs: which inputs it is to run, and the sweep that it shows."""

from __future__ import annotations

from dataclasses import dataclass

from loopscope_app.state.background_sweep import Sweeping

DATA, GRID, RANDOM_NUMBERS, FILE = "Data set", "Grid", "Random", "File"
KINDS = (DATA, GRID, RANDOM_NUMBERS, FILE)
"""Of inputs; the data set is the one that lies beside a sample."""
THE_DATA = "data"
"""The words for it."""


@dataclass(slots=True)
class ManyRuns:
    """Part of the session; written by ``loopscope_app.actions.running_many`` only."""

    shown: bool = False
    """The screen shows it, and not one run."""
    words: str = ""
    """The inputs that are to run, as ``loopscope sweep --inputs`` takes them."""
    file: str = ""
    """Name of the file that the inputs of the sweep came from; empty where they came from words."""
    sweeping: Sweeping | None = None
    """The last sweep, under way or over."""
    against: Sweeping | None = None
    """The same inputs in another model, or with values rounded."""
    against_title: str = ""
    """What that is."""
    generation: int = 0
    """Part of the keys of its widgets, which begin afresh with another sweep."""

    def forget(self) -> None:
        """Another model comes, or nobody looks any more."""
        self.forget_comparison()
        if self.sweeping is not None:
            self.sweeping.stop()
        self.sweeping, self.words, self.file, self.shown = None, "", "", False
        self.generation += 1

    def forget_comparison(self) -> None:
        """The runs are no longer compared with others."""
        if self.against is not None:
            self.against.stop()
        self.against, self.against_title = None, ""

    @property
    def is_grid(self) -> bool:
        """Whether the sweep is over all combinations of values."""
        return not self.file and self.words != THE_DATA and not self.words.startswith("random:")

    @property
    def sweeps(self) -> tuple[Sweeping, ...]:
        """All that there are, in the order in which they began."""
        return tuple(one for one in (self.sweeping, self.against) if one is not None)

    @property
    def under_way(self) -> Sweeping | None:
        """The one that runs."""
        return next((one for one in self.sweeps if not one.done()), None)

    @property
    def held_bytes(self) -> int:
        """Of all rows."""
        return sum(one.held_bytes for one in self.sweeps)
