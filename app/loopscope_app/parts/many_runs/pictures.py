"""Pictures of many runs beside each other: a histogram, runs as points, branches, a heat map."""

from __future__ import annotations

import streamlit as st

from loopscope_app.describe import sweep_charts
from loopscope_app.describe.sweep_charts import Chart, Theme
from loopscope_app.parts.many_runs import chart_of_runs
from loopscope_app.parts.many_runs.threshold import Threshold
from loopscope_app.state.background_sweep import Sweeping
from loopscope_app.state.user_session import UserSession

HEIGHT = 210
"""Height of all pictures in pixels."""


def show(session: UserSession, sweeping: Sweeping, threshold: Threshold) -> None:
    """Draw the pictures that the runs have data for, in one row."""
    charts = pictures(session, sweeping, threshold)
    if not charts:
        return
    columns = st.columns([2 if title != "Branches" else 1.4 for title in charts], gap="small")
    for column, (title, chart) in zip(columns, charts.items(), strict=True):
        with column:
            key = f"many_chart_{title}_{session.many.generation}"
            chart_of_runs.show(chart, key, HEIGHT)


def pictures(session: UserSession, sweeping: Sweeping, threshold: Threshold) -> dict[str, Chart]:
    """Return the charts by title, without those that have no data."""
    layout, rows = sweeping.sweep.layout, sweeping.rows
    theme: Theme = "dark" if st.context.theme.type == "dark" else "light"
    count, bound = threshold.column, threshold.bound
    names = [column.name for column in layout.inputs]
    grid = sweep_charts.heat_map(rows, count, names, theme, bound) if session.many.is_grid else None
    scatter = (
        sweep_charts.scatter(rows, count, threshold.against, theme, bound)
        if threshold.against
        else None
    )
    charts = {
        "How often": sweep_charts.histogram(rows, count, theme, bound),
        "Run by run": scatter,
        "Over the grid": grid,
        "Branches": sweep_charts.branches(rows, layout, theme),
    }
    return {title: chart for title, chart in charts.items() if chart is not None}
