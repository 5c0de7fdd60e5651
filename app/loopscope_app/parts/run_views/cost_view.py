"""The cost of a run without measuring: parameters, MACs and bytes, in total and by operation."""

from __future__ import annotations

from streamlit.delta_generator import DeltaGenerator

from loopscope_app.actions import selection
from loopscope_app.describe.cost_table import TITLES, CostTable, cost_table
from loopscope_app.describe.node_costs import MOST_NODES
from loopscope_app.parts.widgets import cost_colours, markup, row_table, view_room
from loopscope_app.state.user_session import UserSession

KEY = "cost_rows"
MOST_ROWS = 200


def show(session: UserSession, bar: DeltaGenerator) -> None:
    """Show the total as a sentence. ``bar`` is the container for the choice of colours."""
    view_room.leave(None)
    table = _table(session)
    if table is None:
        markup.show(f"Costs are computed for models of at most {MOST_NODES:,} operations.", "quiet")
        return
    markup.show(markup.prose(table.sentence, 2000), "headline")
    debugger = session.run.debugger
    if debugger is not None:
        with bar:
            markup.show("Colour by", "quiet nowrap")
            cost_colours.show(session, debugger, "collapsed")


def show_table(session: UserSession) -> None:
    """Show the costliest operations; a click shows one on the canvas."""
    table = _table(session)
    if table is None:
        return
    rows = table.rows[:MOST_ROWS]
    addresses = [row.address for row in rows]
    selected = session.canvas.selected
    row_table.show(
        TITLES,
        [row.cells for row in rows],
        key=KEY,
        now=addresses.index(selected) if selected in addresses else None,
        on_pick=lambda number: selection.reveal_place(addresses[number]),
    )
    if len(table.rows) > MOST_ROWS:
        markup.show(
            f"{len(table.rows) - MOST_ROWS:,} more operations: loopscope.costs lists all.", "quiet"
        )


def _table(session: UserSession) -> CostTable | None:
    debugger = session.run.debugger
    return cost_table(debugger, session.model.inputs) if debugger is not None else None
