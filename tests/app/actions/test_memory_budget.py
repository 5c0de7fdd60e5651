"""What all sessions hold together: who gives up values first, and work that needs more memory
than there is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

import loopscope
from loopscope.errors import EngineError
from loopscope_app.actions import memory_budget
from loopscope_app.state.background_run import Running
from loopscope_app.state.model_in_use import ModelInUse
from loopscope_app.state.open_model import open_sample
from loopscope_app.state.user_session import UserSession

Begin = Callable[[float], UserSession]


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Begin:
    """Makes a session whose run is over, and which nobody has touched for so many seconds."""
    sessions: list[UserSession] = []
    monkeypatch.setattr(memory_budget, "every", lambda: tuple(sessions))
    monkeypatch.setattr(
        memory_budget, "MODEL_CACHE", SimpleNamespace(held_bytes=0)
    )  # what other tests opened is not in question

    def made(seconds: float) -> UserSession:
        opened = open_sample("collatz")
        session = UserSession(ModelInUse(opened=opened, inputs=next(iter(opened.sets.values()))))
        session.run.debugger = loopscope.Debugger(opened.model, dict(session.model.inputs))
        session.run.debugger.run()
        session.run.debugger.breakpoints.add(condition="iteration > 1000")
        session.run.debugger.machine.values.append(np.zeros(1 << 20, np.uint8))
        session.touched = time.monotonic() - seconds
        sessions.append(session)
        return session

    return made


@pytest.mark.parametrize(
    ("megabytes", "who"),
    [
        (4.5, []),
        (3.5, [200]),
        (2.5, [100, 200]),
        (1.5, [50, 100, 200]),  # and no other: the last is in use
        (0, [50, 100, 200]),
    ],
)
def test_the_run_that_was_left_alone_longest_gives_up_its_values_first(
    begin: Begin, megabytes: float, who: list[int]
) -> None:
    sessions = {seconds: begin(seconds) for seconds in (100, 0, 200, 50)}
    assert memory_budget.keep_within(int(megabytes * 2**20)) == (megabytes > 1)
    assert sorted(seconds for seconds, session in sessions.items() if session.run.gave_up) == who
    for session in sessions.values():
        assert session.run.stepped is not None
        assert (session.run.stepped.steps == 0) == session.run.gave_up
        assert len(session.run.stepped.breakpoints) == 1


def test_a_run_that_computes_is_stopped_where_nothing_else_gives_room(begin: Begin) -> None:
    session = begin(100)
    assert session.run.stepped is not None
    told: list[bool] = []
    stop = session.run.stepped.machine.control.stop
    session.run.running = Running(session.run.stepped, lambda: told.append(stop.wait(10)))
    assert not memory_budget.keep_within(0)
    assert session.run.running.done(10)
    assert told == [True]
    assert session.message is not None
    assert session.message.text == memory_budget.STOPPED
    assert not session.run.gave_up


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_work_is_done_again_once_there_is_room(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    happened: list[str] = []

    def work() -> str:
        happened.append("tried")
        if happened.count("tried") <= failures:
            raise MemoryError
        return "done"

    monkeypatch.setattr(memory_budget, "make_room", lambda: happened.append("room"))
    if failures == 2:
        with pytest.raises(EngineError, match="not enough memory"):
            memory_budget.with_room(work)
    else:
        assert memory_budget.with_room(work) == "done"
    assert happened == ["tried", "room", "tried"][: 1 if failures == 0 else 3]
