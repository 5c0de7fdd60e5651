"""The open model of a session: its inputs, its file, which may be watched for changes, and its
background comparison with its runtime.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import loopscope
from loopscope.checks import EVERYBODY, Runtime
from loopscope.errors import EngineError
from loopscope.ir import graphs
from loopscope.peers import ComparisonReport, Fates, against, runtime_of
from loopscope.view import NodeData
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.model_cache import Age, age_of
from loopscope_app.state.open_model import Opened
from loopscope_app.state.uploads import Uploads

DELAY = 3.0
"""Seconds after opening, so that the comparison does not slow the first picture down."""
MOST_NODES = 3_000
MOST_BYTES = 64 << 20
"""Largest model that is compared without a request, in nodes and in bytes of its constants."""
OWN_LIMITS = loopscope.Limits(seconds=3.0, memory_bytes=1 << 28)
RUNTIME_SECONDS = 20.0
REST = 0.5
"""Seconds without a change after which a watched file is opened again."""
_one_at_a_time = threading.Lock()


@dataclass(slots=True, eq=False, weakref_slot=True)
class Agreement:
    """A comparison that has been started, and its report once it is known.

    It ends early when the session no longer refers to it.
    """

    opened: Opened
    inputs: Mapping[str, np.ndarray]
    report: ComparisonReport | None = None
    over: bool = False
    """True when no report will follow."""
    thread: threading.Thread | None = field(default=None, repr=False)

    def begin(self) -> None:
        """Start the comparison unless the model is too large or its runtime is not installed."""
        if not is_small(self.opened) or not runtime_of(self.opened.model):
            self.over = True
            return
        self.thread = threading.Thread(
            target=_compare, args=(weakref.ref(self), self.opened, self.inputs), daemon=True
        )
        self.thread.start()

    def is_for(self, opened: Opened, inputs: Mapping[str, np.ndarray]) -> bool:
        """Return True if the report is, or will be, about this model and these inputs."""
        return self.opened.model is opened.model and self.inputs is inputs


def is_small(opened: Opened) -> bool:
    """Return True for a valid model that a comparison without a request may run."""
    if opened.pending or not opened.report.ok:
        return False
    nodes = [node for place in graphs(opened.model) for node in place.graph.nodes]
    size = sum(len(node.constant.data) for node in nodes if node.constant is not None)
    return len(nodes) <= MOST_NODES and size <= MOST_BYTES


def _compare(
    reference: weakref.ref[Agreement], opened: Opened, inputs: Mapping[str, np.ndarray]
) -> None:
    """Compare one run with the runtime, unless the user has left the model meanwhile."""
    time.sleep(DELAY)
    with _one_at_a_time:
        report = None if reference() is None else _report(reference, opened, inputs)
    agreement = reference()
    if agreement is not None:
        agreement.report, agreement.over = report, True


def _report(
    reference: weakref.ref[Agreement], opened: Opened, inputs: Mapping[str, np.ndarray]
) -> ComparisonReport | None:
    """Return the report; None if the model does not finish, or the runtime cannot run it."""
    try:
        values = bindings(opened.model, inputs)
        debugger = loopscope.Debugger(opened.model, values, limits=OWN_LIMITS, seed=opened.seed)
        debugger.run()
        if debugger.state != "finished":
            return None
        return against(
            debugger,
            values,
            seconds=RUNTIME_SECONDS,
            document=opened.document,
            stopped=lambda: reference() is None,
        )
    except EngineError:
        return None


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

    def note_file(self) -> None:
        """Note the age of the watched file before it is opened."""
        self.watched = _age_of_launched_file()

    def file_has_changed(self) -> bool:
        """Return True if the watched file differs from the one that was opened, and is not being
        written.

        A file that is being written changes from call to call, and is opened when it rests.
        """
        age, now = _age_of_launched_file(), time.monotonic()
        if age != self.resting:
            self.resting, self.rests_since = age, now
        if self.watched is None:  # the same file was opened by another door
            self.watched = age
        rests = now - self.rests_since >= REST
        return bool(age) and rests and age != self.watched

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


def _age_of_launched_file() -> Age:
    try:
        return age_of(Path(LAUNCH.model))
    except OSError:  # a writer replaces the file at this moment
        return ()
