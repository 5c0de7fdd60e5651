"""The progress and the result of many runs: findings, pictures, a table of the runs.

One threshold applies to all of them. A second sweep on the same inputs, of another model or in
another precision, can be compared with it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from loopscope.errors import elided, neutral
from loopscope.ir import significant
from loopscope.object_cache import cache_by_object
from loopscope.sweeps import Change, Changes, SweepSummary, changes_between, numbers, places_where
from loopscope_app.actions import running_many
from loopscope_app.describe import sweep_charts, sweep_words
from loopscope_app.describe.sweep_charts import Theme
from loopscope_app.describe.sweep_words import SweepFinding, findings, problem, progress, said
from loopscope_app.parts.many_runs import pictures
from loopscope_app.parts.many_runs.pictures import Threshold
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state.many_runs import Sweeping
from loopscope_app.state.user_session import UserSession, current, widget


def show(session: UserSession, sweeping: Sweeping) -> None:
    """Draw verdict, threshold, pictures, findings and table of a finished sweep."""
    summary = sweeping.sweep.summary
    verdict = st.container(key="many_verdict")
    with st.container(key="many_threshold", horizontal=True, vertical_alignment="center"):
        markup.show("Runs above the threshold", "quiet nowrap")
        chosen = pictures.choose(session, sweeping)
        ran = sweep_words.outcome(
            summary.rows, sweeping.samples.count, sweeping.cut, sweeping.seconds
        )
        markup.show(f"{markup.text(ran)} · click a bar, point or row to open its run", "quiet")
    with verdict:
        parts = [sweep_words.headline(summary)]
        parts += [pictures.sentence(sweeping, chosen)] if chosen is not None else []
        if any(parts):
            words = "<br>".join(markup.prose(part, 4000) for part in parts if part)
            markup.show(words, "headline")
    if chosen is not None:
        pictures.show(session, sweeping, chosen)
    left, right = st.columns([1, 1.6], gap="medium")
    with left, st.container(key="many_findings_room"):
        _show_findings(summary)
        _show_comparison(session, sweeping)
    with right:
        _show_runs(session, sweeping.rows, chosen)


EVERY = 0.5
"""Seconds between two updates."""


@st.fragment(run_every=EVERY)
def show_progress() -> None:
    """Show the progress until the sweep ends, then draw the whole page again."""
    session = current()
    sweeping = session.many.under_way
    if running_many.is_over(session) or sweeping is None:
        st.rerun()
    doing = (
        f"With {markup.text(session.many.against_title)}"
        if sweeping is session.many.against
        else "Running"
    )
    summary = sweeping.sweep.summary
    with st.container(key="many_progress", horizontal=True, vertical_alignment="center"):
        st.button(
            "Stop",
            key="many_stop",
            icon=":material/stop:",
            on_click=running_many.stop,
            type="primary",
            shortcut="Escape",
        )
        rate = progress(summary.rows, sweeping.sweep.count, sweeping.seconds)
        markup.show(f"<b>{doing}</b> &ensp;{rate}", "tabular")
    st.progress(summary.rows / max(1, sweeping.sweep.count))
    _show_findings(summary, opens=False)


FINDINGS = "many_findings"
_MAX_LINES = 12


def _show_findings(summary: SweepSummary, *, opens: bool = True) -> None:
    """Show the findings. ``opens`` is False while the sweep is running, because opening a run would
    end it.
    """
    lines = list(findings(summary))[:_MAX_LINES]
    if lines:
        place_lists.show_list(
            [_finding_line(finding, opens) for finding in lines],
            key=FINDINGS,
            on_pick=lambda number: _open_finding(lines[number]),
        )


def _finding_line(finding: SweepFinding, opens: bool) -> place_lists.ChainLine:
    live = opens and finding.sample is not None
    return place_lists.ChainLine(
        finding.text,
        finding.title,
        kind="bad" if finding.bad else "",
        value="open" if live else "",
        live=live,
    )


def _open_finding(finding: SweepFinding) -> None:
    if finding.sample is not None:
        running_many.open_sample(finding.sample)


ABOVE, ALL = "Above", "All"
_MAX_ROWS, _LONGEST_TITLE, _TABLE_HEIGHT = 5000, 100, 240


def _show_runs(session: UserSession, rows: pa.Table, threshold: Threshold | None) -> None:
    """Show the runs above the threshold, or all of them; a condition filters further."""
    above = _places_above(rows, threshold)
    part, where = _run_filters(session.many.generation, rows, len(above), threshold)
    refused = problem(rows, where)
    matching = places_where(rows, "" if refused else where)
    places = np.intersect1d(matching, above) if part == ABOVE else np.asarray(matching)
    if refused:
        markup.show(f"{markup.chip('not a condition', 'bad')} {markup.sentence(refused)}")
    elif where or len(places) > _MAX_ROWS:
        more = f", the first {_MAX_ROWS:,} shown" if len(places) > _MAX_ROWS else ""
        markup.show(f"{len(places):,} of {len(rows):,} runs{more}", "quiet")
    _show_table(f"many_table_{session.many.generation}", rows, places[:_MAX_ROWS])


def _run_filters(
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
                placeholder=f"Only runs where {_example_column(rows)} > 3 and seconds < 1",
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
        height=_TABLE_HEIGHT,
        width="stretch",
        hide_index=True,
        on_select=opened,
        selection_mode="single-row",
        column_config={name: neutral(said(name), _LONGEST_TITLE) for name in rows.column_names},
    )


def _places_above(rows: pa.Table, threshold: Threshold | None) -> np.ndarray:
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


def _example_column(rows: pa.Table) -> str:
    return said(
        next((name for name in rows.column_names if name.startswith("iterations ")), "sample")
    )


_MAX_CHANGES, _CHART_HEIGHT = 8, 200
_ROUNDINGS = ("bf16", "f16")


def _show_comparison(session: UserSession, sweeping: Sweeping) -> None:
    """Show the choice of a second sweep and, after it has run, the differences."""
    with st.container(key="many_compare", horizontal=True, vertical_alignment="center"):
        if session.many.against is not None:
            title = markup.text(session.many.against_title, 60)
            markup.show(f"<b>Compared with {title}</b>")
        else:
            markup.show("In another model or a narrower type:", "quiet")
        with st.popover("Compare with", key="many_compare_with"):
            _comparison_choices(session)
    if session.many.against is not None:
        _show_changes(session, sweeping, session.many.against)


def _comparison_choices(session: UserSession) -> None:
    with st.container(horizontal=True):
        for to in _ROUNDINGS:
            st.button(
                f"Floats in {to}",
                key=f"many_round_{to}",
                on_click=running_many.compare_rounded,
                args=(to,),
            )
    key = f"many_other_{session.many.generation}"
    st.file_uploader(
        "Or another model: model.xml with model.bin, or model.onnx",
        type=["xml", "bin", "onnx", "zip"],
        accept_multiple_files=True,
        key=key,
        on_change=running_many.compare_model,
        args=(key,),
    )


def _show_changes(session: UserSession, sweeping: Sweeping, against: Sweeping) -> None:
    changes = _changes(against, sweeping)
    first, *rest = changes.sentences()
    chip = markup.chip("differs", "bad") if changes.changed else markup.chip("the same", "good")
    markup.show(f"{chip} {markup.sentence(first)}")
    if not changes.changed:
        for sentence in rest:
            markup.show(markup.sentence(sentence), "quiet")
        return
    largest = [
        (column.changed, column.largest)
        for column in changes.columns.values()
        if column.largest is not None
    ][:_MAX_CHANGES]
    place_lists.show_list(
        [_change_line(changed, change) for changed, change in largest],
        key="many_changes",
        on_pick=lambda number: running_many.open_sample(largest[number][1].sample),
    )
    pair = next(
        (
            pair
            for pair in changes.pairs
            if pair[0] in changes.columns and not pair[0].startswith("ended ")
        ),
        None,
    )
    if pair is not None:
        theme: Theme = "dark" if st.context.theme.type == "dark" else "light"
        chart = sweep_charts.one_against_other(
            sweeping.rows.slice(0, changes.samples),
            against.rows.slice(0, changes.samples),
            pair,
            theme,
        )
        pictures.show_chart(chart, f"many_against_chart_{session.many.generation}", _CHART_HEIGHT)


@cache_by_object(
    key=lambda against, sweeping: (id(sweeping), len(sweeping.rows), len(against.rows)),
    newest_only=True,
)
def _changes(against: Sweeping, sweeping: Sweeping) -> Changes:
    """Return the changes over the samples that both sweeps have run."""
    count = min(len(sweeping.rows), len(against.rows))
    changes = changes_between(sweeping.sweep.layout, against.sweep.layout)
    changes.add(sweeping.rows.slice(0, count), against.rows.slice(0, count))
    return changes


def _change_line(changed: int, largest: Change) -> place_lists.ChainLine:
    others = f"{changed:,} runs change, this one most" if changed > 1 else "one run changes"
    return place_lists.ChainLine(
        elided(said(largest.column), 200),
        "",
        others,
        f"{largest.one} \u2192 {largest.other}",
        0,
        "back",
        "Open this run",
    )
