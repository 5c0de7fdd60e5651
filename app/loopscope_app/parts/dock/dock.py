"""The dock of the Debug view: verdict and outputs, printed lines, and the chosen tab below."""

from __future__ import annotations

import streamlit as st

from loopscope.ir import IF, Model, is_trace, readable
from loopscope_app.describe.node_index import places
from loopscope_app.parts.dock import code_tab, drawer, iterations_tab, setup_tab, verdict
from loopscope_app.parts.inspector import node_page
from loopscope_app.parts.widgets import choices, markup
from loopscope_app.state.focus import decided_in_focus, loop_in_focus
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import CHAIN, DOCK, SHOWN


def show(session: UserSession) -> None:
    """Draw the dock, or the open drawer in its place."""
    opened = session.model.opened
    if opened is None or drawer.show(session, opened):
        return
    show_verdict(session)
    offered = tuple(tab for tab in DOCK.options if tab != "Code" or not is_trace(opened.model))
    DOCK.begin(_usual(opened.model), offered)
    with st.container(key="dock_tabs"):
        tab = choices.show_tabs(DOCK, "Dock", offered, "stretch")
    with st.container(key="dock_content"):
        match tab:
            case "Node":
                node_page.show(session)
            case "Code":
                code_tab.show(session)
            case "Setup":
                setup_tab.show(session)
            case _:
                iterations_tab.show(session, loop_in_focus(session))


def show_verdict(session: UserSession) -> None:
    """Draw the verdict, its chain if it is open, the outputs, and printed lines."""
    decided = decided_in_focus(session, loop_in_focus(session))
    verdict.show_verdict(session, decided)
    opened = session.model.opened
    if CHAIN.shown() == SHOWN and not (opened and is_trace(opened.model)):
        verdict.show_chain(session, decided)
    _show_printed_lines(session)


def _usual(model: Model) -> str:
    """Return the tab that fits a model: no iterations without a loop."""
    kinds = {place.node.type for place in places(model).values() if place.node.bodies}
    return "Iterations" if kinds - {IF} else "Node"


MOST_LINES = 100


def _show_printed_lines(session: UserSession) -> None:
    """Show the last lines, the newest at the end. Show nothing for a model without Print."""
    debugger = session.run.debugger
    if debugger is None or not debugger.prints:
        return
    printed = debugger.printed(MOST_LINES)
    lines = [
        f'<span title="{markup.text(readable(line.address))}">{markup.text(line.text, 400)}</span>'
        for line in printed
    ]
    if not lines:
        lines = ['<span class="quiet">Nothing has been printed yet.</span>']
    # The outer box is filled from its end, so that the newest line is in view however many there
    # are.
    markup.show(
        '<div class="printed" role="log" aria-label="Printed" '
        f'tabindex="0"><div>{"<br>".join(lines)}</div></div>'
    )
