"""A chart whose bars, points or cells are runs. A click opens a run in the debugger."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import running_many
from loopscope_app.describe.sweep_charts import PICKED, Chart
from loopscope_app.state.user_session import widget


def show(chart: Chart | None, key: str, height: int) -> None:
    """Draw a chart of ``height`` pixels; draw nothing if ``chart`` is None."""
    if chart is not None:
        st.vega_lite_chart(
            chart, height=height, width="stretch", key=key, on_select=lambda: _open(key)
        )


def _open(key: str) -> None:
    chosen = (widget(key) or {}).get("selection", {}).get(PICKED) or []
    number = chosen[0].get("sample") if chosen and isinstance(chosen[0], dict) else None
    if isinstance(number, int | float):
        running_many.open_sample(int(number))
