"""Lanes of blocks over one axis, with marks and the cursor, the room below them, and the text that
replaces them before a loop has run.

The picture and the cursor are sent separately. Lists and canvas take what the window leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st

from loopscope_app.components import component
from loopscope_app.describe.lane_chart import LONGEST_NAME, Block, Chart, Kind, Lane, Mark, message
from loopscope_app.describe.node_index import first_loop
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession, widget

__all__ = [
    "LONGEST_NAME",
    "Block",
    "Chart",
    "Kind",
    "Lane",
    "Mark",
    "Pick",
    "message",
    "read_pick",
    "show",
]

_lanes = component("lanes", "lanes.js", style="lanes.css")
_cursor = component("lanes_cursor", "lanes.js")


@dataclass(frozen=True, slots=True)
class Pick:
    """The place in a chart that was clicked."""

    lane: int
    """Index of the lane; -1 for the axis."""
    at: float
    on_name: bool
    down: float = 0.0
    """Share of the lane's height above the click, less than 1."""


def show(
    chart: Chart,
    *,
    key: str,
    cursor: float | None,
    wide: float = 0.0,
    on_pick: Callable[[Pick], None],
) -> None:
    """Draw a chart. Keep the chart object while it does not change.

    ``wide`` is the number of units that the cursor covers, 0 for a line. ``on_pick`` receives the
    clicked place.
    """

    def picked() -> None:
        pick = read_pick(getattr(widget(key), "pick", None), chart)
        if pick is not None:
            on_pick(pick)

    height = 2 + sum(lane.height + 3 for lane in chart.lanes) + 22
    with st.container(gap=None, key=f"{key}_parts"):
        _cursor(key=f"{key}_cursor", data={"key": key, "at": cursor, "wide": wide}, height=1)
        _lanes(key=key, data=message(chart, key), height=height, on_pick_change=picked)


def read_pick(data: object, chart: Chart) -> Pick | None:
    """Return the place that the browser sent, or None if the message is not a place of this chart.

    The message is not trusted.
    """
    if not isinstance(data, Mapping):
        return None
    lane, at = data.get("lane"), data.get("at")
    if isinstance(lane, bool) or not isinstance(lane, int) or not isinstance(at, int | float):
        return None
    if not -1 <= lane < len(chart.lanes) or not math.isfinite(at) or not 0 <= at < chart.extent:
        return None
    down = data.get("down", 0.0)
    within = isinstance(down, int | float) and 0 <= down < 1
    return Pick(lane, float(at), data.get("name") is True, float(down) if within else 0.0)


_AXIS, _GAP = 24, 3
"""Height of a chart without its lanes, and below each lane, in pixels."""
_USUAL_HEADER_REM = 13.2
"""Height in rem of header, controls and headline."""


def leave_room(chart: Chart | None, header_rem: float = _USUAL_HEADER_REM) -> None:
    """Leave room above the list for a header of ``header_rem`` and for a chart."""
    height = _AXIS + sum(lane.height + _GAP for lane in chart.lanes) if chart is not None else 0
    st.html(
        f"<style>.st-key-view_page {{ --view-top: calc({header_rem}rem + {height}px); }}</style>"
    )


def show_before_a_loop_runs(session: UserSession, what: str) -> None:
    """Show the text of a view of a loop.

    ``what`` is the rest of a sentence that begins with "Once a loop runs".
    """
    opened = session.model.opened
    if opened is not None and first_loop(opened.model) is None:
        markup.show("This model has no loop: its steps are under Performance.", "quiet")
    else:
        markup.show(f"Once a loop runs, {what}", "quiet")
