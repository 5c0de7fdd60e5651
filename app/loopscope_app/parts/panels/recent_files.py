"""Models and runs of this computer that were opened last. A click opens a file again."""

from __future__ import annotations

import time
from pathlib import Path

import streamlit as st

from loopscope_app.actions import models
from loopscope_app.parts.widgets import chain, markup
from loopscope_app.state import recent
from loopscope_app.state.launch import paths_allowed

KEY = "recent"
SHOWN = 5


def show() -> None:
    """Show the list, unless this is a server for others or no file was opened."""
    files = recent.files()[:SHOWN] if paths_allowed(st.get_option("server.address")) else ()
    if not files:
        return
    with st.container(key="recent_head", horizontal=True, vertical_alignment="center"):
        markup.show(markup.section("Recent"))
        st.button("Clear list", key="recent_forget", type="tertiary", on_click=models.forget_recent)
    chain.show(
        [_line(file) for file in files],
        key=KEY,
        on_pick=lambda number: models.open_recent(files[number].path),
    )


def _line(file: recent.Recent) -> chain.ChainLine:
    path = Path(file.path)
    name = (
        f"{path.parent.name}/{path.name}" if path.stem in ("model", "openvino_model") else path.name
    )
    return chain.ChainLine(
        name,
        "run" if file.is_run else "model",
        str(path.parent),
        ago(time.time() - file.when),
        kind="file",
        hint=file.path,
    )


def ago(seconds: float) -> str:
    """Return an age in seconds as words.

    >>> ago(5), ago(80), ago(7200), ago(200_000)
    ('just now', '1 minute ago', '2 hours ago', '2 days ago')
    """
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if (count := int(seconds // size)) > 0:
            return f"{count:,} {word}{'s' if count > 1 else ''} ago"
    return "just now"
