"""Choices inside a view: tabs that were replaced no longer choose."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def _page() -> None:
    import streamlit as st

    from loopscope_app.state.view_choices import DOCK

    replaced = DOCK.tabs_key()
    st.session_state[replaced] = "Setup"
    DOCK.show("Node")
    st.session_state[DOCK.tabs_key()] = "Code"
    DOCK.choose_from(replaced)
    st.write(DOCK.shown())
    DOCK.choose_from(DOCK.tabs_key())
    st.write(DOCK.shown())


def test_tabs_that_were_replaced_do_not_choose() -> None:
    """A busy page may send the state of replaced tabs once more."""
    app = AppTest.from_function(_page).run()
    assert not app.exception
    assert [text.value for text in app.markdown] == ["Node", "Code"]
