"""What a click on Measure does: the run once more, in a runtime or in steps of ours, with the
time of each operation and iteration.
"""

from __future__ import annotations

from collections.abc import Callable

from loopscope.peers import Runtime, clock, runtime_of
from loopscope_app.actions.moves import settled
from loopscope_app.actions.report_errors import afresh
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.background_run import Comparing
from loopscope_app.state.user_session import PATIENCE, current, widget
from loopscope_app.state.view_choices import CLOCK_OF

MOST_SECONDS = 60.0


@afresh
def measure() -> None:
    """With the runtime that the widget holds."""
    session = current()
    opened = session.model.opened
    if opened is None or not settled(session):
        return
    own: Runtime = "onnxruntime" if opened.model.dialect == "onnx" else "openvino"
    chosen = own if runtime_of(opened.model) and widget(CLOCK_OF) != "loopscope" else "loopscope"
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
