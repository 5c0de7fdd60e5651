"""The entry in the menu of an If or loop that specialises the model to what ran."""

from __future__ import annotations

import streamlit as st

from loopscope.ir import IF
from loopscope_app.actions import specialising
from loopscope_app.describe.node_index import IndexedNode
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession


def show(session: UserSession, place: IndexedNode) -> None:
    """Show the entry, and after a click what goes, with a button that saves the result."""
    opened = session.model.opened
    if opened is None or (place.node.type != IF and not place.node.is_loop):
        return
    st.button(
        "Keep the branch that ran" if place.node.type == IF else "Keep the count that ran",
        icon=":material/content_cut:",
        key="inspector_specialise",
        on_click=specialising.preview,
        args=(place.address,),
        width="stretch",
        help="Specialise: the model without what did not run. Nothing is changed here.",
    )
    preview = session.run.specialised
    if preview is None or preview.address != place.address or preview.original is not opened.model:
        return
    markup.show("<br>".join(map(markup.sentence, preview.sentences)), "quiet")
    stem = f"{opened.file_name()}_specialised"
    st.download_button(
        "Save as",
        lambda: preview.document(stem),
        file_name=f"{stem}{preview.ending}",
        icon=":material/save:",
        key="inspector_specialise_save",
        on_click="ignore",
        width="stretch",
    )
