"""The samples as cards with a picture, a title and a sentence. A row above filters them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import streamlit as st

from loopscope_app.actions import models
from loopscope_app.components import component
from loopscope_app.describe.sample_filter import Wanted, lessons_of, matching, patterns, sources
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import current, keep, place, widget
from loopscope_samples import Sample, samples

PER_ROW = 4
WORDS, EMPTIED = "gallery_words", "gallery_emptied"
PATTERN, SOURCE, TEACHES = CHOICES = ("gallery_pattern", "gallery_source", "gallery_teaches")
LONGEST = 80

_search = component("search", "search.js", style="search.css")


@st.fragment
def show() -> None:
    """Draw the cards as a fragment, so that typing a letter redraws nothing else."""
    if current().model.opened is not None:
        st.rerun()  # the whole page: a card was clicked
    everything = samples()
    wanted = _row(everything)
    matches = matching(everything, wanted)
    if wanted:
        _count(len(matches), len(everything))
    for first in range(0, len(matches), PER_ROW):
        columns = st.columns(PER_ROW, gap="small")
        for column, sample in zip(columns, matches[first : first + PER_ROW], strict=False):
            with column:
                _card(sample)


def _row(everything: Sequence[Sample]) -> Wanted:
    """Draw the heading, the search field and three filters in one row; return what they ask for."""
    keep(*CHOICES)
    with st.container(key="gallery_row", horizontal=True, vertical_alignment="center"):
        markup.show(markup.section("Samples"))
        emptied = int(widget(EMPTIED) or 0)
        words = read_words(getattr(widget(WORDS), "typed", None), emptied)
        _search(
            key=WORDS,
            data={"words": words, "emptied": emptied},
            on_typed_change=lambda: None,
            height=40,
            width="stretch",
        )
        pattern = _choice("Pattern", PATTERN, patterns(everything))
        source = _choice("Source", SOURCE, sources(everything))
        teaches = _choice("What it teaches", TEACHES, lessons_of(everything))
    return Wanted(words, pattern, source, teaches)


def read_words(data: object, emptied: int) -> str:
    """Return the text that the browser sent since the field was last emptied."""
    match data:
        case {"text": str(text), "emptied": int(number)} if number == emptied:
            return text[:LONGEST]
    return ""


def _choice(title: str, key: str, offered: Sequence[str]) -> str:
    chosen = st.selectbox(
        title,
        offered,
        index=None,
        key=key,
        placeholder=title,
        label_visibility="collapsed",
        width=170,
    )
    return chosen or ""


def _count(count: int, whole: int) -> None:
    with st.container(key="gallery_found", horizontal=True, vertical_alignment="center"):
        markup.show(
            f"{count} of {whole} samples" if count else "No sample has all of this.", "quiet"
        )
        st.button("Show all", key="gallery_all", type="tertiary", on_click=_show_all)


def _show_all() -> None:
    for key in CHOICES:
        place(key, None)
    place(EMPTIED, int(widget(EMPTIED) or 0) + 1)


def _card(sample: Sample) -> None:
    with st.container(border=True, key=f"card_{sample.name}", height="stretch"):
        st.html(
            _picture(sample.picture("dark" if st.context.theme.type == "dark" else "light"))
            + f'<div class="ls card"><b>{markup.text(sample.title)}</b>'
            + f'<p class="quiet">{markup.text(sample.card, 300)}</p>'
            + f"{markup.chip(sample.source)}</div>"
        )
        st.button(
            f"Open {sample.title}",
            key=f"open_{sample.name}",
            on_click=models.open_sample,
            args=(sample.name,),
        )


def _picture(path: Path | None) -> str:
    if path is None:
        return '<div class="picture empty">&#8635;</div>'
    data = f"data:image/png;base64,{_encoded(path, path.stat().st_mtime_ns)}"
    return f'<div class="picture"><img alt="" src="{data}"></div>'


@lru_cache(maxsize=128)
def _encoded(path: Path, age: int) -> str:
    return base64.b64encode(path.read_bytes()).decode()
