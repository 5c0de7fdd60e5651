"""Cells of a notebook: the widget, and a still page and a line of text where there is none.

The page is HTML without scripts, every name escaped. The app registers the display of models, runs
and widgets.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import loopscope
from loopscope import Debugger, Model
from loopscope.errors import EngineError
from loopscope.executor import plan_of
from loopscope.explain import listing
from loopscope.ir import graphs
from loopscope.notebook import Widget, summary
from loopscope.view import NodeData, default_folding, graph_view, render
from loopscope_app.page.text_sections import tables, text, verdicts

if TYPE_CHECKING:
    from loopscope_app.notebook.widgets import GraphWidget


_WIDGETS: WeakKeyDictionary[object, GraphWidget] = WeakKeyDictionary()
"""The widget of each model, run and overlay. A notebook holds its widgets until it ends, and they
hold what they show.
"""


def cell_of_model(
    model: loopscope.Model, summary: str, node_data: NodeData | None = None
) -> Mapping[str, Any]:
    """Return the bundle of a graph that folds, unrolls and opens, coloured by ``node_data``."""
    from loopscope_app.notebook.widgets import (
        GraphWidget,  # only here: the still of a run needs no anywidget
    )

    key = node_data or model
    widget = _WIDGETS.get(key)
    if widget is None:
        widget = _WIDGETS[key] = GraphWidget(model, node_data)
    return _bundle(widget, summary, still_of_model(model, summary))


def cell_of_run(
    debugger: loopscope.Debugger, node_data: NodeData | None = None
) -> Mapping[str, Any]:
    """Return the bundle of a run: the graph at its moment, transport, verdicts and tables. It
    follows the debugger and moves it.
    """
    from loopscope_app.notebook.widgets import RunWidget

    key = node_data or debugger
    widget = _WIDGETS.get(key)
    if widget is None:
        widget = _WIDGETS[key] = RunWidget(debugger, node_data)
    return _bundle(widget, repr(debugger), still_of_run(debugger))


def _bundle(widget: GraphWidget, words: str, still: str) -> Mapping[str, Any]:
    bundle = widget._repr_mimebundle_()
    data = bundle[0] if bundle else {}
    return {**data, "text/plain": words, "text/html": still}


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


MOST_SUMMARY = 4000
MOST_LINES, MOST_NODES = 200, 5_000
"""Largest number of lines of code, and of nodes of a model that is planned for its code."""


def still_of_model(model: loopscope.Model, summary: str) -> str:
    """Return the graph and the summary of a model."""
    lines = "\n".join(text(line) for line in summary[:MOST_SUMMARY].splitlines())
    return _beside_graph(model, f"<pre>{lines}</pre>")


def still_of_run(debugger: loopscope.Debugger) -> str:
    """Return the graph, the place of the run, what its loops and branches did, and a table per
    loop.
    """
    texts = verdicts(debugger, with_values=True) + tables(debugger, {}, with_values=True)
    return _beside_graph(debugger.model, f"<p><code>{text(repr(debugger))}</code></p>{texts}")


def _beside_graph(model: loopscope.Model, words: str) -> str:
    """Return the graph as an image above the words; as code where the ``dot`` program is
    missing.
    """
    try:
        drawn = render(graph_view(model, default_folding(model)), "svg")
    except EngineError:
        return f"{words}{_code(model)}"
    image = base64.b64encode(drawn).decode()
    return (
        '<img alt="The graph" style="max-width:100%" '
        f'src="data:image/svg+xml;base64,{image}">{words}'
    )


def _code(model: loopscope.Model) -> str:
    """Return the graph as code, at most ``MOST_LINES`` lines; empty if the model cannot be planned
    or is too large.
    """
    if sum(len(place.graph.nodes) for place in graphs(model)) > MOST_NODES:
        return ""
    try:
        lines = listing(plan_of(model)).lines
    except EngineError:
        return ""
    shown = "\n".join(text(line.text) for line in lines[:MOST_LINES])
    more = f"\n{len(lines) - MOST_LINES:,} more lines" if len(lines) > MOST_LINES else ""
    return f"<details><summary>The graph as code</summary><pre>{shown}{more}</pre></details>"
