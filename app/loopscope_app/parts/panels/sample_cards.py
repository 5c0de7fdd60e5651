"""The samples as cards: three large ones to start with, then a section per subject."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import streamlit as st

from loopscope.errors import counted
from loopscope_app.actions import models
from loopscope_app.describe.sample_filter import matching
from loopscope_app.parts.panels import course_card, sample_search
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession
from loopscope_samples import SECTIONS, Sample, SampleTrace, Size, sample_traces, samples

PER_ROW = 4
START = SECTIONS[0]


@st.fragment
def show(session: UserSession) -> None:
    """Draw the cards as a fragment, so that typing a letter redraws nothing else."""
    if session.model.opened is not None:
        st.rerun()  # the whole page: a card was clicked
    everything = samples()
    wanted = sample_search.show(START, everything)
    if wanted:
        matches = matching(everything, wanted)
        sample_search.show_count(len(matches), len(everything))
        _cards(matches)
        return
    with st.container(key="start_cards"):
        _cards([sample for sample in everything if sample.section == START], per_row=3)
    course_card.show(session)
    for section in SECTIONS[1:]:
        markup.show(markup.section(section), "gallery-section")
        _cards([sample for sample in everything if sample.section == section])
    markup.show(markup.section("Recorded programs"), "gallery-section")
    _cards(sample_traces())


def _cards(chosen: Sequence[Sample | SampleTrace], per_row: int = PER_ROW) -> None:
    for first in range(0, len(chosen), per_row):
        columns = st.columns(per_row, gap="small")
        for column, sample in zip(columns, chosen[first : first + per_row], strict=False):
            with column:
                _card(sample)


def _card(sample: Sample | SampleTrace) -> None:
    if isinstance(sample, SampleTrace):
        size, source = sample.size, "Python"
    else:
        size, source = size_words(sample.counts), sample.source
    picture = sample.picture("dark" if st.context.theme.type == "dark" else "light")
    with st.container(border=True, key=f"card_{sample.name}", height="stretch"):
        st.html(
            f'{_picture(picture)}<div class="ls card"><b>{markup.text(sample.title)}</b>'
            f'<p class="quiet">{markup.text(sample.card, 300)}</p>'
            f'<div class="quiet counts">{markup.text(size)} · '
            f"{markup.text(source)}</div></div>"
        )
        st.button(
            f"Open {sample.title}",
            key=f"open_{sample.name}",
            on_click=models.open_sample,
            args=(sample.name,),
        )


def size_words(size: Size) -> str:
    """Return the size of a model in words, without what it does not have.

    >>> size_words(Size(operations=12, loops=1, ifs=0)), size_words(Size(1, 0, 2))
    ('12 operations, 1 loop', '1 operation, 2 Ifs')
    """
    words = [counted(size.operations, "operation")]
    words += [
        counted(number, noun) for number, noun in ((size.loops, "loop"), (size.ifs, "If")) if number
    ]
    return ", ".join(words)


def _picture(path: Path | None) -> str:
    if path is None:
        return '<div class="picture empty">&#8635;</div>'
    data = f"data:image/png;base64,{_encoded(path, path.stat().st_mtime_ns)}"
    return f'<div class="picture"><img alt="" src="{data}"></div>'


@lru_cache(maxsize=128)
def _encoded(path: Path, age: int) -> str:
    """Return the picture in base64. A new modification time reads the file again."""
    return base64.b64encode(path.read_bytes()).decode()
