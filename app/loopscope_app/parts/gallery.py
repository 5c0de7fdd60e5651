"""The samples of the gallery: the card of the course, a row that filters, and cards by subject."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import streamlit as st

from loopscope.errors import counted
from loopscope_app.actions import lesson_actions, models
from loopscope_app.components import component
from loopscope_app.describe import lessons
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession, keep, place, widget
from loopscope_samples import SECTIONS, Sample, SampleTrace, Size, sample_traces, samples

PER_ROW = 4
START = SECTIONS[0]


@st.fragment
def show(session: UserSession) -> None:
    """Draw the cards as a fragment, so that typing a letter redraws nothing else."""
    if session.model.opened is not None:
        st.rerun()  # the whole page: a card was clicked
    everything = samples()
    wanted = _show_search(START, everything)
    if wanted:
        matches = matching(everything, wanted)
        show_count(len(matches), len(everything))
        _cards(matches)
        return
    with st.container(key="start_cards"):
        _cards([sample for sample in everything if sample.section == START], per_row=3)
    _show_course_card(session)
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


WORDS, EMPTIED = "gallery_words", "gallery_emptied"
PATTERN, SOURCE, TEACHES = CHOICES = ("gallery_pattern", "gallery_source", "gallery_teaches")
LONGEST = 80

_search = component("search", "search.js", style="search.css")


def _show_search(heading: str, everything: Sequence[Sample]) -> Wanted:
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
            pattern = _choice("Control flow", PATTERN, control_flow_patterns(everything))
            source = _choice("Framework", SOURCE, frameworks(everything))
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


def _show_course_card(session: UserSession) -> None:
    done, whole = len(session.learning.done), len(lessons.lessons())
    with st.container(border=True, key="course_card"):
        words, button = st.columns([5, 1.2], vertical_alignment="center")
        with words:
            progress = f"{done} of {whole} lessons done" if done else f"{whole} lessons"
            markup.show(
                f"<b>Learn how loops and branches run</b>&ensp;{markup.chip(progress)}<br>"
                '<span class="quiet">Predict an iteration count, a branch or a value. Then run '
                "the model and see why.</span>"
            )
        button.button(
            "Continue" if done else "Start learning",
            key="course_start",
            icon=":material/school:",
            on_click=lesson_actions.go_on,
            width="stretch",
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter; empty texts match everything."""

    words: str = ""
    pattern: str = ""
    source: str = ""
    teaches: str = ""

    def __bool__(self) -> bool:
        return any((self.words.strip(), self.pattern, self.source, self.teaches))


def matching(samples: Sequence[Sample], filter: Wanted) -> tuple[Sample, ...]:
    """Return the samples that contain all words, in the gallery's order.

    Samples with all words in their title or name come first.
    """
    words = filter.words.lower().split()
    matches = [
        sample
        for sample in samples
        if _is_tagged(sample, filter) and all(word in _searched_text(sample) for word in words)
    ]
    return tuple(
        sorted(
            matches,
            key=lambda sample: (
                bool(words) and not all(word in _title_text(sample) for word in words)
            ),
        )
    )


def control_flow_patterns(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return the patterns of control flow in the order of the samples."""
    return tuple(dict.fromkeys(pattern for sample in samples for pattern in sample.patterns))


def frameworks(samples: Sequence[Sample]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sample.source for sample in samples))


def lessons_of(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return what the samples teach."""
    return tuple(dict.fromkeys(sample.teaches for sample in samples))


def _is_tagged(sample: Sample, filter: Wanted) -> bool:
    return (
        (not filter.pattern or filter.pattern in sample.patterns)
        and filter.source in ("", sample.source)
        and filter.teaches in ("", sample.teaches)
    )


def _title_text(sample: Sample) -> str:
    return f"{sample.title} {sample.name} {sample.name.replace('_', ' ')}".lower()


def _searched_text(sample: Sample) -> str:
    return " ".join(
        (
            _title_text(sample),
            sample.card,
            sample.origin,
            sample.source,
            sample.teaches,
            *sample.patterns,
            sample.lesson,
        )
    ).lower()
