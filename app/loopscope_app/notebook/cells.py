"""The MIME bundle of a cell: the widget, a page for viewers without widgets, and a line of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import loopscope
from loopscope.view import NodeData
from loopscope_app.notebook.still import still_of_model, still_of_run

if TYPE_CHECKING:
    from loopscope_app.notebook.graph_widget import GraphWidget

_WIDGETS: WeakKeyDictionary[object, GraphWidget] = WeakKeyDictionary()
"""The widget of each model, run and overlay. A notebook holds its widgets until it ends, and they
hold what they show.
"""


def cell_of_model(
    model: loopscope.Model, summary: str, node_data: NodeData | None = None
) -> Mapping[str, Any]:
    """Return the bundle of a graph that folds, unrolls and opens, coloured by ``node_data``."""
    from loopscope_app.notebook.graph_widget import (
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
    from loopscope_app.notebook.run_widget import RunWidget

    key = node_data or debugger
    widget = _WIDGETS.get(key)
    if widget is None:
        widget = _WIDGETS[key] = RunWidget(debugger, node_data)
    return _bundle(widget, repr(debugger), still_of_run(debugger))


def _bundle(widget: GraphWidget, words: str, still: str) -> Mapping[str, Any]:
    bundle = widget._repr_mimebundle_()
    data = bundle[0] if bundle else {}
    return {**data, "text/plain": words, "text/html": still}
