"""Position of the run's cursor on a picture: the box or frame that runs next, and the one in
focus.
"""

from __future__ import annotations

from loopscope.debug.run import Run
from loopscope.view.graph import GraphView


def cursor_boxes(run: Run, view: GraphView) -> tuple[str, str]:
    """Return the ids of the next box or frame (empty at the end of the run) and of the one in
    focus.

    The one in focus is the next one, or at the end of the run the last one.
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
        handed_out = view.node_of.get(f"{static}:0")
        if body != "body" and handed_out is not None:
            return handed_out.id
    frame = view.frame_of.get(static)
    box = view.node_of.get(static) if frame is not None else view.showing(static)
    return box.id if box is not None else frame or ""


def _last(run: Run, view: GraphView) -> str:
    """Return the frame or box of the operation that ran last."""
    static = view.place_of(run.cursor.previous or "")
    box = view.showing(static)
    return view.frame_of.get(static) or (box.id if box is not None else "")
