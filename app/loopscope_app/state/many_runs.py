"""The screen Many runs: its inputs and its sweep."""

from __future__ import annotations

from dataclasses import dataclass

from loopscope_app.state.background_sweep import Sweeping

DATA, GRID, RANDOM_NUMBERS, FILE = "Data set", "Grid", "Random", "File"
KINDS = (DATA, GRID, RANDOM_NUMBERS, FILE)
"""Kinds of inputs; the data set is the one beside a sample."""
THE_DATA = "data"
"""Text that stands for the data set."""


@dataclass(slots=True)
class ManyRuns:
    """The sweeps of a session. Only ``loopscope_app.actions.running_many`` changes them."""

    has_begun: bool = False
    """True once the default inputs were run without a request."""
    words: str = ""
    """The requested inputs, in the syntax of ``loopscope sweep --inputs``."""
    file: str = ""
    """Name of the file with the inputs of the sweep; empty if they came from a text."""
    sweeping: Sweeping | None = None
    """The last sweep, running or finished."""
    against: Sweeping | None = None
    """The same inputs in another model, or with values rounded."""
    against_title: str = ""
    """Description of ``against``."""
    generation: int = 0
    """Part of the keys of widgets that start again with another sweep."""

    def forget(self) -> None:
        """Stop and drop all sweeps, because another model is opened or the session ends."""
        self.forget_comparison()
        if self.sweeping is not None:
            self.sweeping.stop()
        self.has_begun = False
        self.sweeping, self.words, self.file = None, "", ""
        self.generation += 1

    def forget_comparison(self) -> None:
        """Stop and drop the second sweep."""
        if self.against is not None:
            self.against.stop()
        self.against, self.against_title = None, ""

    @property
    def is_grid(self) -> bool:
        """True if the sweep covers all combinations of values."""
        return not self.file and self.words != THE_DATA and not self.words.startswith("random:")

    @property
    def sweeps(self) -> tuple[Sweeping, ...]:
        """All sweeps, in the order in which they began."""
        return tuple(sweep for sweep in (self.sweeping, self.against) if sweep is not None)

    @property
    def under_way(self) -> Sweeping | None:
        """The sweep that runs, or None."""
        return next((sweep for sweep in self.sweeps if not sweep.done()), None)

    @property
    def held_bytes(self) -> int:
        """Size of all rows."""
        return sum(sweep.held_bytes for sweep in self.sweeps)
