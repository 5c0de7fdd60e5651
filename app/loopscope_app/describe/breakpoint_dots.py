"""The dot of a box, which stands for the breakpoints there."""

from __future__ import annotations

import loopscope
from loopscope.view import GraphView, breakpoint_boxes


def switch_at(debugger: loopscope.Debugger, view: GraphView, address: str) -> None:
    """Those whose dot a box of the picture has: off when any of them pauses the run, else on."""
    breakpoints = debugger.breakpoints
    found = [
        one
        for one in breakpoints
        if one.pattern
        and any(box.address == address for box in breakpoint_boxes(view, [one.pattern]))
    ]
    on = not any(one.on for one in found)
    for one in found:
        breakpoints.switch(one.id, on)
