"""What the canvas is sent ahead, so that it can play by itself."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from app.opened import open_sample
from app.playing import LONGEST_SCOUT, run_of
from app.session import Session
from engine.view.build import graph_view


@pytest.mark.parametrize("step", [40, LONGEST_SCOUT + 400])
def test_what_nobody_has_seen_yet_is_sent_ahead_and_the_user_stays(step: int) -> None:
    opened = open_sample("count_primes")
    inputs = {"limit": np.int64(2_000)}
    debugger = engine.Debugger(opened.model, inputs)
    debugger.seek(step)
    session = Session(opened=opened, inputs=inputs, debugger=debugger, ahead=step + 1)
    run = run_of(session, graph_view(opened.model))
    assert run is not None
    assert run.ahead is not None
    frames = run.ahead["frames"]
    assert isinstance(frames, list)
    assert len(frames) > 1
    assert (run.ahead["first"], debugger.cursor.step, session.ahead) == (step + 1, step, None)
