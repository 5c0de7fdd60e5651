"""The samples as cards: a picture, a title, a sentence; a click anywhere on a card opens it."""

from __future__ import annotations

import base64
from functools import lru_cache
from pathlib import Path

import streamlit as st

from app.actions import models
from app.parts.widgets import markup
from sample_models import Sample, samples

PER_ROW = 4


def show() -> None:
    everything = samples()
    markup.show(markup.section("Samples"))
    for first in range(0, len(everything), PER_ROW):
        columns = st.columns(PER_ROW, gap="small")
        for column, one in zip(columns, everything[first : first + PER_ROW], strict=False):
            with column:
                _card(one)


def _card(one: Sample) -> None:
    with st.container(border=True, key=f"card_{one.name}", height="stretch"):
        chips = markup.chip(one.origin.partition(",")[0])
        st.html(
            _picture(one.picture("dark" if st.context.theme.type == "dark" else "light"))
            + f'<div class="ls card"><b>{markup.text(one.title)}</b><p class="quiet">{markup.text(one.card, 300)}</p>{chips}</div>'
        )
        st.button(f"Open {one.title}", key=f"open_{one.name}", on_click=models.open_sample, args=(one.name,))


def _picture(path: Path | None) -> str:
    if path is None:
        return '<div class="picture empty">&#8635;</div>'
    return f'<div class="picture"><img alt="" src="data:image/png;base64,{_encoded(path, path.stat().st_mtime_ns)}"></div>'


@lru_cache(maxsize=128)
def _encoded(path: Path, age: int) -> str:
    return base64.b64encode(path.read_bytes()).decode()
