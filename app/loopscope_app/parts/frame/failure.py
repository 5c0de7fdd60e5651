"""The sentence for users when Loopscope itself fails. They never see a traceback."""

from __future__ import annotations

import logging

import streamlit as st

from loopscope_app.actions.memory_budget import NO_ROOM, make_room

LOG = logging.getLogger("loopscope")


def say_sorry(error: Exception) -> bool:
    """Show one sentence and write the details to the server's log.

    Return True, which tells Streamlit that the failure is handled.
    """
    if isinstance(error, MemoryError):
        make_room()
        st.error(NO_ROOM, icon=":material/error:")
        return True
    LOG.error("an error of Loopscope itself", exc_info=error)
    st.error(
        f"Something in Loopscope itself went wrong ({type(error).__name__}). Your model is "
        "unchanged: reload the page to continue.",
        icon=":material/error:",
    )
    return True
