"""The still page of a cell, for viewers without widgets: HTML without scripts, every name
escaped.
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
