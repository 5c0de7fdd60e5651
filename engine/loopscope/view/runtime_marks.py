"""What a runtime said of a model, on a picture: what it makes of loops and branches, and how
much of its time each box took.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.view.graph import GraphView

HOTTEST = 8


def heats(view: GraphView, times: Mapping[str, float]) -> dict[str, int]:
    """Of boxes that took at least a part in ``HOTTEST`` of the time of the one that took the
    most.
    """
    taken: dict[str, float] = {}
    for address, lasted in times.items():
        box = view.showing(address)
        if box is not None:
            taken[box.id] = taken.get(box.id, 0.0) + lasted
    most = max(taken.values(), default=0.0)
    levels = {id: round(HOTTEST * lasted / most) for id, lasted in taken.items() if most > 0}
    return {id: level for id, level in levels.items() if level}


def fated_headers(
    view: GraphView, headers: Mapping[str, str], fates: Mapping[str, str]
) -> dict[str, str]:
    """The headers of frames and folded loops of which it is known what a runtime makes of them."""
    return {
        id: " · ".join(filter(None, (fates[address], headers.get(id))))
        for id, address in view.control_flow
        if address in fates
    }
