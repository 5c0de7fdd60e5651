"""What the engine refused or has to say, as a sentence, once."""

from __future__ import annotations

import streamlit as st

from app.actions.memory_budget import GAVE_UP
from app.parts.widgets import markup
from app.state.user_session import Message, Session

_LONGEST = 600


def show(session: Session) -> None:
    if session.run.gave_up:
        session.run.gave_up, session.message = False, Message(GAVE_UP, "info")
    message = session.message
    if message is None:
        return
    lines = "\n\n".join(markup.plain(line, _LONGEST) for line in message.text.splitlines()[:6])
    (st.error if message.kind == "error" else st.info)(lines, icon=":material/error:" if message.kind == "error" else ":material/info:")
