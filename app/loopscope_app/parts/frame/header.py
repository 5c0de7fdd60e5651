"""The header: a link to the gallery, the open model, its inputs, the views, and menus."""

from __future__ import annotations

import numpy as np
import streamlit as st

from loopscope.errors import shorten
from loopscope.ir import is_trace
from loopscope.view import short_name, value_preview
from loopscope_app.actions import models
from loopscope_app.describe.generated_inputs import generated_words
from loopscope_app.describe.input_words import varying_first
from loopscope_app.describe.wording import model_size
from loopscope_app.parts.dock import drawer
from loopscope_app.parts.frame import agreement_badge, finder, more_menu, problems_badge, view_row
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import MADE_UP, Opened
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import DEBUG, DOCK, DRAWER, HIDDEN

EDITED = "edited"
_MOST_NAMED = 3
"""Number of inputs up to which an input set is called by its values."""


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is None:
        return
    with st.container(key="header_row", horizontal=True, vertical_alignment="center"):
        st.button(
            "Gallery",
            key="header_close",
            icon=":material/chevron_left:",
            on_click=models.close,
            type="tertiary",
            help="Back to the samples, or open another model",
        )
        about = " · ".join(filter(None, (opened.card, model_size(opened.model))))
        with st.container(key="header_title"):
            markup.show(
                f'<b title="{markup.text(about, 400)}">{markup.text(opened.title, 80)}</b>',
                "titles",
            )
        with st.container(key="header_inputs"):
            if not is_trace(opened.model):  # a trace has no inputs
                _choose(session, opened)
        with st.container(key="header_views"):
            view_row.show(session, opened)
        agreement_badge.show(session)
        finder.show()
        problems_badge.show(session, opened)
        more_menu.show()
    if view_row.shown_view(session, opened) != DEBUG and DRAWER.shown() != HIDDEN:
        with st.container(key="dock"):
            drawer.show(session, opened)


def _choose(session: UserSession, opened: Opened) -> None:
    names = list(opened.sets)
    options = names if session.model.input_set in names else [EDITED, *names]
    if options == [MADE_UP] and opened.report.ok and opened.model.inputs:
        _generated(session, opened)
        return
    if not opened.model.inputs or not options:
        return
    key = f"header_set_{session.run.generation}"
    st.selectbox(
        "Inputs",
        options,
        index=options.index(session.model.input_set) if session.model.input_set in names else 0,
        key=key,
        format_func=lambda name: f"Input: {_set_words(session, opened, str(name))}",
        on_change=models.choose_set,
        args=(key,),
        label_visibility="collapsed",
    )


def _generated(session: UserSession, opened: Opened) -> None:
    """Show that the inputs are generated, with a link to the tab where they are entered."""
    st.button(
        "Generated inputs · edit",
        key="header_generated",
        type="secondary",
        help=markup.plain(generated_words(opened.model, session.model.inputs), 400),
        on_click=DOCK.show,
        args=("Setup",),
    )


def _set_words(session: UserSession, opened: Opened, name: str) -> str:
    """Return the values of a set of few numbers, and the sentence about it or its name."""
    arrays = session.model.inputs if name == EDITED else opened.sets.get(name, {})
    words = name.replace("_", " ")
    text = (opened.sample.text_of(name) if opened.sample else "") or (
        "" if name in (EDITED, MADE_UP) else words
    )
    is_small = 0 < len(arrays) <= _MOST_NAMED and all(
        isinstance(value, np.ndarray | np.generic) and np.size(value) == 1
        for value in arrays.values()
    )
    title = words
    if is_small:  # a menu of sets is narrow: what tells them apart is to be read in it
        names = varying_first(arrays, [arrays, *opened.sets.values()])
        title = ", ".join(f"{short_name(key)} = {value_preview(arrays[key])}" for key in names)
    return shorten(f"{title} · {text}" if text not in ("", title) else title, 110)
