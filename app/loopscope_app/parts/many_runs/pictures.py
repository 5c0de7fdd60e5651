"""Pictures of many runs: a histogram of counts, branches, a count against any column, a heat map of
a grid.
"""

from __future__ import annotations

import streamlit as st

from loopscope.errors import neutral
from loopscope_app.describe import sweep_charts
from loopscope_app.describe.sweep_charts import Theme
from loopscope_app.describe.sweep_columns import counts, drawable, said
from loopscope_app.parts.many_runs import chart_of_runs, separation_line
from loopscope_app.parts.widgets import markup
from loopscope_app.state.background_sweep import Sweeping
from loopscope_app.state.user_session import UserSession


def show(session: UserSession, sweeping: Sweeping) -> None:
    layout, rows = sweeping.sweep.layout, sweeping.rows
    shown, axes = counts(layout) or drawable(layout, rows)[1:2], drawable(layout, rows)
    if not len(rows) or not shown:
        return
    left, right = st.columns(2, gap="medium")
    generation = session.many.generation
    theme: Theme = "dark" if st.context.theme.type == "dark" else "light"
    count = _choice(left, "Show", shown, f"many_count_{generation}")
    against = _choice(
        right, "Against", [name for name in axes if name != count], f"many_against_{generation}"
    )
    names = [name.name for name in layout.inputs]
    grid = sweep_charts.heat_map(rows, count, names, theme) if session.many.is_grid else None
    charts = [
        ("How often", sweep_charts.histogram(rows, count, theme)),
        ("Run by run", sweep_charts.scatter(rows, count, against, theme)),
        ("Branches", sweep_charts.branches(rows, layout, theme)),
        ("Over the grid", grid),
    ]
    for number, (title, chart) in enumerate(
        (title, chart) for title, chart in charts if chart is not None
    ):
        with (left, right)[number % 2]:
            markup.show(markup.section(title))
            height = (
                sweep_charts.height_of_branches(chart)
                if title == "Branches"
                else chart_of_runs.HEIGHT
            )
            chart_of_runs.show(chart, f"many_chart_{title}_{generation}", height)
    separation_line.show(session, sweeping, count)


def _choice(
    column: st.delta_generator.DeltaGenerator, label: str, options: list[str], key: str
) -> str:
    chosen = column.selectbox(
        label, options, key=key, format_func=lambda name: neutral(said(str(name)), 80)
    )
    return str(chosen)
