"""Actions of Compare: two runs besides the one that is stepped through."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loopscope_app.actions import other_runs
from loopscope_app.actions.moves import settled
from loopscope_app.actions.report_errors import clear_and_show_errors, show_errors
from loopscope_app.actions.runs import new_run
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.background_run import Comparing
from loopscope_app.state.compare_choice import BEFORE, MODEL, ROUNDED, RUNTIME, SOURCE, UNCHANGED
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.open_model import Opened
from loopscope_app.state.run_in_view import Compared
from loopscope_app.state.user_session import PATIENCE, UserSession, current

MOST_SECONDS = 20.0
"""Time limit of each of the two runs."""
_DRIFT_SECONDS = 120.0
"""Time limit of each run if all values are compared, on a user's own machine."""
_DRIFTS: Mapping[str, Callable[[UserSession, Opened, float], None]] = {
    RUNTIME: other_runs.compare_with_runtime,
    MODEL: other_runs.compare_with_model,
    ROUNDED: other_runs.compare_rounded,
    SOURCE: other_runs.compare_with_source,
}


@show_errors
def compare_with(name: str, seconds: float = MOST_SECONDS) -> None:
    """Compare the current inputs and changes with another run.

    ``name`` is another input set, the previous inputs, the run without changes, or a kind of
    comparison.
    """
    session = current()
    if session.model.opened is None or not settled(session):
        return
    if name in _DRIFTS:
        _DRIFTS[name](
            session, session.model.opened, MOST_SECONDS if LAUNCH.server else _DRIFT_SECONDS
        )
        return
    opened = session.model.opened
    sets = {**opened.sets, BEFORE: session.model.before, UNCHANGED: session.model.inputs}
    runs = [
        new_run(opened, bindings(opened.model, inputs), seconds=seconds, changes=changes)
        for inputs, changes in ((session.model.inputs, session.run.changes), (sets[name], None))
    ]
    left, right = runs

    def work(_: Callable[[], bool]) -> None:
        session.run.compared = Compared(name, left, right)

    session.run.compared = None
    session.run.running = Comparing(runs, work)
    session.run.running.done(PATIENCE)
    settled(session)


@clear_and_show_errors
def round_this(pattern: str, to: str) -> None:
    """Compare the run with itself, with the values that a pattern names rounded."""
    other_runs.show_rounded(pattern, to)
    compare_with(ROUNDED)
