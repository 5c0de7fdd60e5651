"""The fragment of a screen that changes with each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from loopscope_app.actions import moves
from loopscope_app.state.user_session import UserSession, current, keep


def show(
    session: UserSession, draw: Callable[[UserSession], None], widget_keys: Sequence[str] = ()
) -> None:
    """Draw ``draw`` again with every step, and nothing else of the page.

    ``kept`` lists keys of widgets that keep their values during a long run.
    """
    if session.run.running is not None or session.canvas.panels_gone:
        keep(*widget_keys)  # once more when they are back: the browser has forgotten them too
    moves.note_panels(session)
    st.fragment(_moment)(draw, _around(session))


def _around(session: UserSession) -> tuple[object, ...]:
    """Return the state that the rest of the page depends on: inputs, model, and whether a long run
    is shown.
    """
    return session.model.input_set, session.model.opened, session.run.running is not None


def _moment(draw: Callable[[UserSession], None], around: tuple[object, ...]) -> None:
    session = current()
    if _around(session) != around:
        st.rerun()  # the whole page
    draw(session)
