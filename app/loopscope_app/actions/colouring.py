"""Colors of nodes: by a file that was uploaded or that the command line names, or by their cost."""

from __future__ import annotations

import json
from pathlib import Path

from loopscope.errors import ReadError
from loopscope.view import read_node_data
from loopscope_app.actions.report_errors import clear_and_show_errors, show_errors
from loopscope_app.describe.costs import by_measure
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.user_session import Message, UserSession, current, widget


@clear_and_show_errors
def open_upload(key: str) -> None:
    """Color the nodes by the uploaded file; without a file, remove the colors."""
    file, session = widget(key), current()
    session.model.node_data = None
    if file is not None:
        _colour(session, file.getvalue(), file.name)


@clear_and_show_errors
def by_cost(key: str) -> None:
    """Color the nodes by the cost that a widget names; without a choice, remove the colors."""
    session, measure = current(), widget(key)
    session.model.node_data = None
    debugger = session.run.debugger
    if debugger is None or not measure:
        return
    costs = by_measure(debugger, session.model.inputs)
    if measure in costs:
        session.model.node_data = read_node_data(
            json.dumps(costs[measure]).encode(), debugger.model, measure
        )


def remove_colors() -> None:
    """Remove the colors."""
    current().model.node_data = None


@show_errors
def open_launched() -> None:
    """Color the nodes by the file that the command line names."""
    path = Path(LAUNCH.overlay)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ReadError(f"{path.name}: {error.strerror}") from None
    _colour(current(), content, path.name)


def _colour(session: UserSession, content: bytes, name: str) -> None:
    if session.model.opened is None:
        return
    data = session.model.node_data = read_node_data(
        content, session.model.opened.model, Path(name).stem
    )
    warning = data.unmatched_words(name)
    if warning:
        session.message = Message(warning, "info")
