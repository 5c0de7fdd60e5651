"""What stands in a notebook where no widget runs, on GitHub or in an exported page: HTML without
scripts, every name escaped.
"""

from __future__ import annotations

import base64

import loopscope
from loopscope.errors import EngineError
from loopscope.executor import plan_of
from loopscope.explain import listing
from loopscope.ir import graphs
from loopscope.view import default_folding, graph_view, render
from loopscope_app.page.text_sections import tables, text, verdicts

MOST_SUMMARY = 4000
MOST_LINES, MOST_NODES = 200, 5_000
"""Of the graph as code: lines, and nodes of a model that is planned for it."""


def still_of_model(model: loopscope.Model, summary: str) -> str:
    """The graph, and name, inputs and outputs."""
    lines = "\n".join(text(line) for line in summary[:MOST_SUMMARY].splitlines())
    return _beside_graph(model, f"<pre>{lines}</pre>")


def still_of_run(debugger: loopscope.Debugger) -> str:
    """The graph, where the run is, what its loops and branches did, and a table for each loop."""
    said = verdicts(debugger, with_values=True) + tables(debugger, {}, with_values=True)
    return _beside_graph(debugger.model, f"<p><code>{text(repr(debugger))}</code></p>{said}")


def _beside_graph(model: loopscope.Model, words: str) -> str:
    """Below the graph as an image, in which nothing runs; above it as code where the ``dot``
    program is missing, which draws it.
    """
    try:
        drawn = render(graph_view(model, default_folding(model)), "svg")
    except EngineError:
        return f"{words}{_code(model)}"
    image = base64.b64encode(drawn).decode()
    return f'<img alt="The graph" style="max-width:100%" src="data:image/svg+xml;base64,{image}">{words}'


def _code(model: loopscope.Model) -> str:
    """The graph as code, closed, as far as ``MOST_LINES``; none of a model that cannot be
    planned or is very large.
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
