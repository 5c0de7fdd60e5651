"""The gallery: ways to open a model, and cards of the samples.

A model is opened by upload, drop, path, text of a layer, or from the files that were opened last.
Beside an open model, a hidden uploader receives what is dropped, after a question.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import streamlit as st

from loopscope.errors import counted
from loopscope_app.actions import lesson_actions, models
from loopscope_app.canvas.dropping import take_dropped_files
from loopscope_app.components import component
from loopscope_app.describe import lessons
from loopscope_app.describe.sample_filter import Wanted, lessons_of, matching, patterns, sources
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state import recent
from loopscope_app.state.launch import paths_allowed
from loopscope_app.state.user_session import UserSession, keep, place, widget
from loopscope_samples import SECTIONS, Sample, SampleTrace, Size, sample_traces, samples

UPLOAD, PATH, TEXT = "opener_upload", "opener_path", "opener_text"
ENDINGS = (
    "onnx",
    "xml",
    "bin",
    "data",
    "loopscope",
    "zip",
    "tflite",
    "pb",
    "pbtxt",
    "meta",
    "pdmodel",
    "pdiparams",
)
"""Endings of files that can be opened, without the dot."""
_MOST_CHARACTERS = 200_000


def show_opener() -> None:
    local = paths_allowed(st.get_option("server.address"))
    upload, path = st.columns(2 if local else [1, 0.001], gap="medium", vertical_alignment="top")
    with upload:
        st.file_uploader(
            "Open a model: model.onnx, model.xml with model.bin, or a saved run",
            type=list(ENDINGS),
            accept_multiple_files=True,
            key=UPLOAD,
            on_change=models.open_upload,
            args=(UPLOAD,),
            help="A .zip may contain a model and its weights. OpenVINO converts TensorFlow (frozen "
            ".pb or .pbtxt, .meta, zipped SavedModel), TensorFlow Lite (.tflite) and PaddlePaddle "
            "(.pdmodel with .pdiparams). Files can also be dropped anywhere on the page.",
        )
    if local:
        with path:
            st.text_input(
                "Open a path on this computer",
                key=PATH,
                placeholder="/path/to/model.xml",
                on_change=models.open_path,
                args=(PATH,),
                help="Weights are read from their file and not copied. Use this for large models.",
            )
    with st.expander(
        "Paste a `<layer>` of OpenVINO IR, such as an example of the specification",
        icon=":material/content_paste:",
    ):
        st.text_area(
            "A `<layer>` or a whole `<net>`",
            key=TEXT,
            height=180,
            max_chars=_MOST_CHARACTERS,
            placeholder='<layer id="0" name="..." type="If" version="opset8"> ... </layer>',
            help="Missing Parameters and Results are added and listed in a note.",
        )
        st.button("Open the layer", key="opener_text_open", on_click=models.open_text, args=(TEXT,))
    take_dropped_files(ENDINGS, ask=False)


RECENT_KEY = "recent"
RECENT_SHOWN = 5


def show_recent() -> None:
    """Show the list, unless this is a server for others or no file was opened."""
    files = recent.files()[:RECENT_SHOWN] if paths_allowed(st.get_option("server.address")) else ()
    if not files:
        return
    with st.container(key="recent_head", horizontal=True, vertical_alignment="center"):
        markup.show(markup.section("Recent"))
        st.button("Clear list", key="recent_forget", type="tertiary", on_click=models.forget_recent)
    place_lists.show_list(
        [_recent_line(file) for file in files],
        key=RECENT_KEY,
        on_pick=lambda number: models.open_recent(files[number].path),
    )


def _recent_line(file: recent.Recent) -> place_lists.ChainLine:
    path = Path(file.path)
    name = (
        f"{path.parent.name}/{path.name}" if path.stem in ("model", "openvino_model") else path.name
    )
    return place_lists.ChainLine(
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


DROPPED = "drop_upload"


def show_drop_target() -> None:
    """Draw what takes dropped files beside an open model."""
    with st.container(key="drop_place"):
        st.file_uploader(
            "Open another model",
            type=list(ENDINGS),
            accept_multiple_files=True,
            key=DROPPED,
            on_change=models.open_upload,
            args=(DROPPED,),
        )
        take_dropped_files(ENDINGS, ask=True)


PER_ROW = 4
START = SECTIONS[0]


@st.fragment
def show_samples(session: UserSession) -> None:
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
LONGEST_SEARCH = 80

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
            pattern = _choice("Control flow", PATTERN, patterns(everything))
            source = _choice("Framework", SOURCE, sources(everything))
            teaches = _choice("Subject", TEACHES, lessons_of(everything))
    return Wanted(words, pattern, source, teaches)


def read_words(data: object, emptied: int) -> str:
    """Return the text that the browser sent since the field was last emptied."""
    match data:
        case {"text": str(text), "emptied": int(number)} if number == emptied:
            return text[:LONGEST_SEARCH]
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
