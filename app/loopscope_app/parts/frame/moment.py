"""The part of a screen that changes with a step: a fragment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from loopscope_app.actions import moves
from loopscope_app.state.user_session import UserSession, current, keep


def show(
    session: UserSession, draw: Callable[[UserSession], None], kept: Sequence[str] = ()
) -> None:
    """``draw`` again with every step, and nothing else of the page. ``kept``: keys of widgets
    that remember across a long run.
    """
    if session.run.running is not None or session.canvas.panels_gone:
        keep(*kept)  # once more when they are back: the browser has forgotten them too
    moves.note_panels(session)
    st.fragment(_moment)(draw, _around(session))


def _around(session: UserSession) -> tuple[object, ...]:
    """The state that the rest of the page depends on: the inputs, the model, and whether a long
    run shows its progress.
    """
    return session.model.input_set, session.model.opened, session.run.running is not None


def _moment(draw: Callable[[UserSession], None], around: tuple[object, ...]) -> None:
    session = current()
    if _around(session) != around:
        st.rerun()  # the whole page
    draw(session)
