"""The part of a screen that changes with a step: a fragment, or the progress of a long run in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from app.parts import progress
from app.session import Session, current, keep


def show(session: Session, draw: Callable[[Session], None], kept: Sequence[str] = ()) -> None:
    """``draw`` again with every step, and nothing else of the page. ``kept``: keys of widgets that remember across a long run."""
    if session.running is None:
        st.fragment(_moment)(draw, _around(session))
    else:
        keep(*kept)
        progress.show()


def _around(session: Session) -> tuple[object, ...]:
    """What the page outside the moment shows: the inputs, the model."""
    return session.input_set, session.opened


def _moment(draw: Callable[[Session], None], around: tuple[object, ...]) -> None:
    session = current()
    if session.running is not None or _around(session) != around:
        st.rerun()  # the whole page
    draw(session)
