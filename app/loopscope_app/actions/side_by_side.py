"""What a click on Compare does: two runs apart from the one that is stepped through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import loopscope
from loopscope_app.actions import other_runs
from loopscope_app.actions.moves import settled
from loopscope_app.actions.report_errors import afresh, told
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.background_run import Comparing
from loopscope_app.state.compare_choice import BEFORE, MODEL, ROUNDED, RUNTIME, SOURCE, UNCHANGED
from loopscope_app.state.launch import LAUNCH, limits
from loopscope_app.state.open_model import Opened
from loopscope_app.state.run_in_view import Compared
from loopscope_app.state.user_session import PATIENCE, UserSession, current

MOST_SECONDS = 20.0
"""Longest time of each of the two runs."""
_MOST_OF_A_DRIFT = 120.0
"""The same where each value of each iteration is compared, on a user's own machine."""
_DRIFTS: Mapping[str, Callable[[UserSession, Opened, float], None]] = {
    RUNTIME: other_runs.compare_with_runtime,
    MODEL: other_runs.compare_with_model,
    ROUNDED: other_runs.compare_rounded,
    SOURCE: other_runs.compare_with_source,
}


@told
def compare_with(name: str, seconds: float = MOST_SECONDS) -> None:
    """Runs the present inputs with what was set by hand, and those of another set (or the ones
    before, or these without what was set), apart from the run that is stepped through.
    """
    session = current()
    if session.model.opened is None or not settled(session):
        return
    if name in _DRIFTS:
        _DRIFTS[name](
            session, session.model.opened, MOST_SECONDS if LAUNCH.server else _MOST_OF_A_DRIFT
        )
        return
    model, sets = (
        session.model.opened.model,
        {
            **session.model.opened.sets,
            BEFORE: session.model.before,
            UNCHANGED: session.model.inputs,
        },
    )
    bounds = replace(limits(), seconds=seconds)
    runs = [
        loopscope.Debugger(
            model,
            bindings(model, inputs),
            limits=bounds,
            changes=changes,
            seed=session.model.opened.seed,
        )
        for inputs, changes in ((session.model.inputs, session.run.changes), (sets[name], None))
    ]
    one, other = runs

    def work(_: Callable[[], bool]) -> None:
        session.run.compared = Compared(name, one, other)

    session.run.compared = None
    session.run.running = Comparing(runs, work)
    session.run.running.done(PATIENCE)
    settled(session)


@afresh
def round_this(pattern: str, to: str) -> None:
    """The run with a value rounded, or all that a pattern names, beside the run without."""
    other_runs.show_rounded(pattern, to)
    compare_with(ROUNDED)
