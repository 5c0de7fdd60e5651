"""The dot of a box, which stands for the breakpoints in the box."""

from __future__ import annotations

import loopscope
from loopscope.view import GraphView, breakpoint_boxes


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
