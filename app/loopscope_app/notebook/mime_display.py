"""The display of models, runs and widgets that the app registers for notebooks."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from loopscope import Debugger, Model
from loopscope.notebook import Widget, summary
from loopscope_app.notebook.cells import cell_of_model, cell_of_run
from loopscope_app.notebook.still import still_of_model, still_of_run

_INSTALL = "<p>To step, fold and unroll here: <code>pip install 'loopscope[notebook]'</code></p>"


def display(shown: Model | Debugger | Widget) -> Mapping[str, Any]:
    """Return what a cell shows, by MIME type: a widget if the extra ``notebook`` is installed, else
    a still page.

    A still page of a run lists what its loops and branches did, and ends with the command that
    installs the extra.
    """
    node_data = shown.node_data if isinstance(shown, Widget) else None
    subject = shown.shown if isinstance(shown, Widget) else shown
    if isinstance(subject, Debugger):
        if shows_widgets():
            return cell_of_run(subject, node_data)
        return {"text/plain": repr(subject), "text/html": still_of_run(subject) + _INSTALL}
    words = summary(subject)
    if shows_widgets():
        return cell_of_model(subject, words, node_data)
    return {"text/plain": words, "text/html": still_of_model(subject, words) + _INSTALL}


def shows_widgets() -> bool:
    """Return whether the package that runs widgets is installed."""
    return importlib.util.find_spec("anywidget") is not None
