"""Gradients: build the gradient of a model, open it as a model and run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from loopscope.explain import ties
from loopscope.ir import labels
from loopscope.view import reveal
from loopscope_app.actions import models, moves, views
from loopscope_app.actions.memory_budget import with_room
from loopscope_app.actions.report_errors import clear_and_show_errors, show_errors
from loopscope_app.describe.gradients import Backward
from loopscope_app.state.background_run import Differentiating
from loopscope_app.state.open_model import Opened, with_gradient
from loopscope_app.state.user_session import Message, UserSession, current, widget

_PATIENCE = 2.0
"""Seconds to wait for a gradient before the page shows that it is being built and can be
stopped.
"""
_MAX_OPEN_PAIRS, _MAX_BODY_NODES = 2, 60
"""Number of loop pairs that are drawn open, and largest number of nodes in such a body."""


@clear_and_show_errors
def build_gradient(target_key: str, sources_key: str) -> None:
    """Build the gradient of the chosen target by the chosen sources, and run it on the current
    inputs.
    """
    session = current()
    opened, name, inputs = session.model.opened, session.model.input_set, session.model.inputs
    request = Backward((str(widget(target_key)),), tuple(map(str, widget(sources_key) or ())))
    if opened is None:
        return
    if not request.with_respect_to:
        session.message = Message(
            "choose at least one input or constant to differentiate by", "info"
        )
        return
    moves.stop_if_running(session)
    begin(
        session,
        opened,
        request,
        lambda gradient: _show(session, gradient, name, {} if name else inputs),
    )


@clear_and_show_errors
def open_forward_model() -> None:
    """Open the model of the shown gradient again, on the same inputs."""
    session = current()
    gradient = session.model.opened
    if gradient is None or gradient.forward is None:
        return
    name, inputs, forward = session.model.input_set, session.model.inputs, gradient.forward
    moves.stop_if_running(session)
    with_room(lambda: models.show_model(forward, name))
    if not name:
        models.use_inputs(inputs)
    views.show("gradients")


@show_errors
def run() -> None:
    """Run to the end, so that all gradients exist."""
    moves.go(lambda debugger: debugger.run())


def begin(
    session: UserSession, opened: Opened, request: Backward, then: Callable[[Opened], None]
) -> None:
    """Build a gradient in the background and wait ``_PATIENCE`` seconds for it.

    ``then`` receives the gradient if it is still requested when it is ready.
    """
    session.run.running = Differentiating(
        lambda running: with_gradient(opened, request, running), then
    )
    session.run.running.done(_PATIENCE)
    moves.settled(session)


def _show(
    session: UserSession, gradient: Opened, name: str, inputs: Mapping[str, np.ndarray]
) -> None:
    """Open the gradient as a model, on a named input set or on the given inputs, and run it."""
    with_room(lambda: models.show_model(gradient, name))
    if inputs:
        models.use_inputs(inputs)
    views.show("gradients")
    unfold_pairs(session)
    moves.go(lambda debugger: debugger.run())


def unfold_pairs(session: UserSession) -> None:
    """Open the paired forward and backward bodies side by side, unless they are too large."""
    opened, debugger = session.model.opened, session.run.at_rest
    if opened is None or debugger is None:
        return
    for pair in ties(debugger.plan)[:_MAX_OPEN_PAIRS]:
        for address, instruction in (
            (pair.forward_address, pair.forward),
            (pair.backward_address, pair.backward),
        ):
            body = instruction.node.bodies[0]
            if len(body.graph.nodes) <= _MAX_BODY_NODES:
                result = next(iter(body.graph.results), None)
                label = labels(body.graph)[result.id] if result is not None else ""
                session.canvas.folding = reveal(
                    opened.model, session.canvas.folding, f"{address}/{body.name}/{label}"
                )
