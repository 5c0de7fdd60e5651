"""A loop drawn as copies of its body: as many as a picture has room for."""

from __future__ import annotations

import engine
from engine.view import COPIES, Folding, graph_view, unrolling

MOST_BOXES = 420
"""Fewer copies are drawn where there would be more boxes than this."""


def unrolled(model: engine.Model, before: Folding, root: str, address: str, debugger: engine.Debugger | None) -> Folding:
    """The folding with a loop as copies of its body, one for each iteration of a window; or once again, when it was unrolled before."""
    folding = before
    for count in range(COPIES, 0, -1):
        folding = unrolling.unroll(model, before, address, debugger, count)
        if len(graph_view(model, folding, root).nodes) <= MOST_BOXES:
            break
    return folding
