"""What a session's canvas shows of the model and the run, and what was heard from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopscope.ir import ROOT
from loopscope.view import VISIBLE_NODES, Folding, GraphView, Overlay


@dataclass(slots=True)
class CanvasView:
    """Part of the session."""

    selected: str = ""
    """Address that the inspector is pinned to, static but for iterations that it is pinned to as
    well; empty: it follows the cursor.
    """
    root: str = ROOT
    """Static address of the graph that the canvas shows."""
    folding: Folding = field(default_factory=Folding)
    pictured: tuple[GraphView, Overlay] | None = None
    """The last picture of a moment: it stays while a long run is under way."""
    followed: int = -1
    """Step at which the windows of unrolled loops were last moved to the cursor."""
    prefetch_from: int | None = None
    """First step that the canvas wants to have sent ahead; None when it asks for nothing."""
    reported: int = 0
    """Number of the last report in which the canvas said how far it has played."""
    picked: int = 0
    """The choice in the finder, by number, that was heard last."""
    moved: int = 0
    """Number of the last move by key or button that was made."""
    acted: int = 0
    """Number of the last act on the canvas that was heard."""
    prefetched: dict[str, object] | None = None
    """What was sent ahead last."""
    boxes: int = VISIBLE_NODES
    """At most about so many boxes are drawn on the canvas."""
    previews: dict[str, str] = field(default_factory=dict[str, str])
    """Texts on wires by concrete address; a run's values never change."""
    playing: bool = False
    """Whether the canvas is playing, as far as it has reported."""
    plays: int = 0
    """How often it was asked to begin or to end that."""
    panels_gone: bool = False
    """A long run has taken the panels around the picture off the screen."""
