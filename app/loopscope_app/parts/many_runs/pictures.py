"""Pictures of many runs and their threshold. A click on a run opens it in the debugger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from loopscope.errors import EngineError, neutral
from loopscope.ir import significant
from loopscope.object_cache import cache_by_object
from loopscope.sweeps import features_of, numbers, separation
from loopscope_app.actions import running_many
from loopscope_app.describe import sweep_charts
from loopscope_app.describe.sweep_charts import PICKED, Chart, Theme
from loopscope_app.describe.sweep_words import counts, drawable, in_words, said, separation_words
from loopscope_app.state.many_runs import Sweeping
from loopscope_app.state.user_session import UserSession, widget

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
            show_chart(chart, key, HEIGHT)


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


_USUAL_SHARE = 0.9
"""Share of the runs at or below the threshold that is proposed."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The chosen columns and the bound between few and many."""

    column: str
    """Column of the count."""
    against: str
    """Column of the other axis."""
    bound: float

    @property
    def above(self) -> str:
        """Condition of the runs above the bound, as a filter of the table."""
        return f"{self.column} > {significant(self.bound, 6)}"


def choose(session: UserSession, sweeping: Sweeping) -> Threshold | None:
    """Show the fields of the threshold in one row; None without a number to draw."""
    layout, rows = sweeping.sweep.layout, sweeping.rows
    axes = drawable(layout, rows)
    shown = counts(layout) or axes[1:2]
    if not len(rows) or not shown:
        return None
    generation = session.many.generation
    column = _column("Count", shown, f"many_count_{generation}")
    others = [name for name in axes if name != column]
    against = _column("Against", others, f"many_against_{generation}") if others else ""
    key = f"many_more_than_{generation}_{column}"
    bound = st.number_input(
        "Threshold",
        min_value=0,
        value=usual_bound(numbers(rows, column)),
        step=1,
        key=key,
        width=150,
        label_visibility="collapsed",
        help="Runs above this count are coloured, described and listed",
    )
    return Threshold(column, against, float(bound))


def usual_bound(values: np.ndarray) -> int:
    """Return a bound that a tenth of the runs is above; below the largest value.

    >>> usual_bound(np.array([1, 1, 1, 7])), usual_bound(np.array([3, 3])), usual_bound(np.zeros(0))
    (5, 2, 0)
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0
    return max(0, int(min(np.quantile(finite, _USUAL_SHARE), finite.max() - 1)))


def sentence(sweeping: Sweeping, threshold: Threshold) -> str:
    """Return what separates the runs above the threshold; empty if all counts are equal."""
    values = numbers(sweeping.rows, threshold.column)
    values = values[np.isfinite(values)]
    if not len(values) or values.min() == values.max():
        return ""
    try:
        return _separation(sweeping, threshold.column, threshold.bound)
    except EngineError as error:
        return str(error)


@cache_by_object
def _separation(sweeping: Sweeping, column: str, bound: float) -> str:
    features = features_of(sweeping.model, sweeping.samples, sweeping.rows)
    result = separation(sweeping.rows, column, bound, features)
    return in_words(separation_words(result), sweeping.rows)


def _column(label: str, options: list[str], key: str) -> str:
    chosen = st.selectbox(
        label,
        options,
        key=key,
        format_func=lambda name: neutral(said(str(name)), 80),
        label_visibility="collapsed",
        width=230,
    )
    return str(chosen)


def show_chart(chart: Chart | None, key: str, height: int) -> None:
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
