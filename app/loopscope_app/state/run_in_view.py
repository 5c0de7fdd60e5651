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
from loopscope_app.state.background_run import Fitting, Onward, Running


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Two runs of one model side by side; neither is the one that the user steps through."""

    name: str
    """Input set of the other run; empty: the inputs before the present ones; ``UNCHANGED``:
    these inputs, without what was set by hand.
    """
    one: loopscope.Debugger
    other: loopscope.Debugger


@dataclass(frozen=True, slots=True, eq=False)
class Drifted:
    """How far another run is from one with the present inputs, value by value and iteration by
    iteration.
    """

    name: str
    """What was compared with, as ``Compared`` has it: another model, the same with values
    rounded, or a runtime.
    """
    title: str
    """The other, in words."""
    drift: Drift
    sentence: str
    one: loopscope.Debugger
    other: loopscope.Debugger | None
    """None for a runtime, of which there are only ``values``."""
    values: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """What a runtime gave, by address without iterations, a row for each row of the pair."""

    def there(self, spot: Spot) -> np.ndarray:
        """The other's value; ``EngineError`` where it is no longer known and cannot be computed
        again.
        """
        pair = self.drift.pairs[spot.pair]
        if self.other is None and pair.one not in self.values:
            raise EngineError(
                f"{self.title} gave a fingerprint of this value only, by which the two agree: it is too large to be compared whole"
            )
        if self.other is None:
            return np.asarray(self.values[pair.one][spot.row])
        return self.other.value(pair.address_beside(self.other, spot.row))


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run was when it was last looked at."""

    run: str
    """Its name, which differs between runs."""
    step: int
    steps: int
    over: bool
    tracks: tuple[Track, ...]


@dataclass(slots=True)
class RunInView:
    """Part of the session."""

    onward: Onward | None = None
    """Finishes a run that a link has reopened, in the background, as long as the user does not
    touch it.
    """
    stepped: loopscope.Debugger | None = None
    """The run that is stepped through; readers take it from ``debugger``."""
    changes: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Values that are set by hand in the debugger's run, by address."""
    original: loopscope.Debugger | None = None
    """The run without them."""
    running: Running | None = None
    fitting: Fitting | None = None
    """Looks for lengths of made-up inputs with which the model runs."""
    standing: Standing | None = None
    scout: loopscope.Debugger | None = None
    """Runs ahead of the debugger, so that steps can be sent to the canvas before the user sees
    them.
    """
    compared: Compared | None = None
    drifted: Drifted | None = None
    spot: Spot | None = None
    """The value and iteration of which both sides are shown."""
    other_runtime: ComparisonReport | None = None
    """The same run in the runtime of its model, once it was asked for."""
    source: SourceReport | SourceAlone | None = None
    """The same inputs in the program that the file was converted from, once it was asked for."""
    clock: Clock | None = None
    """Where the time of the same run goes, once it was measured."""
    asked: str = ""
    """The last question to the trace."""
    generation: int = 0
    """Part of the keys of widgets that must forget what they showed when another model or input
    set comes.
    """
    held_against_file: bool = False
    """It is over, and what it gave was held against what the file of a saved run recorded."""
    gave_up: bool = False
    """The run had to give up its values, and its user does not know yet."""

    @property
    def debugger(self) -> loopscope.Debugger | None:
        """The debugger, to look at or to move; a run in the background pauses for it."""
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
        """The debugger to look at; None while a long run has it under way."""
        return self.debugger if self.running is None else None

    @property
    def is_computing(self) -> bool:
        """Whether a run is under way in the background."""
        return self.running is not None or (self.onward is not None and not self.onward.over)
