"""The model that a session has open, and the inputs that it runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from loopscope.checks import EVERYBODY, Runtime
from loopscope.peers import Fates
from loopscope.view import NodeData
from loopscope_app.state.open_model import Opened
from loopscope_app.state.uploads import Uploads


@dataclass(slots=True)
class ModelInUse:
    """Part of the session."""

    opened: Opened | None = None
    unprepared: bool = False
    """A large model's check was stopped by its user: the picture is all there is, until they ask
    again.
    """
    once_prepared: Callable[[], None] | None = None
    """What a link says of the moment, to be put back when there is a run."""
    checked_for: frozenset[Runtime] = EVERYBODY
    """The runtimes whose findings Problems lists."""
    input_set: str = ""
    """Name of the set that is in use; empty when its values were edited."""
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    fates: Fates | None = None
    """What the runtime of the model makes of its loops and branches, once it was asked."""
    node_data: NodeData | None = None
    """What others say of its nodes, shown as colours."""
    other: Opened | None = None
    """Another model, which runs are compared with."""
    uploads: Uploads = field(default_factory=Uploads)
    before: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Inputs of the run before this one."""
    draft: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Inputs as the user is editing them."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """What is wrong with the text in an input's field, by input name; nothing runs until it is
    corrected.
    """

    @property
    def badges(self) -> dict[str, str]:
        """What the runtime makes of each loop and branch, in a few words, by static address;
        empty until it was asked.
        """
        if self.fates is None:
            return {}
        called = self.fates.runtime.rpartition(" ")[0]
        return {
            one.address: f"{called}: {one.badge}"
            for one in self.fates.regions
            if one.became != "not told"
        }
