"""Pictures of a view as files, drawn by the ``dot`` program."""

from __future__ import annotations

import shutil
from typing import Literal, get_args

import graphviz

from loopscope.errors import EngineError
from loopscope.view.dot import dot_text
from loopscope.view.graph import GraphView

PictureFormat = Literal["svg", "png", "pdf"]
PICTURE_FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)
HOW_TO_GET_DOT = (
    "drawing files needs the `dot` program of Graphviz: apt install graphviz,"
    " brew install graphviz or winget install graphviz brings it"
)


class NoPicture(EngineError):
    """A picture that cannot be drawn; the message contains advice."""


def render(view: GraphView, format: PictureFormat = "svg") -> bytes:
    """Return the picture's bytes. ``NoPicture`` if the ``dot`` program is missing or fails."""
    return render_dot(dot_text(view, standalone=True), format)


def render_dot(text: str, format: PictureFormat) -> bytes:
    """Draw DOT text of ``loopscope.view.dot``."""
    if shutil.which("dot") is None:
        raise NoPicture(HOW_TO_GET_DOT)
    if format == "png":
        # Twice the density of a standard screen, so that small words stay readable.
        text = text.replace("{", "{ graph [dpi=144];", 1)
    try:
        return bytes(graphviz.pipe("dot", format, text.encode(), quiet=True))
    except graphviz.CalledProcessError as error:
        raise NoPicture(
            f"`dot` failed: {(error.stderr or b'').decode(errors='replace').strip()[:300]}"
        ) from error
