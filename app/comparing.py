"""What a click on Compare does: two runs apart from the one that is stepped through."""

from __future__ import annotations

from dataclasses import replace

import engine
from app.actions import settled, told
from app.inputs import bindings
from app.launched import limits
from app.session import PATIENCE, Compared, Running, current

MOST_SECONDS = 20.0
"""Longest time of each of the two runs."""


@told
def compare_with(name: str) -> None:
    """Runs the present inputs and those of another set (empty: the ones before), apart from the run that is stepped through."""
    session = current()
    if session.opened is None or not settled(session):
        return
    model, other = session.opened.model, session.opened.sets[name] if name else session.before
    bounds = replace(limits(), seconds=MOST_SECONDS)
    runs = [engine.Debugger(model, bindings(model, inputs), limits=bounds) for inputs in (session.inputs, other)]
    session.compared = Compared(name, *runs)
    session.running = Running(runs[1], lambda: [one.run() for one in runs])
    session.running.done(PATIENCE)
    settled(session)
