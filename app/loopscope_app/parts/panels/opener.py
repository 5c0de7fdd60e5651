"""Ways to open a model: upload it, drop it on the page, enter its path on this computer, or paste a
layer.
"""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import models
from loopscope_app.canvas.dropping import take_dropped_files
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
