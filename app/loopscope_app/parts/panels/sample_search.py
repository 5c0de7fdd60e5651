"""The row that filters the samples: a search field, and a menu with three filters."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from loopscope_app.components import component
from loopscope_app.describe.sample_filter import Wanted, lessons_of, patterns, sources
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import keep, place, widget
from loopscope_samples import Sample

WORDS, EMPTIED = "gallery_words", "gallery_emptied"
PATTERN, SOURCE, TEACHES = CHOICES = ("gallery_pattern", "gallery_source", "gallery_teaches")
LONGEST = 80

_search = component("search", "search.js", style="search.css")


def show(heading: str, everything: Sequence[Sample]) -> Wanted:
    """Draw the row with a heading, and return the filter that it holds."""
    keep(*CHOICES)
    with st.container(key="gallery_row", horizontal=True, vertical_alignment="center"):
        markup.show(markup.section(heading))
        emptied = int(widget(EMPTIED) or 0)
        words = read_words(getattr(widget(WORDS), "typed", None), emptied)
        _search(
            key=WORDS,
            data={"words": words, "emptied": emptied},
            on_typed_change=lambda: None,
            height=40,
            width="stretch",
        )
        active = sum(bool(widget(key)) for key in CHOICES)
        title = f"Filter ({active})" if active else "Filter"
        with st.popover(title, icon=":material/filter_list:"):
            pattern = _choice("Control flow", PATTERN, patterns(everything))
            source = _choice("Framework", SOURCE, sources(everything))
            teaches = _choice("Subject", TEACHES, lessons_of(everything))
    return Wanted(words, pattern, source, teaches)


def read_words(data: object, emptied: int) -> str:
    """Return the text that the browser sent since the field was last emptied."""
    match data:
        case {"text": str(text), "emptied": int(number)} if number == emptied:
            return text[:LONGEST]
    return ""


def _choice(title: str, key: str, offered: Sequence[str]) -> str:
    chosen = st.selectbox(title, offered, index=None, key=key, placeholder="Any")
    return chosen or ""


def show_count(count: int, whole: int) -> None:
    """Show the number of matches, and the button that ends the filter."""
    with st.container(key="gallery_found", horizontal=True, vertical_alignment="center"):
        markup.show(
            f"{count} of {whole} samples" if count else "No sample matches this filter.", "quiet"
        )
        st.button("Show all", key="gallery_all", type="tertiary", on_click=_show_all)


def _show_all() -> None:
    for key in CHOICES:
        place(key, None)
    place(EMPTIED, int(widget(EMPTIED) or 0) + 1)
