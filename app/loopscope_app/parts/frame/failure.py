"""What a user reads when Loopscope itself went wrong: a sentence, never a traceback."""

from __future__ import annotations

import logging

import streamlit as st

from loopscope_app.actions.memory_budget import NO_ROOM, make_room

LOG = logging.getLogger("loopscope")


def say_sorry(error: Exception) -> bool:
    """Shows one sentence and writes the details to the server's log; True means to Streamlit
    that the failure is handled.
    """
    if isinstance(error, MemoryError):
        make_room()
        st.error(NO_ROOM, icon=":material/error:")
        return True
    LOG.error("an error of Loopscope itself", exc_info=error)
    st.error(
        f"Something in Loopscope itself went wrong ({type(error).__name__}). Your model is untouched: reload the page to go on.",
        icon=":material/error:",
    )
    return True
