"""The run that a session steps through, and the runs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import loopscope
from loopscope.comparison import Drift, Spot
from loopscope.errors import EngineError
from loopscope.peers import Clock, ComparisonReport, SourceAlone, SourceReport
from loopscope.view import Track
from loopscope_app.describe.specialised_model import SpecialisedModel
from loopscope_app.state.background_run import Fitting, Onward, Running


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Two runs of one model, besides the run that the user steps through."""

    name: str
    """Input set of the other run; empty for the previous inputs; ``UNCHANGED`` for the current
    inputs without changes.
    """
    one: loopscope.Debugger
    other: loopscope.Debugger


@dataclass(frozen=True, slots=True, eq=False)
class Drifted:
    """Differences between a run on the current inputs and another run, by value and iteration."""

    name: str
    """Kind of the other run, as in ``Compared``: another model, rounded values, or a runtime."""
    title: str
    """Description of the other run."""
    drift: Drift
    sentence: str
    one: loopscope.Debugger
    other: loopscope.Debugger | None
    """The other run; None for a runtime, which has only ``values``."""
    values: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Values from a runtime by address without iterations, one row for each row of the pair."""

    def there(self, spot: Spot) -> np.ndarray:
        """Return the other run's value. Raise ``EngineError`` if it is neither stored nor
        computable.
        """
        pair = self.drift.pairs[spot.pair]
        if self.other is None and pair.one not in self.values:
            raise EngineError(
                f"{self.title} returned only a fingerprint of this value, which is too large to be "
                "compared whole; the fingerprints agree"
            )
        if self.other is None:
            return np.asarray(self.values[pair.one][spot.row])
        return self.other.value(pair.address_beside(self.other, spot.row))


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a run at its last use."""

    run: str
    """Unique name of the run."""
    step: int
    steps: int
    over: bool
    tracks: tuple[Track, ...]


@dataclass(slots=True)
class RunInView:
    """The run of a session."""

    onward: Onward | None = None
    """Background continuation of a run that a link reopened, until the user acts."""
    stepped: loopscope.Debugger | None = None
    """The run that is stepped through; read it from ``debugger``."""
    changes: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Values set by hand, by address."""
    original: loopscope.Debugger | None = None
    """The run without changes."""
    specialised: SpecialisedModel | None = None
    """The model without what did not run, as last requested from the menu of an If or loop."""
    running: Running | None = None
    fitting: Fitting | None = None
    """Search for lengths of generated inputs with which the model runs."""
    standing: Standing | None = None
    scout: loopscope.Debugger | None = None
    """Run ahead of the debugger, from which the canvas prefetches steps."""
    compared: Compared | None = None
    drifted: Drifted | None = None
    spot: Spot | None = None
    """Value and iteration whose two sides are shown."""
    other_runtime: ComparisonReport | None = None
    """Comparison with the model's runtime, once requested."""
    source: SourceReport | SourceAlone | None = None
    """Comparison with the source program, once requested."""
    clock: Clock | None = None
    """Time of each operation, once measured."""
    asked: str = ""
    """The last formula for the trace."""
    generation: int = 0
    """Part of the keys of widgets that start again with another model or input set."""
    held_against_file: bool = False
    """True once the finished run was compared with the file of its saved run."""
    gave_up: bool = False
    """True if the values were dropped and the user was not told yet."""

    @property
    def debugger(self) -> loopscope.Debugger | None:
        """The debugger; a background continuation is halted first."""
        if self.onward is not None:
            self.onward.halt()
        return self.stepped

    @debugger.setter
    def debugger(self, debugger: loopscope.Debugger | None) -> None:
        if self.onward is not None:
            self.onward.halt()
        self.onward, self.stepped = None, debugger

    @property
    def at_rest(self) -> loopscope.Debugger | None:
        """The debugger, or None while a long run uses it."""
        return self.debugger if self.running is None else None

    @property
    def is_computing(self) -> bool:
        """True while a run computes in the background."""
        return self.running is not None or (self.onward is not None and not self.onward.over)
