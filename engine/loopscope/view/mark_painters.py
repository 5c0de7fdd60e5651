"""Painters of marks: each adds one concern to an overlay and returns a new one."""

from __future__ import annotations

from dataclasses import replace

from loopscope.debug.run import Run
from loopscope.view.graph import GraphView
from loopscope.view.marked_boxes import breakpoint_boxes, selected_box
from loopscope.view.node_data import tints
from loopscope.view.origins import lit
from loopscope.view.overlay_data import Marks, Overlay
from loopscope.view.runtime_marks import fated_headers, heats
from loopscope.view.status import BreakpointState


def paint_selection(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Mark the selected box."""
    box = selected_box(run, view, marks.selected) if marks.selected else None
    return replace(overlay, selected=box.id) if box else overlay


def paint_breakpoints(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Mark boxes with breakpoints; an active breakpoint wins over a disabled one."""
    states: dict[str, BreakpointState] = {}
    states |= {node.id: "off" for node in breakpoint_boxes(view, marks.switched_off)}
    states |= {node.id: "on" for node in breakpoint_boxes(view, marks.breakpoints)}
    return replace(overlay, breakpoints=states)


def paint_runtime(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Write what a runtime runs in place of each loop and branch, and colour boxes by its times."""
    headers = overlay.headers | fated_headers(view, overlay.headers, marks.fates)
    return replace(overlay, headers=headers, heats=heats(view, marks.times))


def paint_origins(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Highlight the boxes and wires that a traced value came through."""
    if not marks.origins:
        return overlay
    highlight = lit(view, marks.origins)
    return replace(overlay, origins=highlight.boxes | highlight.lines)


def paint_node_data(overlay: Overlay, run: Run | None, view: GraphView, marks: Marks) -> Overlay:
    """Colour boxes by the data of a file."""
    if marks.node_data is None:
        return overlay
    return replace(overlay, tints=tints(view, run, marks.node_data), scale=marks.node_data.scale)


PAINTERS = (paint_selection, paint_breakpoints, paint_runtime, paint_origins, paint_node_data)
"""One painter per concern; the order does not matter, because each writes fields of its own."""
