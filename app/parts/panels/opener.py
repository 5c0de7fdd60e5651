"""Ways to open a model of one's own: upload it, or name its path where the server is one's own machine."""

from __future__ import annotations

import streamlit as st

from app.actions import models
from app.state.launch import paths_allowed

UPLOAD, PATH = "opener_upload", "opener_path"


def show() -> None:
    local = paths_allowed(st.get_option("server.address"))
    upload, path = st.columns(2 if local else [1, 0.001], gap="medium", vertical_alignment="top")
    with upload:
        st.file_uploader(
            "Upload a model: model.xml with model.bin, model.onnx, or one that OpenVINO converts",
            type=["xml", "bin", "onnx", "data", "pb", "pbtxt", "meta", "zip", "tflite", "pdmodel", "pdiparams"],
            accept_multiple_files=True,
            key=UPLOAD,
            on_change=models.open_upload,
            args=(UPLOAD,),
            help="A .zip may hold a model with its weights. "
            "OpenVINO converts TensorFlow (frozen .pb or .pbtxt, .meta, zipped SavedModel, .tflite) "
            "and PaddlePaddle (.pdmodel with .pdiparams).",
        )
    if local:
        with path:
            st.text_input(
                "Or open a file of this machine",
                key=PATH,
                placeholder="/path/to/model.xml",
                on_change=models.open_path,
                args=(PATH,),
                help="Nothing is copied: weights are read from where they are, so this is the way for large models.",
            )
