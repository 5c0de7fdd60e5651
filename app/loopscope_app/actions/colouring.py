"""What others say of the nodes of the model, as colours of the canvas: from an upload, or from
the file that the command named.
"""

from __future__ import annotations

from pathlib import Path

from loopscope.errors import ReadError
from loopscope.view import read_node_data
from loopscope_app.actions.report_errors import afresh, told
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.user_session import Message, UserSession, current, widget


@afresh
def open_upload(key: str) -> None:
    """The file in an uploader; without one, no colours any more."""
    file, session = widget(key), current()
    session.model.node_data = None
    if file is not None:
        _colour(session, file.getvalue(), file.name)


def take_off() -> None:
    """The canvas in its own colours."""
    current().model.node_data = None


@told
def open_launched() -> None:
    """The file that the command was started with, for its model."""
    path = Path(LAUNCH.overlay)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ReadError(f"{path.name}: {error.strerror}") from None
    _colour(current(), content, path.name)


def _colour(session: UserSession, content: bytes, name: str) -> None:
    if session.model.opened is None:
        return
    found = session.model.node_data = read_node_data(
        content, session.model.opened.model, Path(name).stem
    )
    words = found.unmatched_words(name)
    if words:
        session.message = Message(words, "info")
