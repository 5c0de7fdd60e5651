"""A view as a picture file, drawn by the ``dot`` program where the machine has it."""

from __future__ import annotations

import shutil
from typing import Literal, get_args

import graphviz

from loopscope.errors import EngineError
from loopscope.view.dot import dot_text
from loopscope.view.graph import GraphView

PictureFormat = Literal["svg", "png", "pdf"]
PICTURE_FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)
HOW_TO_GET_DOT = "drawing files needs the `dot` program of Graphviz: apt install graphviz, brew install graphviz or winget install graphviz brings it"


class NoPicture(EngineError):
    """No picture could be drawn, and the message says what to do."""


def render(view: GraphView, format: PictureFormat = "svg") -> bytes:
    """The picture's bytes; ``NoPicture`` where there is no ``dot`` program or it fails."""
    return render_dot(dot_text(view, standalone=True), format)


def render_dot(text: str, format: PictureFormat) -> bytes:
    """DOT text that ``loopscope.view.dot`` made, drawn."""
    if shutil.which("dot") is None:
        raise NoPicture(HOW_TO_GET_DOT)
    if format == "png":
        # Twice the density of a plain screen, so that small words stay readable.
        text = text.replace("{", "{ graph [dpi=144];", 1)
    try:
        return bytes(graphviz.pipe("dot", format, text.encode(), quiet=True))
    except graphviz.CalledProcessError as error:
        raise NoPicture(
            f"`dot` failed: {(error.stderr or b'').decode(errors='replace').strip()[:300]}"
        ) from error
