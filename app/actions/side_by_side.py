"""What a click on Compare does: two runs apart from the one that is stepped through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import engine
from app.actions.moves import settled
from app.actions.refusals import told
from app.describe.signatures import bindings
from app.state.background_run import Comparing
from app.state.launch import limits
from app.state.open_model import Opened
from app.state.run_in_view import Compared
from app.state.user_session import PATIENCE, Session, current
from engine.peers import against, fates

CHOICE = "compare_with"
"""The widget that holds what to compare with: the name of an input set, or one of these three, which are no names."""
BEFORE, UNCHANGED, RUNTIME = "", "\n", "\n\n"
MOST_SECONDS = 20.0
"""Longest time of each of the two runs."""


@told
def compare_with(name: str, seconds: float = MOST_SECONDS) -> None:
    """Runs the present inputs with what was set by hand, and those of another set (or the ones before, or these without what was set),
    apart from the run that is stepped through."""
    session = current()
    if session.model.opened is None or not settled(session):
        return
    if name == RUNTIME:
        _compare_with_runtime(session, session.model.opened, seconds)
        return
    model, sets = session.model.opened.model, {**session.model.opened.sets, BEFORE: session.model.before, UNCHANGED: session.model.inputs}
    bounds = replace(limits(), seconds=seconds)
    runs = [
        engine.Debugger(model, bindings(model, inputs), limits=bounds, changes=changes, seed=session.model.opened.seed)
        for inputs, changes in ((session.model.inputs, session.run.changes), (sets[name], None))
    ]
    one, other = runs

    def work(_: Callable[[], bool]) -> None:
        session.run.compared = Compared(name, one, other)

    session.run.compared = None
    session.run.running = Comparing(runs, work)
    session.run.running.done(PATIENCE)
    settled(session)


def _compare_with_runtime(session: Session, opened: Opened, seconds: float) -> None:
    """Runs the present inputs once more, and in the runtime of the model, which also says what it makes of loops and branches."""
    inputs = bindings(opened.model, session.model.inputs)
    run = engine.Debugger(opened.model, inputs, limits=replace(limits(), seconds=seconds), seed=opened.seed)

    def work(stopped: Callable[[], bool]) -> None:
        session.model.fates = fates(opened.model, seconds=seconds, document=opened.document, stopped=stopped)
        session.run.truth = against(run, inputs, seconds=seconds, document=opened.document, stopped=stopped)

    session.run.truth = None
    session.run.running = Comparing([run], work)
    session.run.running.done(PATIENCE)
    settled(session)
