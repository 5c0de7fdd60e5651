"""A loop drawn as copies of its body, as many as fit into a picture."""

from __future__ import annotations

import loopscope
from loopscope.ir import IF
from loopscope.view import COPIES, Folding, graph_view, unrolling
from loopscope_app.describe.node_index import places

MOST_BOXES = 420
"""Limit of boxes, which reduces the number of copies."""
LATEST = 2**40
"""Last first iteration of a window in a link or a file."""


def unrolled(
    model: loopscope.Model,
    before: Folding,
    root: str,
    address: str,
    debugger: loopscope.Debugger | None,
) -> Folding:
    """Return the folding with a loop as copies of its body, or folded again if it was unrolled."""
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
    """Return the folding with a loop as copies of its body.

    ``window`` is its address, the first iteration and the number of iterations. The folding is
    unchanged if the address is not a loop or is unrolled already.
    """
    address, first, count = window
    node = places(model).get(address)
    if (
        node is None
        or not node.node.bodies
        or node.node.type == IF
        or before.window(address) is not None
    ):
        return before
    return unrolling.place(
        unrolled(model, before, root, address, debugger), address, min(first, LATEST), count
    )
