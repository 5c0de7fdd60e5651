"""What comes after the picture of a model: its check and its run, where that takes time, and
inputs that let it run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from loopscope_app.actions import models
from loopscope_app.actions.report_errors import told
from loopscope_app.actions.runs import start
from loopscope_app.describe.random_inputs import (
    OPEN_LENGTHS,
    has_open_lengths,
    random_inputs,
    shapes,
)
from loopscope_app.state.background_run import Fitting, Preparing
from loopscope_app.state.open_model import MADE_UP, Opened, is_large
from loopscope_app.state.user_session import Message, UserSession, current


def begin(session: UserSession) -> None:
    """To be called when the picture is on its way: what is still to be done for a run begins in
    the background.
    """
    opened = session.model.opened
    if opened is None or session.run.running is not None:
        return
    if opened.pending and not session.model.unprepared:
        session.run.running = Preparing(opened, partial(_use, session, opened))
    elif _may_not_fit(session, opened) and (
        session.run.fitting is None or session.run.fitting.opened.model is not opened.model
    ):
        session.run.fitting = Fitting(opened)


@told
def again() -> None:
    """After its user has stopped it."""
    session = current()
    session.model.unprepared, session.message = False, None


def fit_now(session: UserSession) -> None:
    """For who wants a moment of the run at once: the inputs that let it run, after a few short
    trials.
    """
    opened = session.model.opened
    if opened is not None and _may_not_fit(session, opened):
        session.run.fitting = fitting = Fitting(opened)
        fitting.done(_LONGEST_SEARCH)
        look_at_fit(session)


_LONGEST_SEARCH = 5.0
"""Seconds."""


def stop_fitting() -> None:
    session = current()
    if session.run.fitting is not None:
        session.run.fitting.stop()


def look_at_fit(session: UserSession) -> bool:
    """Whether the search for inputs that fit is over; those that were found are used, unless
    somebody has gone on with others.
    """
    fitting, opened = session.run.fitting, session.model.opened
    if fitting is None or fitting.over or not fitting.done():
        return fitting is None or fitting.over
    fitting.over = True
    if opened is None or fitting.opened.model is not opened.model or MADE_UP not in opened.sets:
        return True
    first, lengths = opened.sets[MADE_UP], fitting.lengths
    found: Mapping[str, np.ndarray] = random_inputs(opened.model, 0, lengths)
    if all(shapes(found[name]) == shapes(first[name]) for name in first):
        return True
    in_use = session.model.inputs is first
    session.model.opened = replace(opened, sets={**opened.sets, MADE_UP: found})
    debugger = session.run.debugger
    if in_use and (debugger is None or debugger.cursor.step == 0 or debugger.state == "failed"):
        models.use_inputs(found, MADE_UP)
        session.model.before = {}  # nobody has seen a run of the others
        session.message = Message(
            f"The made-up inputs are as long as {lengths} where the model leaves it open: with {OPEN_LENGTHS[0]} it fails",
            "info",
        )
    return True


def _may_not_fit(session: UserSession, opened: Opened) -> bool:
    made_up = opened.sets.get(MADE_UP)
    return (
        made_up is not None
        and session.model.inputs is made_up
        and opened.report.ok
        and has_open_lengths(opened.model)
        and not is_large(opened.model)
    )


def _use(session: UserSession, before: Opened, after: Opened) -> None:
    """A model that has been prepared, unless another one has come in its place."""
    if session.model.opened is not before:
        return
    session.model.opened = after
    models.choose_first_set(session)
    start(session)
    afterwards, session.model.once_prepared = session.model.once_prepared, None
    if afterwards is not None:
        afterwards()
