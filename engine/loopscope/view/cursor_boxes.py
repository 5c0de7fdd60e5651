"""Where the cursor of a run is on a picture: the box or frame of what runs next, and the one
that is kept in sight.
"""

from __future__ import annotations

from loopscope.debug.run import Run
from loopscope.view.graph import GraphView


def cursor_boxes(run: Run, view: GraphView) -> tuple[str, str]:
    """Ids of what runs next, empty at the end of the run, and of what to keep in sight: that,
    and in the end what ran last.
    """
    coming = _next(run, view)
    return coming, coming or _last(run, view)


def _next(run: Run, view: GraphView) -> str:
    """The box of what runs next, or the frame: at the end of a body what decides upon another
    one, or hands out the branch's values.
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
    shown = view.node_of.get(static) if frame is not None else view.showing(static)
    return shown.id if shown is not None else frame or ""


def _last(run: Run, view: GraphView) -> str:
    """The frame of what ran last, or its box."""
    static = view.place_of(run.cursor.previous or "")
    shown = view.showing(static)
    return view.frame_of.get(static) or (shown.id if shown is not None else "")
