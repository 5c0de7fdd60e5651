"""A batch of steps for playback on the canvas: the first overlay, then the changes of each step."""

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
    max_steps: int = MOST_STEPS,
    seconds: float = 0.06,
    previews: dict[str, str] | None = None,
    runtime_badges: Mapping[str, str] | None = None,
    node_data: NodeData | None = None,
    further: bool = False,
    breakpoints: Sequence[Breakpoint] | None = None,
) -> dict[str, object]:
    """Return overlays of the steps from ``first`` on, as many as can be made in ``seconds``; at
    least one.

    By default only executed steps are included, and the debugger's cursor does not move. With
    ``further``, the run continues and the cursor moves, so that each step is shown as the newest.
    ``stop`` in the result is the first of these steps at which a breakpoint matches: one of
    ``breakpoints``, by default the debugger's own.
    """
    twin = debugger if further else copy(debugger)
    first = max(0, first if further else min(first, debugger.steps))
    until = time.perf_counter() + seconds
    batch: dict[str, object] = {"first": first}
    active_breakpoints = debugger.breakpoints.on if breakpoints is None else breakpoints
    frames: list[Frame] = []
    before: Frame = {}
    for step in range(
        first, first + max_steps if further else min(first + max_steps, debugger.steps + 1)
    ):
        if step > twin.seek(step).step:
            break
        now = overlay_at(
            twin,
            view,
            Marks(runtime_badges=runtime_badges or {}, node_data=node_data),
            previews=previews,
        ).as_data()
        frames.append(difference(before, now))
        before = now
        if further and active_breakpoints and stops(twin, active_breakpoints):
            return batch | {"frames": frames, "stop": step}
        if time.perf_counter() > until:
            break
    batch["frames"] = frames
    stop = None if further else _next_stop(twin, first, active_breakpoints, first + len(frames))
    return batch if stop is None else batch | {"stop": stop}


def difference(before: Frame, now: Frame) -> Frame:
    """Return the changes between two overlays; None removes an entry.

    >>> before = {"nodes": {"n1": "current", "n2": "done"}, "current": "n1"}
    >>> difference(before, {"nodes": {"n1": "done"}, "current": ""})
    {'nodes': {'n1': 'done', 'n2': None}, 'current': ''}
    """
    changes: Frame = {}
    for name, value in now.items():
        old = before.get(name)
        if value == old:
            continue
        if isinstance(value, dict):
            known = old if isinstance(old, dict) else {}
            changed: dict[str, object] = {
                key: item for key, item in value.items() if known.get(key) != item
            }
            changed.update((key, None) for key in known if key not in value)
            changes[name] = changed
        else:
            changes[name] = value
    return changes


def _next_stop(
    debugger: Debugger, step: int, breakpoints: Sequence[Breakpoint], end: int
) -> int | None:
    matches = [next_match(debugger, breakpoint_, step, end) for breakpoint_ in breakpoints]
    return min((breakpoint_ for breakpoint_ in matches if breakpoint_ is not None), default=None)
