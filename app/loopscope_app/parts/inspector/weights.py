"""The weights of a node: type, shape, statistics, a histogram and a download for each."""

from __future__ import annotations

import re
from functools import partial

import streamlit as st

from loopscope.errors import EngineError
from loopscope.ir import Model
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.node_index import IndexedNode
from loopscope_app.describe.node_weights import NodeWeight, node_weights, weight_summary
from loopscope_app.parts.widgets import markup

MOST = 8


def show(model: Model, place: IndexedNode) -> None:
    """Show the weights of a node, if it has some."""
    weights = node_weights(model, place)[:MOST]
    if not weights:
        return
    markup.show(markup.section("Weights"))
    for number, weight in enumerate(weights):
        words, picture = weight_summary(weight.constant)
        shape = " × ".join(map(str, weight.constant.shape))
        kind = f"{weight.constant.element_type} {shape}"
        with st.container(key=f"weight_{number}", gap=None):
            markup.show(
                f'<b>{markup.text(weight.port, 60)}</b> <span class="quiet">{markup.text(kind)}'
                f'<br>{markup.text(words)}</span><div class="history">{picture}</div>'
            )
            st.download_button(
                f"Download {markup.plain(weight.port, 40)}.npy",
                partial(_file, weight),
                file_name=f"{_file_name(place.node.name)}_{_file_name(weight.port)}.npy",
                key=f"weight_download_{number}",
                on_click="ignore",
                type="tertiary",
            )


def _file(weight: NodeWeight) -> bytes:
    """Return the tensor as a file; if it is not stored, a text with the reason."""
    try:
        return tensor_summary.npy(weight.constant.array())
    except (EngineError, ValueError) as error:
        return f"{error}\n".encode()


def _file_name(words: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", words)[-60:] or "weight"
