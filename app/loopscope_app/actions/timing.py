"""Actions of Performance: time each operation, and request what a runtime runs instead of loops."""

from __future__ import annotations

from collections.abc import Callable

from loopscope.peers import Runtime, clock, fates, runtime_of
from loopscope_app.actions.moves import settled
from loopscope_app.actions.report_errors import clear_and_show_errors
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.background_run import Comparing
from loopscope_app.state.user_session import PATIENCE, current, widget
from loopscope_app.state.view_choices import CLOCK_OF

MOST_SECONDS = 60.0


@clear_and_show_errors
def measure() -> None:
    """Time a run in the runtime that the widget names."""
    session = current()
    opened = session.model.opened
    if opened is None or not settled(session):
        return
    own_runtime: Runtime = "onnxruntime" if opened.model.dialect == "onnx" else "openvino"
    chosen = (
        own_runtime if runtime_of(opened.model) and widget(CLOCK_OF) != "loopscope" else "loopscope"
    )
    inputs = bindings(opened.model, session.model.inputs)

    def work(stopped: Callable[[], bool]) -> None:
        session.run.clock = clock(
            opened.model,
            inputs,
            runtime=chosen,
            seconds=MOST_SECONDS,
            document=opened.document,
            stopped=stopped,
        )

    session.run.clock = None
    session.run.running = Comparing([], work, doing="Measuring")
    session.run.running.done(PATIENCE)
    settled(session)


@clear_and_show_errors
def ask_runtime() -> None:
    """Request what the model's runtime runs in place of each loop and branch."""
    session = current()
    opened = session.model.opened
    if opened is None or not settled(session):
        return

    def work(stopped: Callable[[], bool]) -> None:
        session.model.fates = fates(
            opened.model, seconds=MOST_SECONDS, document=opened.document, stopped=stopped
        )

    session.run.running = Comparing([], work, doing="Asking the runtime")
    session.run.running.done(PATIENCE)
    settled(session)
