"""What the engine refused or has to say, as a sentence, once."""

from __future__ import annotations

import streamlit as st

from app.session import Session
from engine.view.escape import neutral

_LONGEST = 600


def show(session: Session) -> None:
    message = session.message
    if message is None:
        return
    lines = "\n\n".join(_plain(neutral(line, _LONGEST)) for line in message.text.splitlines()[:6])
    (st.error if message.kind == "error" else st.info)(lines, icon=":material/error:" if message.kind == "error" else ":material/info:")


def _plain(line: str) -> str:
    """Text without Markdown's meaning, because a model's names may be in it.

    >>> _plain("[a](b) *c*")
    '\\\\[a\\\\](b) \\\\*c\\\\*'
    """
    return "".join(f"\\{mark}" if mark in "\\`*_{}[]<>#$~:|!" else mark for mark in line)
