"""What a cell shows, by media type: the widget, for those who show none a page of words, and a
line of text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import loopscope
from loopscope.view import NodeData
from loopscope_app.notebook.still import still_of_model, still_of_run

if TYPE_CHECKING:
    from loopscope_app.notebook.graph_widget import GraphWidget

_shown: WeakKeyDictionary[object, GraphWidget] = WeakKeyDictionary()
"""The widget of each model, run and overlay that was shown. A notebook keeps its widgets until
it ends, and they keep what they show.
"""


def cell_of_model(
    model: loopscope.Model, summary: str, node_data: NodeData | None = None
) -> Mapping[str, Any]:
    """The graph, which folds, unrolls and opens; ``node_data``: what others say of the nodes, as
    colours.
    """
    from loopscope_app.notebook.graph_widget import (
        GraphWidget,  # only here: the still of a run needs no anywidget
    )

    key = node_data or model
    widget = _shown.get(key)
    if widget is None:
        widget = _shown[key] = GraphWidget(model, node_data)
    return _bundle(widget, summary, still_of_model(model, summary))


def cell_of_run(
    debugger: loopscope.Debugger, node_data: NodeData | None = None
) -> Mapping[str, Any]:
    """The graph at the moment of the run, with transport, verdicts and tables; it follows the
    debugger and moves it.
    """
    from loopscope_app.notebook.run_widget import RunWidget

    key = node_data or debugger
    widget = _shown.get(key)
    if widget is None:
        widget = _shown[key] = RunWidget(debugger, node_data)
    return _bundle(widget, repr(debugger), still_of_run(debugger))


def _bundle(widget: GraphWidget, words: str, still: str) -> Mapping[str, Any]:
    given = widget._repr_mimebundle_()
    data = given[0] if given else {}
    return {**data, "text/plain": words, "text/html": still}
