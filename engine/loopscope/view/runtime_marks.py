"""Marks from a runtime's report on a picture: badges of loops and branches, and time heat of
boxes.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.view.graph import GraphView

HOTTEST = 8


def time_heat(view: GraphView, times: Mapping[str, float]) -> dict[str, int]:
    """Return the heat level of each box, 1 to ``HOTTEST``, by its share of the time of the slowest
    box.

    Boxes that round to level 0 are left out.
    """
    seconds: dict[str, float] = {}
    for address, duration in times.items():
        box = view.showing(address)
        if box is not None:
            seconds[box.id] = seconds.get(box.id, 0.0) + duration
    longest = max(seconds.values(), default=0.0)
    levels = {
        id: round(HOTTEST * duration / longest) for id, duration in seconds.items() if longest > 0
    }
    return {id: level for id, level in levels.items() if level}


def headers_with_badges(
    view: GraphView, headers: Mapping[str, str], runtime_badges: Mapping[str, str]
) -> dict[str, str]:
    """Return the headers of frames and folded loops that have a runtime badge, with the badge in
    front.
    """
    return {
        id: " · ".join(filter(None, (runtime_badges[address], headers.get(id))))
        for id, address in view.control_flow
        if address in runtime_badges
    }
