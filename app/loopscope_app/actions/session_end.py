"""End of sessions: some time after its page is closed, a session's memory is freed.

Streamlit itself keeps the session of a closed page until another page is closed, and its uploads
for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import streamlit as st
from streamlit.runtime.session_manager import SessionInfo, SessionStorage

from loopscope_app.actions import memory_budget
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.model_cache import MODEL_CACHE
from loopscope_app.state.process_memory import leave_out_of_collections, return_freed_memory
from loopscope_app.state.user_session import end, every
from loopscope_app.streamlit_insides import keep_closed_sessions_in

LOG = logging.getLogger("loopscope")
_INTERVAL = 1.0
"""Seconds between two checks of the sessions."""
_QUIET_SECONDS, _MAX_DELAY = 1.0, 10.0
"""Seconds without activity before garbage is collected, and longest delay of a collection.

A collection stops all sessions for a moment.
"""


@dataclass(eq=False)
class ClosedSessions(SessionStorage):
    """Sessions with a closed page.

    The page may open again in time, after a lost connection or a reload.
    """

    seconds: float
    _infos: dict[str, tuple[SessionInfo, float]] = field(
        default_factory=dict[str, tuple[SessionInfo, float]]
    )
    """Session and end time by session id."""

    def get(self, session_id: str) -> SessionInfo | None:
        info, over = self._infos.get(session_id, (None, 0.0))
        return info if time.monotonic() < over else None

    def save(self, session_info: SessionInfo) -> None:
        self._infos[session_info.session.id] = session_info, time.monotonic() + self.seconds

    def delete(self, session_id: str) -> None:
        self._infos.pop(session_id, None)

    def list(self) -> list[SessionInfo]:
        now = time.monotonic()
        return [info for info, over in self._infos.values() if now < over]

    def end_expired(self) -> int:
        """End the sessions whose time is over, and return their number."""
        now = time.monotonic()
        ended = [
            self._infos.pop(id)[0].session
            for id, (_, over) in tuple(self._infos.items())
            if over <= now
        ]
        for session in ended:
            session.shutdown()
            end(session)
        return len(ended)


@contextlib.asynccontextmanager
async def watching_over_sessions(_: object) -> AsyncIterator[None]:
    """End closed sessions and enforce the memory budget while the server runs."""
    closed = ClosedSessions(float(st.get_option("server.disconnectedSessionTTL")))
    keep_closed_sessions_in(closed)
    leave_out_of_collections()
    watch = asyncio.create_task(_watch_sessions(closed))
    try:
        yield
    finally:
        watch.cancel()


async def _watch_sessions(closed: ClosedSessions) -> None:
    to_collect_since: float | None = None
    while True:
        await asyncio.sleep(_INTERVAL)
        try:
            if closed.end_expired() and to_collect_since is None:
                to_collect_since = time.monotonic()
            if LAUNCH.server:
                await asyncio.to_thread(memory_budget.keep_within, memory_budget.budget())
            if to_collect_since is not None and (
                _idle_seconds() > _QUIET_SECONDS or time.monotonic() - to_collect_since > _MAX_DELAY
            ):
                to_collect_since = None
                await asyncio.to_thread(_free_memory)
        except Exception:  # one failure must not stop the ending of all later sessions
            LOG.exception("the check of the sessions failed")


def _free_memory() -> None:
    """Shrink the model cache and return freed memory to the operating system."""
    MODEL_CACHE.trim()
    return_freed_memory()


def _idle_seconds() -> float:
    """Return the seconds since the last action of any user."""
    return time.monotonic() - max((session.touched for session in every()), default=0.0)
