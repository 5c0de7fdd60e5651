"""Data of an overlay, which restyles a picture at one moment of a run, and painters of marks.

The data consists of statuses and marks. A painter returns the overlay with one kind of mark added.
The cursor is at the box or frame that runs next. The canvas scrolls to it, and at the end of the
run to the one that ran last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import Literal

from loopscope.debug.run import Run
from loopscope.explain.provenance import ProvenanceStep
from loopscope.view.graph import GraphView, ViewNode, without_iterations
from loopscope.view.node_data import NodeData, node_colours
from loopscope.view.origins import highlight

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
    """Time heat of boxes, from 1 to ``loopscope.view.overlay_data.HOTTEST``."""
    tints: dict[str, list[object]] = field(default_factory=dict[str, list[object]])
    """Colours of boxes by node data (``loopscope.view.node_data``)."""
    scale: list[str] = field(default_factory=list[str])
    """Legend of the node data; empty without data."""

    def as_data(self) -> dict[str, object]:
        """Return the overlay as dictionaries and lists, for JSON."""
        return {column.name: getattr(self, column.name) for column in fields(self)}


HOTTEST = 8
"""Highest level of time heat."""


def paint_selection(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Mark the selected box."""
    box = selected_box(run, view, marks.selected) if marks.selected else None
    return replace(overlay, selected=box.id) if box else overlay


def paint_breakpoints(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Mark boxes with breakpoints; an active breakpoint overrides a disabled one."""
    states: dict[str, BreakpointState] = {}
    states |= {node.id: "off" for node in breakpoint_boxes(view, marks.switched_off)}
    states |= {node.id: "on" for node in breakpoint_boxes(view, marks.breakpoints)}
    return replace(overlay, breakpoints=states)


def paint_runtime(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Add runtime badges to the headers of loops and branches, and time heat to boxes."""
    headers = overlay.headers | headers_with_badges(view, overlay.headers, marks.runtime_badges)
    return replace(overlay, headers=headers, heats=time_heat(view, marks.times))


def paint_origins(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Highlight the boxes and wires on the provenance of a traced value."""
    if not marks.origins:
        return overlay
    highlighted = highlight(view, marks.origins)
    return replace(overlay, origins=highlighted.boxes | highlighted.lines)


def paint_node_data(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Colour boxes by node data."""
    if marks.node_data is None:
        return overlay
    return replace(
        overlay, tints=node_colours(view, run, marks.node_data), scale=marks.node_data.scale
    )


PAINTERS = (paint_selection, paint_breakpoints, paint_runtime, paint_origins, paint_node_data)
"""One painter per kind of mark. Their order does not matter, because each writes fields of its
own.
"""


def selected_box(run: Run | None, view: GraphView, address: str) -> ViewNode | None:
    """Return the box of a selected place.

    In copies of unrolled loops it is the box of the named iteration, else of the one at the cursor.
    """
    box = view.node_of.get(view.place_of(address))
    if box is None and view.unrolled:
        concrete = run.resolve(without_iterations(address)) if run is not None else None
        box = (
            view.showing(view.place_of(concrete))
            if concrete
            else next(iter(view.instances_of(address)), None)
        )
    return box or view.showing(without_iterations(address))


def breakpoint_boxes(view: GraphView, patterns: Collection[str]) -> list[ViewNode]:
    """Return the boxes that display a dot for breakpoints at these places."""
    boxes: dict[str, ViewNode] = {}
    for pattern in patterns:
        static = without_iterations(pattern)
        if "*" in static:
            hits = [node for address, node in view.node_of.items() if fnmatchcase(address, static)]
        else:
            exact = view.node_of.get(view.place_of(pattern)) or (
                None if view.unrolled else view.showing(static)
            )
            hits = (
                [exact]
                if exact
                else view.instances_of(static) or [box for box in (view.showing(static),) if box]
            )
        boxes.update({node.id: node for node in hits})
    return list(boxes.values())


def time_heat(view: GraphView, times: Mapping[str, float]) -> dict[str, int]:
    """Return the heat level of each box, 1 to ``HOTTEST``, relative to the slowest box.

    ``times`` are shares of the run time by static address. Boxes that round to level 0 are left
    out.
    """
    shares: dict[str, float] = {}
    for address, share in times.items():
        box = view.showing(address)
        if box is not None:
            shares[box.id] = shares.get(box.id, 0.0) + share
    largest = max(shares.values(), default=0.0)
    levels = {id: round(HOTTEST * share / largest) for id, share in shares.items() if largest > 0}
    return {id: level for id, level in levels.items() if level}


def headers_with_badges(
    view: GraphView, headers: Mapping[str, str], runtime_badges: Mapping[str, str]
) -> dict[str, str]:
    """Return the headers of frames and folded loops that have a runtime badge, with the badge in
    front.
    """
    return {
        id: " · ".join(filter(None, (runtime_badges[address], headers.get(id))))
        for id, address in view.control_flow
        if address in runtime_badges
    }


def cursor_boxes(run: Run, view: GraphView) -> tuple[str, str]:
    """Return two ids: the box or frame that runs next, and the one to which the canvas scrolls.

    At the end of the run, the first is empty and the second is the box or frame that ran last.
    """
    next_id = _next(run, view)
    return next_id, next_id or _last(run, view)


def _next(run: Run, view: GraphView) -> str:
    """Return the box of the next operation, or a frame.

    At the end of a body, it is the header that decides on another iteration, or the branch's
    output.
    """
    cursor = run.cursor
    if cursor.kind == "finished":
        return ""
    static = view.place_of(cursor.address)
    if cursor.kind == "end":
        static, _, body = static.rpartition("/")
        output_box = view.node_of.get(f"{static}:0")
        if body != "body" and output_box is not None:
            return output_box.id
    frame = view.frame_of.get(static)
    box = view.node_of.get(static) if frame is not None else view.showing(static)
    return box.id if box is not None else frame or ""


def _last(run: Run, view: GraphView) -> str:
    """Return the frame or box of the operation that ran last."""
    static = view.place_of(run.cursor.previous or "")
    box = view.showing(static)
    return view.frame_of.get(static) or (box.id if box is not None else "")
