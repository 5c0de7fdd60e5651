"""The structure of two models in Compare: a table of changes, and both models on one canvas."""

from __future__ import annotations

import streamlit as st

from loopscope.comparison import STATUSES, StructureDiff
from loopscope.errors import elided
from loopscope.ir import decode
from loopscope.view import Marks, NodeData, graph_view, overlay_at
from loopscope_app import canvas
from loopscope_app.actions import selection, structure_canvas
from loopscope_app.parts.run_views import difference_canvas
from loopscope_app.parts.widgets import markup, row_table
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, current

KEY = "structure_changes"
TITLES = ("operation", "type", "change")
MOST_ROWS = 200
_LONGEST = 40


def show_changes(session: UserSession, diff: StructureDiff) -> None:
    """Show the summary and the changes; a click shows one on the canvas."""
    shown = structure_canvas.shown_structure(session, diff)
    markup.show(markup.sentence(diff.sentence))
    changes = diff.changes[:MOST_ROWS]
    addresses = [change.address for change in changes]
    if changes:
        row_table.show(
            TITLES,
            [
                (
                    elided(_name(change.address), _LONGEST),
                    change.type,
                    change.words or change.status,
                )
                for change in changes
            ],
            key=KEY,
            now=addresses.index(shown.address) if shown.address in addresses else None,
            on_pick=lambda number: structure_canvas.show_change(addresses[number]),
        )
    if len(diff.changes) > MOST_ROWS:
        markup.show(f"{len(diff.changes) - MOST_ROWS:,} more changes are on the canvas.", "quiet")


def show_canvas(session: UserSession, opened: Opened, diff: StructureDiff) -> None:
    """Draw both models as one graph, coloured by what is added, removed and changed."""
    shown = structure_canvas.shown_structure(session, diff)
    view = graph_view(diff.model, shown.folding)
    marks = Marks(selected=shown.address, node_data=_colours(diff))
    with st.container(key="compare_canvas"):
        canvas.show(
            view,
            overlay_at(None, view, marks),
            key=difference_canvas.KEY,
            height=difference_canvas.HEIGHT,
            on_acts=_on_acts,
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


def _on_acts(acts: tuple[canvas.Act, ...]) -> None:
    """Apply the acts that were not applied before."""
    session = current()
    for act in acts:
        if selection.is_new_act(session, act.number) and act.event is not None:
            structure_canvas.on_canvas(act.event)
