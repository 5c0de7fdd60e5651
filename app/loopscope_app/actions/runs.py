"""Start and replacement of the run that a session steps through."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import loopscope
from loopscope.errors import InputError
from loopscope.ir import is_trace
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.launch import limits
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession


def new_run(
    opened: Opened,
    inputs: Sequence[object],
    *,
    model: loopscope.Model | None = None,
    changes: Mapping[str, object] | None = None,
    rounding: Mapping[str, str] | None = None,
    record: loopscope.Record | None = None,
    seconds: float | None = None,
) -> loopscope.Debugger:
    """Return a debugger at the first step of a run, within the limits of the app.

    ``model`` replaces the opened model, and ``seconds`` the time limit.
    """
    bounds = limits() if seconds is None else replace(limits(), seconds=seconds)
    return loopscope.Debugger(
        model or opened.model,
        inputs,
        limits=bounds,
        record=record,
        seed=opened.seed,
        changes=changes,
        rounding=rounding,
    )


def start(session: UserSession) -> None:
    """Start a run with the session's inputs; the tab Setup shows them."""
    opened = session.model.opened
    if opened is None:
        return
    _forget(session)
    session.model.draft = dict(session.model.inputs)
    session.run.changes = {}
    session.run.original = None
    before, session.run.debugger = session.run.debugger, None
    if not opened.report.ok:
        return
    if len(session.model.inputs) < len(opened.model.inputs):
        raise InputError("some inputs have no value: set them in the tab Setup, then run the model")
    session.run.debugger = new_run(opened, bindings(opened.model, session.model.inputs))
    if is_trace(opened.model):
        session.run.debugger.run()  # nothing is computed: a trace opens at its end
    if before is not None:
        _copy_breakpoints(before, session.run.debugger)


def put(session: UserSession, debugger: loopscope.Debugger) -> None:
    """Replace the session's run by another run of the same inputs."""
    _forget(session)
    if session.run.debugger is not None:
        _copy_breakpoints(session.run.debugger, debugger)
    session.run.debugger = debugger


def _forget(session: UserSession) -> None:
    """Drop what the session knows about its run, because another run replaces it."""
    session.run.generation += 1
    session.run.difference_reported = False
    session.canvas.playing, session.run.compared, session.run.other_runtime = False, None, None
    session.run.source = session.run.compared_run = session.run.compared_with = None
    session.run.drifted = session.run.difference = session.run.clock = None
    session.model.refused, session.canvas.previews = {}, {}
    session.canvas.prefetch_from = session.canvas.prefetched = session.run.scout = (
        session.canvas.pictured
    ) = session.run.standing = None


def _copy_breakpoints(previous: loopscope.Debugger, debugger: loopscope.Debugger) -> None:
    """Copy breakpoints and watches from one run to the next."""
    debugger.breakpoints.clear()
    for breakpoint in previous.breakpoints.items():
        debugger.breakpoints.restore(breakpoint.as_set)
    for number, _ in debugger.watches.items():
        debugger.watches.remove(number)
    for _, expression in previous.watches.items():
        debugger.watches.add(expression)
