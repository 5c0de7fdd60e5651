"""What stands in a notebook where no widget runs, on GitHub or in an exported page: HTML without scripts, every name escaped."""

from __future__ import annotations

import base64

import engine
from app.page.said_in_words import tables, text, verdicts
from engine.errors import EngineError
from engine.view import default_folding, graph_view, render

MOST_SUMMARY = 4000


def still_of_model(model: engine.Model, summary: str) -> str:
    """The picture, and name, inputs and outputs."""
    lines = "\n".join(text(line) for line in summary[:MOST_SUMMARY].splitlines())
    return f"{_picture(model)}<pre>{lines}</pre>"


def still_of_run(debugger: engine.Debugger) -> str:
    """The picture, where the run is, what its loops and branches did, and a table for each loop."""
    said = verdicts(debugger, with_values=True) + tables(debugger, {}, with_values=True)
    return f"{_picture(debugger.model)}<p><code>{text(repr(debugger))}</code></p>{said}"


def _picture(model: engine.Model) -> str:
    """As an image, in which nothing runs; none where the ``dot`` program is missing, which draws it."""
    try:
        drawn = render(graph_view(model, default_folding(model)), "svg")
    except EngineError:
        return ""
    return f'<img alt="The graph" style="max-width:100%" src="data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}">'
