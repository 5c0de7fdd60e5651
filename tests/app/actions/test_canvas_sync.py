"""What the canvas is sent ahead, so that it can play by itself."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope.view.build import graph_view
from loopscope_app.actions.canvas_sync import LONGEST_SCOUT, canvas_run
from loopscope_app.canvas_event import MOST_WORDS, Move, StepReport, read_moves, read_report
from loopscope_app.state.model_in_use import ModelInUse
from loopscope_app.state.open_model import open_sample
from loopscope_app.state.run_in_view import RunInView
from loopscope_app.state.user_session import CanvasView, UserSession


@pytest.mark.parametrize("step", [40, LONGEST_SCOUT + 400])
def test_what_nobody_has_seen_yet_is_sent_ahead_and_the_user_stays(step: int) -> None:
    opened = open_sample("count_primes")
    inputs = {"limit": np.array(2_000, np.int64)}
    debugger = loopscope.Debugger(opened.model, inputs)
    debugger.seek(step)
    session = UserSession(
        ModelInUse(opened=opened, inputs=inputs),
        RunInView(stepped=debugger),
        CanvasView(prefetch_from=step + 1),
    )
    run = canvas_run(session, graph_view(opened.model))
    assert run is not None
    ahead = run.prefetch()
    assert ahead is not None
    frames = ahead["frames"]
    assert isinstance(frames, list)
    assert len(frames) > 1
    assert (ahead["first"], debugger.cursor.step, session.canvas.prefetch_from) == (
        step + 1,
        step,
        None,
    )


GOOD = {"name": "over", "count": 7, "start": 3}


@pytest.mark.parametrize(
    ("sent", "moves"),
    [
        ([GOOD], (Move("over", 7, 3),)),
        (
            [GOOD | {"start": None}, GOOD | {"count": 8}],
            (Move("over", 7, None), Move("over", 8, 3)),
        ),
        ([GOOD | {"start": -1}], (Move("over", 7, None),)),
        ([GOOD | {"count": "7"}, GOOD | {"count": True}, GOOD | {"name": 1}, None, 3], ()),
        ([GOOD] * 10_000, (Move("over", 7, 3),) * MOST_WORDS),
        ("over", ()),
        (None, ()),
    ],
)
def test_moves_are_read_as_far_as_they_are_moves(sent: object, moves: tuple[Move, ...]) -> None:
    assert read_moves({"run": "1 2", "moves": sent}, "1 2") == moves
    assert read_moves({"run": "of another debugger", "moves": sent}, "1 2") == ()


@pytest.mark.parametrize("step", [-1, 2**60, "4", None, True, 1.5])
def test_a_report_that_is_none(step: object) -> None:
    assert read_report({"run": "1 2", "step": 4, "count": 1}, "1 2") == StepReport(4, 1, False)
    assert read_report({"run": "1 2", "step": step, "count": 1}, "1 2") is None
