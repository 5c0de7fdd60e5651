"""The view of a session's canvas, and the messages received from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopscope.ir import ROOT
from loopscope.view import VISIBLE_NODES, Folding, GraphView, Overlay


@dataclass(slots=True)
class CanvasView:
    """The canvas of a session."""

    selected: str = ""
    """Address that the inspector is pinned to, with its pinned iterations; empty if it follows the
    cursor.
    """
    root: str = ROOT
    """Static address of the drawn graph."""
    folding: Folding = field(default_factory=Folding)
    pictured: tuple[GraphView, Overlay] | None = None
    """Last picture of a moment, shown during a long run."""
    followed: int = -1
    """Step at which the windows of unrolled loops last moved to the cursor."""
    prefetch_from: int | None = None
    """First step that the canvas requests in advance; None without a request."""
    reported: int = 0
    """Number of the last report about playback."""
    picked: int = 0
    """Number of the last choice received from the finder."""
    moved: int = 0
    """Number of the last move that was made."""
    acted: int = 0
    """Number of the last event received from the canvas."""
    prefetched: dict[str, object] | None = None
    """Steps that were sent in advance."""
    boxes: int = VISIBLE_NODES
    """Approximate limit of the number of boxes."""
    previews: dict[str, str] = field(default_factory=dict[str, str])
    """Texts on wires by concrete address. A run's values never change."""
    playing: bool = False
    """True while the canvas plays, according to its last report."""
    plays: int = 0
    """Number of requests to start or stop playing."""
