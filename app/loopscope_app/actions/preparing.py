"""Background work after a model is shown: its check, its run, and the search for fitting inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from loopscope_app.actions import models
from loopscope_app.actions.report_errors import show_errors
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
    """Start the remaining work for a run in the background; called after the picture was sent."""
    opened = session.model.opened
    if opened is None or session.run.running is not None:
        return
    if opened.pending and not session.model.unprepared:
        session.run.running = Preparing(opened, partial(_use, session, opened))
    elif _may_not_fit(session, opened) and (
        session.run.fitting is None or session.run.fitting.opened.model is not opened.model
    ):
        session.run.fitting = Fitting(opened)


@show_errors
def again() -> None:
    """Restart the preparation that the user stopped."""
    session = current()
    session.model.unprepared, session.message = False, None


def fit_now(session: UserSession) -> None:
    """Find inputs with which the run works by a few short trials, because a moment is needed at
    once.
    """
    opened = session.model.opened
    if opened is not None and _may_not_fit(session, opened):
        session.run.fitting = fitting = Fitting(opened)
        fitting.done(_LONGEST_SEARCH)
        look_at_fit(session)


_LONGEST_SEARCH = 5.0
"""Time limit of the search in seconds."""


def stop_fitting() -> None:
    session = current()
    if session.run.fitting is not None:
        session.run.fitting.stop()


def look_at_fit(session: UserSession) -> bool:
    """Return True if the search for fitting inputs is over.

    The inputs that it found are used, unless the user moved on with others.
    """
    fitting, opened = session.run.fitting, session.model.opened
    if fitting is None or fitting.over or not fitting.done():
        return fitting is None or fitting.over
    fitting.over = True
    if opened is None or fitting.opened.model is not opened.model or MADE_UP not in opened.sets:
        return True
    first, lengths = opened.sets[MADE_UP], fitting.lengths
    inputs: Mapping[str, np.ndarray] = random_inputs(opened.model, 0, lengths)
    if all(shapes(inputs[name]) == shapes(first[name]) for name in first):
        return True
    in_use = session.model.inputs is first
    session.model.opened = replace(opened, sets={**opened.sets, MADE_UP: inputs})
    debugger = session.run.debugger
    if in_use and (debugger is None or debugger.cursor.step == 0 or debugger.state == "failed"):
        models.use_inputs(inputs, MADE_UP)
        session.model.before = {}  # no user saw a run of the previous inputs
        session.message = Message(
            f"The generated inputs use length {lengths} where the model leaves it open: "
            f"with {OPEN_LENGTHS[0]} the run fails",
            "info",
        )
    return True


def _may_not_fit(session: UserSession, opened: Opened) -> bool:
    generated = opened.sets.get(MADE_UP)
    return (
        generated is not None
        and session.model.inputs is generated
        and opened.report.ok
        and has_open_lengths(opened.model)
        and not is_large(opened.model)
    )


def _use(session: UserSession, before: Opened, after: Opened) -> None:
    """Use a prepared model, unless another model was opened meanwhile."""
    if session.model.opened is not before:
        return
    session.model.opened = after
    models.show_problems(after)
    models.choose_first_set(session)
    start(session)
    afterwards, session.model.once_prepared = session.model.once_prepared, None
    if afterwards is not None:
        afterwards()
