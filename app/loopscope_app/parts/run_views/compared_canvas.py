"""Canvases of Compare: the run at the shown difference, and the structure of two models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

import loopscope
from loopscope.comparison import STATUSES, StructureDiff
from loopscope.errors import EngineError, elided
from loopscope.ir import decode, iteration_words
from loopscope.view import Folding, Marks, NodeData, graph_view, overlay_at
from loopscope_app import canvas
from loopscope_app.actions import selection, side_by_side
from loopscope_app.describe.both_runs import ABSENT, Drifted, counterpart
from loopscope_app.describe.loop_execution import place_in_loop
from loopscope_app.describe.node_index import moment_of
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, current

KEY, KEY_THERE = "compare_graph", "compare_graph_there"
HEIGHT = 420
STRUCTURE_KEY = "structure_changes"
TITLES = ("operation", "type", "change")
MOST_ROWS = 200
_LONGEST = 40


def show(session: UserSession, opened: Opened) -> None:
    """Draw the run here at the shown difference, with a button that opens it in Debug."""
    run, difference = session.run.compared_run, session.run.difference
    if run is None or difference is None:
        return
    run.seek(min(difference.step, run.steps))
    view = graph_view(opened.model, difference.folding)
    overlay = overlay_at(run, view, Marks(selected=difference.address))
    with st.container(key="compare_canvas"):
        canvas.show(
            view,
            overlay,
            key=KEY,
            height=HEIGHT,
            on_acts=partial(_apply, side_by_side.on_canvas),
            acted=session.canvas.acted,
            focus=difference.address,
            subject=f"difference in {opened.link or opened.title}",
            file=opened.file_name(),
        )
        st.button(
            "Open in Debug",
            key="compare_open",
            on_click=side_by_side.open_in_debug,
            help="Go to this moment in the run that you step through",
        )


def show_both(session: UserSession, opened: Opened, drifted: Drifted, title: str) -> None:
    """Draw the run here and the other run at the same moment, with the same selection."""
    run, other, shown = session.run.compared_run, drifted.other, session.run.difference
    if run is None or other is None or shown is None:
        return
    run.seek(min(shown.step, run.steps))
    beside = counterpart(drifted, shown.address, shown.step)
    selected, selected_there, step = shown.address, beside.address, beside.step
    if shown.only_there:
        selected, selected_there = "", shown.only_there
        step = _step_of(other, shown.only_there, step)
    other.seek(min(step, other.steps))
    left, right = st.columns(2, gap="small")
    with left:
        _title(
            "Here", "" if title == "here" else title, selected, ABSENT if shown.only_there else ""
        )
        _side(
            session, opened, KEY, run, opened.model, shown.folding, selected, side_by_side.on_canvas
        )
    with right:
        _title("There", drifted.title, selected_there, "" if shown.only_there else beside.note)
        folding = shown.beside or shown.folding
        act = side_by_side.on_canvas_there
        _side(session, opened, KEY_THERE, other, other.model, folding, selected_there, act)


def _step_of(run: loopscope.Debugger, address: str, otherwise: int) -> int:
    """Return the step of a place; ``otherwise`` if it did not run."""
    try:
        return moment_of(run, address)
    except EngineError:
        return otherwise


def _title(side: str, title: str, address: str, note: str) -> None:
    """Show which run a canvas draws and at which iteration."""
    place = place_in_loop(address) if address else None
    words = [title, iteration_words(place.iteration) if place else "", note]
    text = markup.text(" · ".join(word for word in words if word), 120)
    markup.show(f"<b>{side}</b>&ensp;{text}", "quiet compare_side")


def _side(
    session: UserSession,
    opened: Opened,
    key: str,
    run: loopscope.Debugger,
    model: loopscope.Model,
    folding: Folding,
    selected: str,
    on_event: Callable[[canvas.CanvasEvent], None],
) -> None:
    view = graph_view(model, folding)
    with st.container(key="compare_canvas" if key == KEY else "compare_canvas_there"):
        canvas.show(
            view,
            overlay_at(run, view, Marks(selected=selected)),
            key=key,
            height=HEIGHT,
            on_acts=partial(_apply, on_event),
            acted=session.canvas.acted,
            focus=selected,
            subject=f"{key} of {opened.link or opened.title}",
            file=opened.file_name(),
        )


def show_changes(session: UserSession, diff: StructureDiff) -> None:
    """Show the summary and the changes; a click shows one on the canvas."""
    shown = side_by_side.shown_structure(session, diff)
    markup.show(markup.sentence(diff.sentence))
    changes = diff.changes[:MOST_ROWS]
    addresses = [change.address for change in changes]
    if changes:
        place_lists.show_table(
            TITLES,
            [
                (
                    elided(_name(change.address), _LONGEST),
                    change.type,
                    change.words or change.status,
                )
                for change in changes
            ],
            key=STRUCTURE_KEY,
            now=addresses.index(shown.address) if shown.address in addresses else None,
            on_pick=lambda number: side_by_side.show_change(addresses[number]),
        )
    if len(diff.changes) > MOST_ROWS:
        markup.show(f"{len(diff.changes) - MOST_ROWS:,} more changes are on the canvas.", "quiet")


def show_canvas(session: UserSession, opened: Opened, diff: StructureDiff) -> None:
    """Draw both models as one graph, coloured by what is added, removed and changed."""
    shown = side_by_side.shown_structure(session, diff)
    view = graph_view(diff.model, shown.folding)
    marks = Marks(selected=shown.address, node_data=_colours(diff))
    with st.container(key="compare_canvas"):
        canvas.show(
            view,
            overlay_at(None, view, marks),
            key=KEY,
            height=HEIGHT,
            on_acts=partial(_apply, side_by_side.on_structure_canvas),
            acted=session.canvas.acted,
            focus=shown.address,
            subject=f"structure of {opened.link or opened.title} and another model",
            file=f"{opened.file_name()}_structure",
        )


def _colours(diff: StructureDiff) -> NodeData:
    statuses = {change.address: change.status for change in diff.changes}
    return NodeData(
        "Structure", statuses, {}, STATUSES, 0.0, 0.0, (), palette="change", mixed="changed"
    )


def _name(address: str) -> str:
    return decode(address.rpartition("/")[2])


def _apply(on_event: Callable[[canvas.CanvasEvent], None], acts: tuple[canvas.Act, ...]) -> None:
    """Apply the acts that were not applied before."""
    session = current()
    for act in acts:
        if selection.is_new_act(session, act.number) and act.event is not None:
            on_event(act.event)
