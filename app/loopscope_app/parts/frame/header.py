"""The bar at the top: a link to the gallery, the open model, and its inputs."""

from __future__ import annotations

import streamlit as st

from loopscope.errors import shorten
from loopscope_app.actions import models
from loopscope_app.describe.node_index import places
from loopscope_app.parts.frame import key_sheet, view_row
from loopscope_app.parts.panels import finder
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import MADE_UP, Opened
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import PANEL

EDITED = "edited"


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is None:
        return
    widths = [1.1, 2.6, 2.2, 4.6, 0.9, 0.6]
    back, title, chooser, row, search, sheet = st.columns(
        widths, vertical_alignment="center", gap="small"
    )
    back.button(
        "Gallery",
        key="header_close",
        icon=":material/arrow_back:",
        on_click=models.close,
        type="tertiary",
        help="Back to the samples, or open another model",
    )
    card = (
        opened.sample.card
        if opened.sample
        else opened.backward.words
        if opened.backward
        else opened.model.converted_from
    )
    with title:
        markup.show(
            f'<b style="font-size:1.15rem">{markup.text(opened.title, 80)}</b>&ensp;'
            f"{markup.chip(_size(opened))}"
            f'<span class="quiet" title="{markup.text(card, 220)}">{markup.text(card, 220)}</span>',
            "titles",
        )
    with search:
        finder.show()
    with row:
        view_row.show(session, opened)
    with chooser:
        _choose(session, opened)
    with sheet:
        key_sheet.show()


def _size(opened: Opened) -> str:
    model = opened.model
    kind = "ONNX" if model.dialect == "onnx" else f"OpenVINO IR {model.version}"
    count = len(places(model))
    return f"{kind} · {count:,} node{'s' if count != 1 else ''}"


def _choose(session: UserSession, opened: Opened) -> None:
    names = list(opened.sets)
    options = names if session.model.input_set in names else [EDITED, *names]
    if len(options) < 2:
        if options == [MADE_UP] and opened.report.ok and opened.model.inputs:
            _made_up()
        return
    key = f"header_set_{session.run.generation}"
    st.selectbox(
        "Inputs",
        options,
        index=options.index(session.model.input_set) if session.model.input_set in names else 0,
        key=key,
        format_func=lambda name: _set_words(opened, str(name)),
        on_change=models.choose_set,
        args=(key,),
        label_visibility="collapsed",
    )


def _made_up() -> None:
    """Show that the inputs are generated, with a link to the panel where they are entered."""
    st.button(
        "Inputs are made up",
        key="header_made_up",
        icon=":material/casino:",
        type="tertiary",
        help="Random values, the same each time: give your own ones in the inputs panel",
        on_click=PANEL.show,
        args=("Inputs",),
    )


def _set_words(opened: Opened, name: str) -> str:
    text = opened.sample.text_of(name) if opened.sample else ""
    return shorten(text or name.replace("_", " "), 110)
