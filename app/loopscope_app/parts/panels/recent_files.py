"""The models and runs of this machine that were opened last: a click opens one again."""

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
    """Nothing on a server for others, and nothing before the first file."""
    found = recent.files()[:SHOWN] if paths_allowed(st.get_option("server.address")) else ()
    if not found:
        return
    with st.container(key="recent_head", horizontal=True, vertical_alignment="center"):
        markup.show(markup.section("Recent"))
        st.button(
            "Forget these", key="recent_forget", type="tertiary", on_click=models.forget_recent
        )
    chain.show(
        [_line(one) for one in found],
        key=KEY,
        on_pick=lambda number: models.open_recent(found[number].path),
    )


def _line(one: recent.Recent) -> chain.ChainLine:
    path = Path(one.path)
    name = (
        f"{path.parent.name}/{path.name}" if path.stem in ("model", "openvino_model") else path.name
    )
    return chain.ChainLine(
        name,
        "run" if one.is_run else "model",
        str(path.parent),
        ago(time.time() - one.when),
        kind="file",
        hint=one.path,
    )


def ago(seconds: float) -> str:
    """How long ago, in words.

    >>> ago(5), ago(80), ago(7200), ago(200_000)
    ('just now', '1 minute ago', '2 hours ago', '2 days ago')
    """
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if (count := int(seconds // size)) > 0:
            return f"{count:,} {word}{'s' if count > 1 else ''} ago"
    return "just now"
