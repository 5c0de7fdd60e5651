"""Trip count and ending of each loop, as short text for its header."""

from __future__ import annotations

import loopscope
from loopscope.ir import is_trace
from loopscope.view import GraphView
from loopscope_app.describe.wording import SHORT_REASONS, times


def loop_endings(debugger: loopscope.Debugger | None, view: GraphView) -> dict[str, str]:
    """Return the texts by static address, for loops that ran."""
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
