"""The end of sessions: some time after its page was closed, what a session held is let go.

Streamlit itself keeps the session of a closed page until another page is closed, and what was
uploaded in it for ever.
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
from loopscope_app.state.freed_memory import give_back_freed_memory, leave_out_of_collections
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.model_cache import KEPT
from loopscope_app.state.user_session import end, every
from loopscope_app.streamlit_insides import keep_closed_sessions_in

LOG = logging.getLogger("loopscope")
_EVERY = 1.0
"""Seconds between two looks at the sessions."""
_QUIET, _PATIENCE = 1.0, 10.0
"""Seconds without activity after which garbage is collected, and the longest wait for that after a
session has ended: a collection stops all sessions.
"""


@dataclass(eq=False)
class Closed(SessionStorage):
    """Sessions whose page is closed, which may open again in time: a lost connection, or a page
    that is reloaded.
    """

    seconds: float
    _infos: dict[str, tuple[SessionInfo, float]] = field(
        default_factory=dict[str, tuple[SessionInfo, float]]
    )
    """With the time at which each is over."""

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

    def end_those_over(self) -> int:
        """Ends the sessions whose time is over; gives how many these were."""
        now = time.monotonic()
        ended = [
            self._infos.pop(id)[0].session
            for id, (_, over) in tuple(self._infos.items())
            if over <= now
        ]
        for one in ended:
            one.shutdown()
            end(one)
        return len(ended)


@contextlib.asynccontextmanager
async def watching_over_sessions(_: object) -> AsyncIterator[None]:
    """While the server runs: sessions end, and together stay within their budget."""
    closed = Closed(float(st.get_option("server.disconnectedSessionTTL")))
    keep_closed_sessions_in(closed)
    leave_out_of_collections()
    watch = asyncio.create_task(_watch(closed))
    try:
        yield
    finally:
        watch.cancel()


async def _watch(closed: Closed) -> None:
    to_collect_since: float | None = None
    while True:
        await asyncio.sleep(_EVERY)
        try:
            if closed.end_those_over() and to_collect_since is None:
                to_collect_since = time.monotonic()
            if LAUNCH.server:
                await asyncio.to_thread(memory_budget.keep_within, memory_budget.budget())
            if to_collect_since is not None and (
                _seconds_alone() > _QUIET or time.monotonic() - to_collect_since > _PATIENCE
            ):
                to_collect_since = None
                await asyncio.to_thread(_give_back)
        except Exception:  # what goes wrong once must not keep all sessions from ending
            LOG.exception("looking after the sessions has failed")


def _give_back() -> None:
    """What ended sessions looked at goes, but for a few megabytes that somebody may want again."""
    KEPT.trim()
    give_back_freed_memory()


def _seconds_alone() -> float:
    """Since the last user has done something."""
    return time.monotonic() - max((one.touched for one in every()), default=0.0)
