"""The room below the chart of a view: lists and canvas take what the window leaves."""

from __future__ import annotations

import streamlit as st

from loopscope_app.describe.lane_chart import Chart

_AXIS, _GAP = 24, 3
"""Height of a chart without its lanes, and below each lane, in pixels."""
_USUAL_HEADER_REM = 13.2
"""Height in rem of header, controls and headline."""


def leave(chart: Chart | None, header_rem: float = _USUAL_HEADER_REM) -> None:
    """Leave room above the list for a header of ``header_rem`` and for a chart."""
    height = _AXIS + sum(lane.height + _GAP for lane in chart.lanes) if chart is not None else 0
    st.html(
        f"<style>.st-key-view_page {{ --view-top: calc({header_rem}rem + {height}px); }}</style>"
    )
