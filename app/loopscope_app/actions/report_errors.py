"""Decorators of actions that show the engine's errors on the screen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

from loopscope.errors import EngineError
from loopscope_app.actions.memory_budget import NO_ROOM
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
