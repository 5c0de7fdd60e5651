"""Boxes of the canvas: loops as copies of their body, texts of their headers, breakpoint dots.

There are as many copies as fit into a picture. A header has the trip count and the ending of its
loop; a dot stands for the breakpoints in its box.
"""

from __future__ import annotations

import loopscope
from loopscope.ir import IF, is_trace
from loopscope.view import COPIES, Folding, GraphView, breakpoint_boxes, graph_view, unrolling
from loopscope_app.describe.node_index import places
from loopscope_app.describe.wording import SHORT_REASONS, times

MOST_BOXES = 420
"""Limit of boxes, which reduces the number of copies."""
LATEST = 2**40
"""Largest number of the first iteration of a window, in a link or a file."""


def unrolled(
    model: loopscope.Model,
    before: Folding,
    root: str,
    address: str,
    debugger: loopscope.Debugger | None,
) -> Folding:
    """Return the folding with a loop as copies of its body, or folded again if it was unrolled."""
    # The number of copies is reduced until the picture has at most MOST_BOXES boxes.
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


def loop_endings(debugger: loopscope.Debugger | None, view: GraphView) -> dict[str, str]:
    """Return iteration count and ending as a text, by static address, for the loops that ran."""
    texts: dict[str, str] = {}
    if debugger is None:
        return texts
    loops = [
        cluster.address for cluster in view.clusters if cluster.kind in ("loop", "tensor_iterator")
    ]
    loops += [
        address
        for box in view.nodes
        if box.kind == "folded"
        for address in box.loops or (box.address,)
    ]
    resolve = debugger.resolver()
    for static in loops:
        address = resolve(static)
        record = debugger.record(address) if address else None
        if record is not None and record.iterations is not None and record.ended_by is not None:
            ended_by = "endless" if record.endless else record.ended_by
            reason = record.reason
            if not reason and not is_trace(debugger.model):  # no program announces a trip count
                reason = SHORT_REASONS.get(ended_by, ended_by)
            texts[static] = ", ".join(filter(None, (times(record.iterations), reason)))
    return texts


def switch_at(debugger: loopscope.Debugger, view: GraphView, address: str) -> None:
    """Switch the breakpoints of a box's dot: off if any of them pauses the run, else on."""
    breakpoints = debugger.breakpoints
    in_box = [
        breakpoint
        for breakpoint in breakpoints
        if breakpoint.pattern
        and any(box.address == address for box in breakpoint_boxes(view, [breakpoint.pattern]))
    ]
    on = not any(breakpoint.on for breakpoint in in_box)
    for breakpoint in in_box:
        breakpoints.switch(breakpoint.id, on)
