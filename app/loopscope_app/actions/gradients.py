"""Backward: a model with its gradient, opened as a model of its own and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from loopscope.explain import ties
from loopscope.ir import labels
from loopscope.view import reveal
from loopscope_app.actions import models, moves
from loopscope_app.actions.memory_budget import with_room
from loopscope_app.actions.report_errors import afresh
from loopscope_app.describe.backward import Backward
from loopscope_app.state.background_run import Differentiating
from loopscope_app.state.open_model import Opened, with_gradient
from loopscope_app.state.user_session import Message, UserSession, current, widget

_PATIENCE = 2.0
"""Seconds within which most gradients are made; until larger ones are, the page says so and can
be stopped.
"""
_MOST_OPEN, _LARGEST = 2, 60
"""Pairs that are opened, and nodes of a body."""


@afresh
def walk_back(target_key: str, sources_key: str) -> None:
    """Opens the gradient of the target that a widget holds by what another one holds, on the
    inputs that are in use, and runs it.
    """
    session = current()
    opened, name, inputs = session.model.opened, session.model.input_set, session.model.inputs
    wanted = Backward((str(widget(target_key)),), tuple(map(str, widget(sources_key) or ())))
    if opened is None:
        return
    if not wanted.with_respect_to:
        session.message = Message(
            "choose at least one input or constant to differentiate by", "info"
        )
        return
    moves.stop_if_running(session)
    begin(session, opened, wanted, lambda made: _show(session, made, name, {} if name else inputs))


def begin(
    session: UserSession, opened: Opened, wanted: Backward, then: Callable[[Opened], None]
) -> None:
    """Makes a gradient in the background, and waits a moment for it; ``then`` hears of it where
    it is still wanted.
    """
    session.run.running = Differentiating(lambda going: with_gradient(opened, wanted, going), then)
    session.run.running.done(_PATIENCE)
    moves.settled(session)


def _show(session: UserSession, made: Opened, name: str, inputs: Mapping[str, np.ndarray]) -> None:
    """The gradient as a model of its own, on inputs that have a name or are given, and its run."""
    with_room(lambda: models.show_model(made, name))
    if inputs:
        models.use_inputs(inputs)
    unfold_both(session)
    moves.go(lambda debugger: debugger.run())


def unfold_both(session: UserSession) -> None:
    """The loops and branches that belong together are drawn open, side by side, where they are
    not too large for that.
    """
    opened, debugger = session.model.opened, session.run.at_rest
    if opened is None or debugger is None:
        return
    for tie in ties(debugger.plan)[:_MOST_OPEN]:
        for address, instruction in (
            (tie.forward_address, tie.forward),
            (tie.backward_address, tie.backward),
        ):
            body = instruction.node.bodies[0]
            if len(body.graph.nodes) <= _LARGEST:
                inside = next(iter(body.graph.results), None)
                label = labels(body.graph)[inside.id] if inside is not None else ""
                session.canvas.folding = reveal(
                    opened.model, session.canvas.folding, f"{address}/{body.name}/{label}"
                )
