"""The graph canvas at the cursor, with marks for values set by hand, breakpoints and endings of
loops.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from threading import Lock
from weakref import WeakKeyDictionary

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import ProvenanceStep, verdict
from loopscope.ir import Address, Model, readable
from loopscope.view import Folding, GraphView, Marks, Overlay, graph_view, overlay_at
from loopscope_app import canvas
from loopscope_app.actions import breakpoint_actions, canvas_sync, derived_models, selection
from loopscope_app.describe.canvas_boxes import loop_endings
from loopscope_app.parts.inspector import origin
from loopscope_app.state import focus
from loopscope_app.state.focus import decided_in_focus, loop_in_focus
from loopscope_app.state.user_session import UserSession, current
from loopscope_app.state.view_choices import DOCK, HIDDEN, ORIGIN, SHOWN

KEY = "canvas_graph"
HEIGHT = 560


_VIEWS_KEPT = 32
_Look = tuple[Folding, str, bool]
"""Folding, root, and whether operators have handles."""
_views: WeakKeyDictionary[Model, OrderedDict[_Look, GraphView]] = WeakKeyDictionary()
"""The latest views of each open model."""
_views_lock = Lock()


def _view(model: Model, folding: Folding, root: str, handles: bool) -> GraphView:
    """Return the view of a model. Sessions that show the same model in the same way share it."""
    look = folding, root, handles
    with _views_lock:
        views = _views.setdefault(model, OrderedDict())
        if look in views:
            views.move_to_end(look)
            return views[look]
    view = graph_view(model, folding, root, handles=handles)
    with _views_lock:
        views[look] = view
        if len(views) > _VIEWS_KEPT:
            views.popitem(last=False)
    return view


def show(session: UserSession) -> None:
    if session.model.opened is None:
        return
    selection.follow_cursor(session)
    # To open an operator would end the lesson.
    handles = not session.learning.lesson
    view = _view(session.model.opened.model, session.canvas.folding, session.canvas.root, handles)
    debugger = session.run.at_rest
    steps = _traced(session, debugger)
    overlay = _overlay(session, debugger, view, steps)
    canvas.show(
        view,
        overlay,
        key=KEY,
        height=HEIGHT,
        on_acts=partial(_on_acts, view),
        acted=session.canvas.acted,
        traced=readable(steps[0].address) if steps else "",
        focus=session.canvas.selected or _deciding(session, debugger),
        subject=_subject(session),
        file=session.model.opened.file_name(session.canvas.root),
        run=canvas_sync.canvas_run(session, view),
    )


def _deciding(session: UserSession, debugger: loopscope.Debugger | None) -> str:
    """Return the address of the operation that decided a finished run, or an empty text.

    The canvas brings it into view.
    """
    if debugger is None or debugger.cursor.kind != "finished":
        return ""
    decided = decided_in_focus(session, loop_in_focus(session))
    try:
        proof = verdict(debugger, decided).proof if decided else ()
    except EngineError:
        return ""
    return Address.parse(proof[0].address).static if proof else ""


def _overlay(
    session: UserSession,
    debugger: loopscope.Debugger | None,
    view: GraphView,
    steps: tuple[ProvenanceStep, ...],
) -> Overlay:
    """Return the overlay of the moment; during a long run, that of the moment at which the run
    began.
    """
    if (
        session.run.running is not None
        and session.canvas.pictured is not None
        and session.canvas.pictured[0] is view
    ):
        return session.canvas.pictured[1]
    breakpoints = debugger.breakpoints.items() if debugger else ()
    overlay = overlay_at(
        debugger,
        view,
        Marks(
            selected=session.canvas.selected,
            breakpoints=[
                breakpoint.pattern
                for breakpoint in breakpoints
                if breakpoint.pattern and breakpoint.on
            ],
            switched_off=[
                breakpoint.pattern
                for breakpoint in breakpoints
                if breakpoint.pattern and not breakpoint.on
            ],
            verdicts=loop_endings(debugger, view),
            runtime_badges=session.model.badges,
            origins=steps,
            times=_times(session),
            node_data=session.model.node_data,
        ),
        previews=session.canvas.previews,
    )
    if session.run.running is None:
        canvas_sync.store_picture(session, view, overlay)
    return overlay


def _times(session: UserSession) -> Mapping[str, float]:
    """Return the run time per operation if it was measured, else an empty mapping."""
    clock = session.run.clock
    return clock.shares if clock is not None and not session.learning.lesson else {}


def _traced(
    session: UserSession, debugger: loopscope.Debugger | None
) -> tuple[ProvenanceStep, ...]:
    """Return the provenance of the value whose origin the dock shows, else an empty tuple."""
    is_open = ORIGIN.shown() == SHOWN and DOCK.shown() == "Node" and not session.learning.lesson
    address = focus.shown_value(session) if is_open else ""
    try:
        return origin.steps_to(debugger, address) if debugger is not None and address else ()
    except EngineError:
        return ()


def _on_acts(view: GraphView, acts: tuple[canvas.Act, ...]) -> None:
    """Apply the acts that were not applied before."""
    session = current()
    for act in acts:
        if selection.is_new_act(session, act.number) and act.event is not None:
            _on_event(view, act.event)


def _on_event(view: GraphView, event: canvas.CanvasEvent) -> None:
    if event.kind == "untrace":
        ORIGIN.show(HIDDEN)
    elif event.kind == "breakpoint":
        breakpoint_actions.switch_at(view, event.address)
    elif event.kind == "fold" and derived_models.has_handle(view, event.address):
        derived_models.switch_operator(event.address)
    else:
        selection.on_canvas(event)


def _subject(session: UserSession) -> str:
    """Return what the canvas shows. A change of the subject fits the picture to the canvas
    again.
    """
    large = " in large type" if session.learning.lesson and session.learning.large else ""
    opened = session.model.opened
    if opened is None:
        return ""
    backward = f" {opened.backward.words}" if opened.backward else ""
    return f"{opened.link or opened.title}{backward}{large}"
