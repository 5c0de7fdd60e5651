"""A loop drawn as copies of its body: as many as a picture has room for."""

from __future__ import annotations

import loopscope
from loopscope.ir import IF
from loopscope.view import COPIES, Folding, graph_view, unrolling
from loopscope_app.describe.node_index import places

MOST_BOXES = 420
"""Fewer copies are drawn where there would be more boxes than this."""
LATEST = 2**40
"""First iteration of a window that a link or a file may ask for."""


def unrolled(
    model: loopscope.Model,
    before: Folding,
    root: str,
    address: str,
    debugger: loopscope.Debugger | None,
) -> Folding:
    """The folding with a loop as copies of its body, one for each iteration of a window; or once
    again, when it was unrolled before.
    """
    folding = before
    for count in range(COPIES, 0, -1):
        folding = unrolling.unroll(model, before, address, debugger, count)
        if len(graph_view(model, folding, root).nodes) <= MOST_BOXES:
            break
    return folding


def at_window(
    debugger: loopscope.Debugger | None,
    model: loopscope.Model,
    before: Folding,
    root: str,
    window: tuple[str, int, int],
) -> Folding:
    """The folding with a loop as copies of its body: a window of its address, its first iteration
    and how many there are.

    As it was where that is no loop, or is unrolled already.
    """
    address, first, count = window
    found = places(model).get(address)
    if (
        found is None
        or not found.node.bodies
        or found.node.type == IF
        or before.window(address) is not None
    ):
        return before
    return unrolling.place(
        unrolled(model, before, root, address, debugger), address, min(first, LATEST), count
    )
