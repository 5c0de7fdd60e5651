"""Watch of the launched model: a changed file is opened again at the same moment and view."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import open_link
from loopscope_app.links.codec import Link
from loopscope_app.links.current_link import current_link
from loopscope_app.state import watched
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.user_session import UserSession, current

EVERY = 0.7
"""Seconds between two looks at the file."""


def follow(session: UserSession) -> None:
    """Open the file again if it changed.

    The screen is not drawn yet, so that values of its widgets may change.
    """
    link = _changed(session)
    if link is not None:
        open_link.reload(session, link)


@st.fragment(run_every=EVERY)
def show() -> None:
    """Draw the whole page again when the file has changed."""
    if _changed(current()) is not None:
        st.rerun()


def _changed(session: UserSession) -> Link | None:
    """Return the link to the shown moment if the file changed. A long run ends first."""
    opened = session.model.opened
    if opened is None or opened.link != LAUNCH.link or not watched.has_changed(session):
        return None
    return current_link(session)
