"""The dock of the Debug view: verdict and outputs on top, and the chosen tab below."""

from __future__ import annotations

import streamlit as st

from loopscope.ir import IF, Model, is_trace
from loopscope_app.describe.node_index import places
from loopscope_app.parts.dock import (
    code_tab,
    decision_chain,
    drawer,
    iterations_tab,
    printed_lines,
    setup_tab,
    verdict_lines,
)
from loopscope_app.parts.inspector import node_page
from loopscope_app.parts.widgets import tabs
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
        tab = tabs.show(DOCK, "Dock", offered, "stretch")
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
    verdict_lines.show(session, decided)
    opened = session.model.opened
    if CHAIN.shown() == SHOWN and not (opened and is_trace(opened.model)):
        decision_chain.show(session, decided)
    printed_lines.show(session)


def _usual(model: Model) -> str:
    """Return the tab that fits a model: no iterations without a loop."""
    kinds = {place.node.type for place in places(model).values() if place.node.bodies}
    return "Iterations" if kinds - {IF} else "Node"
