"""Canvases of Compare: the run at the shown difference, and the structure of two models."""

from __future__ import annotations

from functools import partial

import streamlit as st

from loopscope.comparison import STATUSES, StructureDiff
from loopscope.errors import elided
from loopscope.ir import decode
from loopscope.view import GraphView, Marks, NodeData, graph_view, overlay_at
from loopscope_app import canvas
from loopscope_app.actions import selection, side_by_side
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, current

KEY = "compare_graph"
HEIGHT = 420


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
            on_acts=partial(_on_acts, view),
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


def _on_acts(view: GraphView, acts: tuple[canvas.Act, ...]) -> None:
    """Apply the acts that were not applied before."""
    session = current()
    for act in acts:
        if selection.is_new_act(session, act.number) and act.event is not None:
            side_by_side.on_canvas(act.event)


STRUCTURE_KEY = "structure_changes"
TITLES = ("operation", "type", "change")
MOST_ROWS = 200
_LONGEST = 40


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
            on_acts=_on_structure_acts,
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


def _on_structure_acts(acts: tuple[canvas.Act, ...]) -> None:
    """Apply the acts that were not applied before."""
    session = current()
    for act in acts:
        if selection.is_new_act(session, act.number) and act.event is not None:
            side_by_side.on_structure_canvas(act.event)
