"""What an action refuses becomes a sentence on the screen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

from loopscope.errors import EngineError
from loopscope_app.actions.memory_budget import NO_ROOM
from loopscope_app.state.user_session import Message, current

Arguments = ParamSpec("Arguments")


def told(action: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The action, with the engine's refusals turned into a sentence on the screen."""

    @functools.wraps(action)
    def guarded(*given: Arguments.args, **named: Arguments.kwargs) -> None:
        try:
            action(*given, **named)
        except EngineError as error:
            current().message = Message(str(error))
        except MemoryError:
            current().message = Message(NO_ROOM)

    return guarded


def afresh(action: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The action with its refusal shown on the screen, and the message before it removed."""

    @functools.wraps(action)
    def fresh(*given: Arguments.args, **named: Arguments.kwargs) -> None:
        current().message = None
        told(action)(*given, **named)

    return fresh
