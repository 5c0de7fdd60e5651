"""What restyles a picture at one moment, and what a person, a runtime or a file adds to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields

from loopscope.explain.provenance import ProvenanceStep
from loopscope.view.node_data import NodeData
from loopscope.view.status import BreakpointState, FrameStatus, NodeStatus


@dataclass(frozen=True, slots=True)
class Marks:
    """What a person, a runtime or a file adds to the picture of a moment."""

    selected: str = ""
    """Address, static or with iteration numbers."""
    breakpoints: Collection[str] = ()
    """Address patterns with ``*``."""
    switched_off: Collection[str] = ()
    """Address patterns of disabled breakpoints."""
    verdicts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reasons why loops ended, by static address; shown on frames of loops that are not running."""
    fates: Mapping[str, str] = field(default_factory=dict[str, str])
    """What a runtime runs in place of loops and branches, by static address."""
    times: Mapping[str, float] = field(default_factory=dict[str, float])
    """Share of the run time per operation, by static address; a folded box shows the sum."""
    origins: Sequence[ProvenanceStep] = ()
    """Steps of ``loopscope.explain.provenance.provenance`` that lead to a traced value."""
    node_data: NodeData | None = None


NO_MARKS = Marks()


@dataclass(frozen=True, slots=True)
class Overlay:
    """What differs from the bare picture, by the view's ids; ``as_data`` gives it as JSON."""

    nodes: dict[str, NodeStatus] = field(default_factory=dict[str, NodeStatus])
    """Of boxes: where the run is with them."""
    nans: dict[str, bool] = field(default_factory=dict[str, bool])
    """Boxes of which a value contains NaN, each True."""
    values: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Texts on the wires that leave a box, by output number; empty text where there is no value."""
    backs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """On back edges: the value handed to the next iteration, and the value that this iteration
    began with.
    """
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """On frames and folded loops: ``iteration 3 of 12``, or a verdict."""
    progress: dict[str, float] = field(default_factory=dict[str, float])
    """Of loops that say how often they run: the part that is done, 0 to 1."""
    frames: dict[str, FrameStatus] = field(default_factory=dict[str, FrameStatus])
    """Of frames: where the run is with a loop's body, a branch or a copy of an unrolled body;
    none for a body that is not running.
    """
    slices: dict[str, str] = field(default_factory=dict[str, str])
    """On port maps: ``part [2] of 6``: its index from 0."""
    sparks: dict[str, list[object]] = field(default_factory=dict[str, list[object]])
    """On folded loops: ``loopscope.view.sparkline.Sparkline.as_data``."""
    next: str = ""
    """Id of the box or frame that runs next; empty at the end of the run."""
    current: str = ""
    """Id of the box or frame that the canvas keeps in sight: what runs next, and in the end what
    ran last.
    """
    selected: str = ""
    """Id of the selected box."""
    breakpoints: dict[str, BreakpointState] = field(default_factory=dict[str, BreakpointState])
    """On boxes: a breakpoint that holds, or one that is switched off."""
    origins: dict[str, int] = field(default_factory=dict[str, int])
    """Of boxes and lines that a traced value came through: the distance from it, at most
    ``loopscope.view.origins.FARTHEST``.
    """

    heats: dict[str, int] = field(default_factory=dict[str, int])
    """On boxes: share of the run time, from 1 to ``loopscope.view.runtime_marks.HOTTEST``."""
    tints: dict[str, list[object]] = field(default_factory=dict[str, list[object]])
    """On boxes: colours by the data of a file (``loopscope.view.node_data``)."""
    scale: list[str] = field(default_factory=list[str])
    """Legend of these colours; empty without data."""

    def as_data(self) -> dict[str, object]:
        """Plain dictionaries and lists, for JSON."""
        return {one.name: getattr(self, one.name) for one in fields(self)}
