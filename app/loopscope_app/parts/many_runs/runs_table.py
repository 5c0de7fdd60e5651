"""The runs as a sortable table. A condition filters the rows; a click on a row opens its run."""

from __future__ import annotations

import pyarrow as pa
import streamlit as st

from loopscope.errors import neutral
from loopscope.sweeps import places_where
from loopscope_app.actions import running_many
from loopscope_app.describe.sweep_columns import problem, said
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession, widget

_MAX_ROWS, _LONGEST_TITLE = 5000, 100


def show(session: UserSession, rows: pa.Table) -> None:
    generation = session.many.generation
    key = f"many_table_{generation}"
    title, condition = st.columns([2, 5], vertical_alignment="bottom")
    where = str(
        condition.text_input(
            "Only runs where",
            key=f"many_where_{generation}",
            placeholder=f"{_example(rows)} > 3 and seconds < 1",
            max_chars=300,
            help="Comparisons of columns, joined by `and`; texts in quotes: "
            'ended LOOP == "condition", error contains "shape"',
        )
    )
    refused = problem(rows, where)
    places = places_where(rows, "" if refused else where)
    with title:
        more = f", the first {_MAX_ROWS:,} shown" if len(places) > _MAX_ROWS else ""
        markup.show(markup.section(f"{len(places):,} of {len(rows):,} runs{more}"))
    if refused:
        markup.show(f"{markup.chip('not a condition', 'bad')} {markup.sentence(refused)}")
    shown = places[:_MAX_ROWS]

    def opened() -> None:
        chosen = (widget(key) or {}).get("selection", {}).get("rows") or []
        if chosen and isinstance(chosen[0], int) and chosen[0] < len(shown):
            running_many.open_sample(rows["sample"][int(shown[chosen[0]])].as_py())

    st.dataframe(
        rows.select(_columns_with_values(rows)).take(pa.array(shown)).to_pandas(),
        key=key,
        height=320,
        width="stretch",
        hide_index=True,
        on_select=opened,
        selection_mode="single-row",
        column_config={name: neutral(said(name), _LONGEST_TITLE) for name in rows.column_names},
    )


def _columns_with_values(rows: pa.Table) -> list[str]:
    """Return the columns that have a value in at least one run."""
    return [name for name in rows.column_names if rows[name].null_count < len(rows)]


def _example(rows: pa.Table) -> str:
    return said(
        next((name for name in rows.column_names if name.startswith("iterations ")), "sample")
    )
