"""Data of an overlay, which restyles a picture at one moment of a run: statuses and marks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

from loopscope.explain.provenance import ProvenanceStep
from loopscope.view.node_data import NodeData

NodeStatus = Literal["current", "done", "waiting", "skipped", "failed"]
FrameStatus = Literal["active", "done", "waiting", "taken", "skipped"]
"""A loop's body is ``active`` while it runs. A copy of an unrolled body may also be ``done`` or
``waiting``. A branch is ``taken`` or ``skipped``.
"""
BreakpointState = Literal["on", "off"]


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks on a picture that do not follow from the run: by the user, a runtime or a file."""

    selected: str = ""
    """Selected address, static or with iteration numbers."""
    breakpoints: Collection[str] = ()
    """Address patterns with ``*``."""
    switched_off: Collection[str] = ()
    """Address patterns of disabled breakpoints."""
    verdicts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reasons why loops ended, by static address; displayed on frames of loops that are not
    running.
    """
    runtime_badges: Mapping[str, str] = field(default_factory=dict[str, str])
    """Badges of loops and branches that a runtime replaced, by static address."""
    times: Mapping[str, float] = field(default_factory=dict[str, float])
    """Share of the run time per operation, by static address; a folded box displays the sum."""
    origins: Sequence[ProvenanceStep] = ()
    """Steps of ``loopscope.explain.provenance.provenance`` that lead to a traced value."""
    node_data: NodeData | None = None


NO_MARKS = Marks()


@dataclass(frozen=True, slots=True)
class Overlay:
    """Differences from the bare picture, by the view's ids."""

    nodes: dict[str, NodeStatus] = field(default_factory=dict[str, NodeStatus])
    """Status of each box."""
    nans: dict[str, bool] = field(default_factory=dict[str, bool])
    """Boxes with a NaN or an infinity in a value, each True."""
    values: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Texts on the wires that leave a box, by output number; an empty text for a missing value."""
    backs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Values on back edges: the value for the next iteration, and the value that this iteration
    began with.
    """
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Headers of frames and folded loops: ``iteration 3 of 12``, or a verdict."""
    progress: dict[str, float] = field(default_factory=dict[str, float])
    """Progress of loops with a known iteration count, 0 to 1."""
    frames: dict[str, FrameStatus] = field(default_factory=dict[str, FrameStatus])
    """Status of frames: loop bodies, branches, copies of unrolled bodies. Bodies that do not run
    are absent.
    """
    slices: dict[str, str] = field(default_factory=dict[str, str])
    """Slice texts on port maps, such as ``part [2] of 6`` with an index from 0."""
    sparks: dict[str, list[object]] = field(default_factory=dict[str, list[object]])
    """Sparklines of folded loops (``loopscope.view.preview.Sparkline.as_data``)."""
    next: str = ""
    """Id of the box or frame that runs next; empty at the end of the run."""
    current: str = ""
    """Id of the box or frame that the canvas scrolls to: the next one, or at the end the last
    one.
    """
    selected: str = ""
    """Id of the selected box."""
    breakpoints: dict[str, BreakpointState] = field(default_factory=dict[str, BreakpointState])
    """State of the breakpoints on boxes."""
    origins: dict[str, int] = field(default_factory=dict[str, int])
    """Boxes and lines on a traced value's provenance: distance from the value, at most
    ``loopscope.view.origins.FARTHEST``.
    """

    heats: dict[str, int] = field(default_factory=dict[str, int])
    """Time heat of boxes, from 1 to ``loopscope.view.mark_painters.HOTTEST``."""
    tints: dict[str, list[object]] = field(default_factory=dict[str, list[object]])
    """Colours of boxes by node data (``loopscope.view.node_data``)."""
    scale: list[str] = field(default_factory=list[str])
    """Legend of the node data; empty without data."""

    def as_data(self) -> dict[str, object]:
        """Return the overlay as dictionaries and lists, for JSON."""
        return {column.name: getattr(self, column.name) for column in fields(self)}
