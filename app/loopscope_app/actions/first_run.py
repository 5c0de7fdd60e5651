"""Actions of the first steps: the only code that changes their progress."""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope_app.actions import models, moves, report_errors, views, what_if_changes
from loopscope_app.actions.side_by_side import compare_with
from loopscope_app.describe.first_steps import (
    ALL_STEPS,
    CONDITION,
    FIRST_SET,
    OTHER_SET,
    steps_done,
)
from loopscope_app.state.compare_choice import CHOICE
from loopscope_app.state.user_session import UserSession, current, place


def dismiss() -> None:
    """Remove the card for the rest of the session."""
    learning = current().learning
    learning.first_run, learning.first_steps = False, ALL_STEPS


def note_progress(session: UserSession) -> None:
    """Count the steps that the run shows as done. A step that was done stays done."""
    debugger = session.run.at_rest
    if debugger is not None and session.learning.first_steps < ALL_STEPS:
        done = steps_done(debugger, by_hand=bool(session.run.changes))
        session.learning.first_steps = max(session.learning.first_steps, done)


@report_errors.show_errors
def make_false() -> None:
    """Run with the condition of iteration 3 set to false, and select it."""
    session = current()
    what_if_changes.restore(session, {CONDITION: np.bool_(False)})
    moves.go(_to_the_end)
    session.canvas.selected = CONDITION


@report_errors.show_errors
def compare_inputs() -> None:
    """Run the first inputs again without changes, and compare them with the other ones."""
    session = current()
    models.choose_set_named(FIRST_SET)
    moves.go(_to_the_end)
    session.canvas.selected = ""
    session.learning.first_steps = ALL_STEPS
    place(CHOICE, OTHER_SET)
    views.show("compare")
    compare_with(OTHER_SET)


def _to_the_end(debugger: loopscope.Debugger) -> None:
    debugger.run()
