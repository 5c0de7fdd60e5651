"""A stretch of a run sent ahead, so that a canvas can play it by itself: the first overlay
whole, then what each step changes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from copy import copy

from loopscope.debug.breakpoints import Breakpoint
from loopscope.debug.debugger import Debugger
from loopscope.debug.seek import next_match
from loopscope.debug.stop_conditions import stops
from loopscope.view.graph import GraphView
from loopscope.view.node_data import NodeData
from loopscope.view.overlay import overlay_at
from loopscope.view.overlay_data import Marks

MOST_STEPS = 400
Frame = dict[str, object]


def playback_batch(
    debugger: Debugger,
    view: GraphView,
    first: int,
    *,
    most: int = MOST_STEPS,
    seconds: float = 0.06,
    previews: dict[str, str] | None = None,
    fates: Mapping[str, str] | None = None,
    node_data: NodeData | None = None,
    further: bool = False,
    breakpoints: Sequence[Breakpoint] | None = None,
) -> dict[str, object]:
    """Overlays of the steps from ``first`` on, as many as can be made in so many seconds; at least
    one.

    Only of what has run, and the debugger's cursor stays where it is; ``further`` runs and moves
    it, each step as it is when it is new. ``stop``: the next of these steps at which a breakpoint
    holds (the debugger's own, unless others are given).
    """
    twin = debugger if further else copy(debugger)
    first = max(0, first if further else min(first, debugger.steps))
    until = time.perf_counter() + seconds
    found: dict[str, object] = {"first": first}
    wanted = debugger.breakpoints.on if breakpoints is None else breakpoints
    frames: list[Frame] = []
    before: Frame = {}
    for step in range(first, first + most if further else min(first + most, debugger.steps + 1)):
        if step > twin.seek(step).step:
            break
        now = overlay_at(
            twin, view, Marks(fates=fates or {}, node_data=node_data), previews=previews
        ).as_data()
        frames.append(difference(before, now))
        before = now
        if further and wanted and stops(twin, wanted):
            return found | {"frames": frames, "stop": step}
        if time.perf_counter() > until:
            break
    found["frames"] = frames
    stop = None if further else _next_stop(twin, first, wanted, first + len(frames))
    return found if stop is None else found | {"stop": stop}


def difference(before: Frame, now: Frame) -> Frame:
    """What to change to come from one overlay to the next: None takes an entry away.

    >>> difference({"nodes": {"n1": "current", "n2": "done"}, "current": "n1"}, {"nodes": {"n1": "done"}, "current": ""})
    {'nodes': {'n1': 'done', 'n2': None}, 'current': ''}
    """
    found: Frame = {}
    for name, value in now.items():
        old = before.get(name)
        if value == old:
            continue
        if isinstance(value, dict):
            known = old if isinstance(old, dict) else {}
            changed: dict[str, object] = {
                key: one for key, one in value.items() if known.get(key) != one
            }
            changed.update((key, None) for key in known if key not in value)
            found[name] = changed
        else:
            found[name] = value
    return found


def _next_stop(
    debugger: Debugger, step: int, breakpoints: Sequence[Breakpoint], end: int
) -> int | None:
    found = [next_match(debugger, one, step, end) for one in breakpoints]
    return min((one for one in found if one is not None), default=None)
