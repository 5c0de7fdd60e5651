"""Ways to open a model: upload, drop, path, text of a layer, and files that were opened last.

A hidden uploader receives what is dropped on any screen, after a question.
"""

from __future__ import annotations

import time
from pathlib import Path

import streamlit as st

from loopscope_app.actions import models
from loopscope_app.canvas.dropping import take_dropped_files
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state import recent
from loopscope_app.state.launch import paths_allowed

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


def show() -> None:
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
        [_line(file) for file in files],
        key=RECENT_KEY,
        on_pick=lambda number: models.open_recent(files[number].path),
    )


def _line(file: recent.Recent) -> place_lists.ChainLine:
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
