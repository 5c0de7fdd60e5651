"""The runs above the threshold, or all, as a table. A click on a row opens its run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from loopscope.errors import neutral
from loopscope.ir import significant
from loopscope.sweeps import numbers, places_where
from loopscope_app.actions import running_many
from loopscope_app.describe.sweep_words import problem, said
from loopscope_app.parts.many_runs.pictures import Threshold
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession, widget

ABOVE, ALL = "Above", "All"
_MAX_ROWS, _LONGEST_TITLE, _HEIGHT = 5000, 100, 240


def show(session: UserSession, rows: pa.Table, threshold: Threshold | None) -> None:
    """Show the runs above the threshold, or all of them; a condition filters further."""
    above = _above(rows, threshold)
    part, where = _filters(session.many.generation, rows, len(above), threshold)
    refused = problem(rows, where)
    matching = places_where(rows, "" if refused else where)
    places = np.intersect1d(matching, above) if part == ABOVE else np.asarray(matching)
    if refused:
        markup.show(f"{markup.chip('not a condition', 'bad')} {markup.sentence(refused)}")
    elif where or len(places) > _MAX_ROWS:
        more = f", the first {_MAX_ROWS:,} shown" if len(places) > _MAX_ROWS else ""
        markup.show(f"{len(places):,} of {len(rows):,} runs{more}", "quiet")
    _show_table(f"many_table_{session.many.generation}", rows, places[:_MAX_ROWS])


def _filters(
    generation: int, rows: pa.Table, above: int, threshold: Threshold | None
) -> tuple[str | None, str]:
    """Draw the choice of runs, with ``above`` above the threshold, and the field for a condition.

    Return the part that is chosen and the condition.
    """
    with st.container(key="many_table_bar", horizontal=True, vertical_alignment="center"):
        parts = {ABOVE: above, ALL: len(rows)} if above else {ALL: len(rows)}
        part = st.segmented_control(
            "Runs",
            list(parts),
            default=next(iter(parts)),
            key=f"many_part_{generation}_{len(parts)}",
            required=True,
            format_func=lambda name: _part_words(str(name), parts, threshold),
            label_visibility="collapsed",
            width="content",
        )
        where = str(
            st.text_input(
                "Only runs where",
                key=f"many_where_{generation}",
                placeholder=f"Only runs where {_example(rows)} > 3 and seconds < 1",
                max_chars=300,
                label_visibility="collapsed",
                help="Comparisons of columns, joined by `and`; texts in quotes: "
                'ended LOOP == "condition", error contains "shape"',
            )
        )
    return part, where


def _show_table(key: str, rows: pa.Table, places: np.ndarray) -> None:
    """Draw the runs at ``places``. A click on a row opens its run."""

    def opened() -> None:
        chosen = (widget(key) or {}).get("selection", {}).get("rows") or []
        if chosen and isinstance(chosen[0], int) and chosen[0] < len(places):
            running_many.open_sample(rows["sample"][int(places[chosen[0]])].as_py())

    st.dataframe(
        rows.select(_columns_with_values(rows)).take(pa.array(places)).to_pandas(),
        key=key,
        height=_HEIGHT,
        width="stretch",
        hide_index=True,
        on_select=opened,
        selection_mode="single-row",
        column_config={name: neutral(said(name), _LONGEST_TITLE) for name in rows.column_names},
    )


def _above(rows: pa.Table, threshold: Threshold | None) -> np.ndarray:
    """Return the places of the runs above the threshold."""
    if threshold is None:
        return np.zeros(0, np.int64)
    return np.flatnonzero(numbers(rows, threshold.column) > threshold.bound)


def _part_words(name: str, parts: dict[str, int], threshold: Threshold | None) -> str:
    bound = significant(threshold.bound) if threshold is not None else ""
    return f"{name} {bound} · {parts[name]:,}" if name == ABOVE else f"{name} · {parts[name]:,}"


def _columns_with_values(rows: pa.Table) -> list[str]:
    """Return the columns that have a value in at least one run."""
    return [name for name in rows.column_names if rows[name].null_count < len(rows)]


def _example(rows: pa.Table) -> str:
    return said(
        next((name for name in rows.column_names if name.startswith("iterations ")), "sample")
    )
