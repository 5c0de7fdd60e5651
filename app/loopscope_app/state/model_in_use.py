"""The open model of a session, and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from loopscope.checks import EVERYBODY, Runtime
from loopscope.peers import Fates
from loopscope.view import NodeData
from loopscope_app.state.agreement import Agreement
from loopscope_app.state.model_cache import Age
from loopscope_app.state.open_model import Opened
from loopscope_app.state.uploads import Uploads


@dataclass(slots=True)
class ModelInUse:
    """The open model of a session."""

    opened: Opened | None = None
    unprepared: bool = False
    """True if the user stopped the check of a large model: only its picture is shown."""
    once_prepared: Callable[[], None] | None = None
    """Action that restores the moment of a link once there is a run."""
    checked_for: frozenset[Runtime] = EVERYBODY
    """Runtimes whose findings Problems lists."""
    input_set: str = ""
    """Name of the input set in use; empty if its values were edited."""
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    fates: Fates | None = None
    """Loops and branches as the model's runtime runs them, once they are known."""
    agreement: Agreement | None = None
    """The comparison of the model with its runtime, which begins when the model opens."""
    node_data: NodeData | None = None
    """A user's data about nodes, shown as colors."""
    watched: Age | None = None
    """Age of the watched file when it was opened; None if it was not opened."""
    resting: Age | None = None
    """Age of the watched file at the last look."""
    rests_since: float = 0.0
    """Time from which the watched file had that age, by the monotonic clock."""
    other: Opened | None = None
    """Another model to compare with."""
    uploads: Uploads = field(default_factory=Uploads)
    before: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Inputs of the previous run."""
    draft: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Inputs in the editor."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Errors of typed inputs by input name; nothing runs until they are corrected."""

    @property
    def badges(self) -> dict[str, str]:
        """Short fates of loops and branches by static address; empty until they are known."""
        if self.fates is None:
            return {}
        runtime = self.fates.runtime.rpartition(" ")[0]
        return {
            region.address: f"{runtime}: {region.badge}"
            for region in self.fates.regions
            if region.became != "not told"
        }
