"""The comparison of an opened model with its runtime, which runs in the background."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import loopscope
from loopscope.errors import EngineError
from loopscope.ir import graphs
from loopscope.peers import ComparisonReport, against, runtime_of
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.open_model import Opened

DELAY = 3.0
"""Seconds after opening, so that the comparison does not slow the first picture down."""
MOST_NODES = 3_000
MOST_BYTES = 64 << 20
"""Largest model that is compared without a request, in nodes and in bytes of its constants."""
OWN_LIMITS = loopscope.Limits(seconds=3.0, memory_bytes=1 << 28)
RUNTIME_SECONDS = 20.0
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

    def failed_before(self, inputs: Mapping[str, np.ndarray]) -> bool:
        """Return True if the report is missing, and ``inputs`` are other ones."""
        return self.over and self.report is None and self.inputs is not inputs


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
