"""Errors on the screen: decorators of actions that show the engine's errors as a message, and the
sentence for users when Loopscope itself fails. They never see a traceback.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec

import streamlit as st

from loopscope.errors import EngineError
from loopscope_app.actions.memory_budget import NO_ROOM, make_room
from loopscope_app.state.user_session import Message, current

Arguments = ParamSpec("Arguments")


def show_errors(action: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Return the action with errors of the engine shown as a message."""

    @functools.wraps(action)
    def guarded(*positional: Arguments.args, **named: Arguments.kwargs) -> None:
        try:
            action(*positional, **named)
        except EngineError as error:
            current().message = Message(str(error))
        except MemoryError:
            current().message = Message(NO_ROOM)

    return guarded


def clear_and_show_errors(action: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Return the action with the previous message removed and errors shown as a message."""

    @functools.wraps(action)
    def fresh(*positional: Arguments.args, **named: Arguments.kwargs) -> None:
        current().message = None
        show_errors(action)(*positional, **named)

    return fresh


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
