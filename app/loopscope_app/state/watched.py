"""The file of the launched model, which is watched for changes."""

from __future__ import annotations

import time
from pathlib import Path

from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.model_cache import Age, age_of
from loopscope_app.state.user_session import UserSession

REST = 0.5
"""Seconds without a change after which a file is opened again."""


def note(session: UserSession) -> None:
    """Note the age of the file before it is opened."""
    session.model.watched = _age()


def has_changed(session: UserSession) -> bool:
    """Return True if the file differs from the one that was opened, and is not being written.

    A file that is being written changes from call to call, and is opened when it rests.
    """
    age, now = _age(), time.monotonic()
    if age != session.model.resting:
        session.model.resting, session.model.rests_since = age, now
    if session.model.watched is None:  # the same file was opened by another door
        session.model.watched = age
    rests = now - session.model.rests_since >= REST
    return bool(age) and rests and age != session.model.watched


def _age() -> Age:
    try:
        return age_of(Path(LAUNCH.model))
    except OSError:  # a writer replaces the file at this moment
        return ()
