"""The graph canvas: shows a view of a model, restyles it at every step, and says what was clicked.

    # At the top of the page, once: the layout library.
    prepare()
    # At the place of the canvas. handle(acts) runs before the script, so that one run shows
    # their effect.
    show(view, overlay, key="canvas", height=640, on_acts=handle, acted=number_of_last_act)

``view`` comes from ``loopscope.view.build.graph_view``, ``overlay`` from
``loopscope.view.overlay.overlay_at`` for the same view: keep the view object as long as model,
folding and root stay, since an equal view made anew is laid out once but described again. Call it
in a place that stays: inside ``st.container(key=...)`` or below slots that are always there, else
the browser mounts it anew. While there is a run the canvas takes the keys and buttons of the
transport bar: it paints steps at once and tells ``CanvasRun.on_moves`` others.
"""

from __future__ import annotations

from loopscope_app.canvas.component import CanvasRun, prepare, show
from loopscope_app.canvas_event import Act, CanvasEvent, Move, StepReport

__all__ = ["Act", "CanvasEvent", "CanvasRun", "Move", "StepReport", "prepare", "show"]
