"""The run that a session steps through, and the runs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import loopscope
from loopscope.comparison import Spot, StructureDiff
from loopscope.peers import Clock, ComparisonReport, SourceAlone, SourceReport
from loopscope.view import Folding, Track
from loopscope_app.describe.both_runs import Compared, Drifted
from loopscope_app.describe.specialised_model import SpecialisedModel
from loopscope_app.state.background_run import Fitting, Onward, Running


@dataclass(slots=True)
class ShownDifference:
    """The difference that Compare shows on its canvas, in its tapes and with both values."""

    address: str
    """Address in the run here, with iterations."""
    step: int
    spot: Spot | None
    """Value and row; None for loops and branches."""
    folding: Folding
    """Folding of the canvas of Compare."""
    beside: Folding | None = None
    """Folding of the canvas of another model; None if both runs have the same model."""
    only_there: str = ""
    """Selected operation of the other model that has no counterpart here; empty if none."""


@dataclass(slots=True)
class ShownStructure:
    """The canvas of the structure of two models."""

    of: StructureDiff
    folding: Folding
    address: str = ""
    """Selected operation."""


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
    compared_with: str | None = None
    """Other inputs that Compare began to compare last, also if that was stopped."""
    drifted: Drifted | None = None
    compared_run: loopscope.Debugger | None = None
    """Run on the current inputs of the last comparison; the canvas of Compare shows it."""
    difference: ShownDifference | None = None
    """Difference that Compare shows."""
    structure: ShownStructure | None = None
    """Structure of two models, as Compare shows it."""
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
    difference_reported: bool = False
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
