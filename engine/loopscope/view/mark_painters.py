"""Painters of marks: each returns the overlay with one kind of mark added."""

from __future__ import annotations

from dataclasses import replace

from loopscope.debug.run import Run
from loopscope.view.graph import GraphView
from loopscope.view.marked_boxes import breakpoint_boxes, selected_box
from loopscope.view.node_data import node_colours
from loopscope.view.origins import highlight
from loopscope.view.overlay_data import Marks, Overlay
from loopscope.view.runtime_marks import headers_with_badges, time_heat
from loopscope.view.status import BreakpointState


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
