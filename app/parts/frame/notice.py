"""What the engine refused or has to say, as a sentence, once."""

from __future__ import annotations

import streamlit as st

from app.actions import memory_budget, reopening
from app.parts.widgets import markup
from app.state.user_session import Session

_LONGEST = 20_000


def show(session: Session) -> None:
    memory_budget.tell_who_gave_up(session)
    reopening.tell_difference(session)
    message = session.message
    if message is None:
        return
    lines = "\n\n".join(markup.plain(line, _LONGEST) for line in message.text.splitlines()[:6])
    (st.error if message.kind == "error" else st.info)(lines, icon=":material/error:" if message.kind == "error" else ":material/info:")
