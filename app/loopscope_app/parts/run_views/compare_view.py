"""Two runs side by side: the first place where values or control flow differ, both timelines, both
outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import streamlit as st

import loopscope
from loopscope.errors import elided
from loopscope.explain import Comparison, RunDifference, compare, icicle
from loopscope.ir import Model, is_trace, readable
from loopscope.peers import runtime_of
from loopscope.view import value_preview
from loopscope_app.actions import moves, report_errors, selection, side_by_side
from loopscope_app.describe.wording import record_sentence
from loopscope_app.parts.run_views import (
    drift_view,
    other_run,
    runtime_difference,
    source_view,
    whole_run,
)
from loopscope_app.parts.widgets import chain, lanes, markup
from loopscope_app.state.compare_choice import (
    BEFORE,
    CHOICE,
    MODEL,
    ROUNDED,
    RUNTIME,
    SOURCE,
    UNCHANGED,
)
from loopscope_app.state.launch import paths_allowed
from loopscope_app.state.open_model import Opened
from loopscope_app.state.run_in_view import Compared
from loopscope_app.state.user_session import UserSession, place, widget

KEY = "compare"
MOST_RECORDS = 300

_found: WeakKeyDictionary[loopscope.Debugger, tuple[int, Comparison, lanes.Chart]] = (
    WeakKeyDictionary()
)


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is None or session.run.debugger is None:
        return
    runtime = "" if session.run.changes or is_trace(opened.model) else runtime_of(opened.model)
    texts = _texts(session, opened, runtime)
    if widget(CHOICE) not in texts:
        place(CHOICE, next(iter(texts)))
    field, button = st.columns([5, 1.4], vertical_alignment="bottom", gap="small")
    name = field.selectbox(
        "Compare with",
        list(texts),
        key=CHOICE,
        format_func=lambda choice: texts[choice],
        label_visibility="collapsed",
    )
    button.button(
        "Compare",
        key="compare_run",
        icon=":material/compare_arrows:",
        on_click=_run,
        width="stretch",
    )
    other_run.fields(session, name)
    if name == RUNTIME:
        runtime_difference.show(session.run.other_runtime, session.model.fates, runtime)
        other_run.other_precision(session)
    if name == SOURCE:
        source_view.show(session.run.source)
        return
    if name in (RUNTIME, MODEL, ROUNDED):
        if session.run.drifted is not None and session.run.drifted.name == name:
            drift_view.show(session, session.run.drifted)
        return
    compared = session.run.compared
    if compared is None or compared.name != name:
        markup.show(
            "Both runs start at the beginning; the run that you step through stays where it is.",
            "quiet",
        )
        return
    _show(opened.model, compared, session)


def _texts(session: UserSession, opened: Opened, runtime: str) -> dict[str, str]:
    """Return the runs to compare with, as words."""
    texts = {UNCHANGED: "the run without what was set by hand"} if session.run.changes else {}
    for name in opened.sets:
        if name != session.model.input_set:
            texts[name] = (opened.sample.text_of(name) if opened.sample else "") or name.replace(
                "_", " "
            )
    if session.model.before:
        texts[BEFORE] = "the inputs of the run before"
    if runtime:
        texts[RUNTIME] = f"the same run in {runtime}"
    if is_trace(opened.model):
        return {MODEL: "another trace, or a model"}
    texts[ROUNDED] = "the same run with values rounded to a narrower type"
    if not session.run.changes:
        texts[MODEL] = "another model on the same inputs"
    if not session.run.changes and paths_allowed(st.get_option("server.address")):
        texts[SOURCE] = "the program that it was converted from (torch, TensorFlow)"
    return texts


@report_errors.clear_and_show_errors
def _run() -> None:
    side_by_side.compare_with(str(widget(CHOICE)))


def _show(model: Model, compared: Compared, session: UserSession) -> None:
    comparison, chart = _compared(compared)
    differences = [
        difference
        for difference in (comparison.first_value, comparison.first_control_flow)
        if difference is not None
    ]
    is_part = _tell_unfinished(compared)
    steps = f"{comparison.compared_steps:,} step{'' if comparison.compared_steps == 1 else 's'}"
    if is_part and not differences:
        markup.show(f"The runs are equal as far as both came: {steps}.")
    elif not differences:
        markup.show(
            f"{markup.chip('equal', 'good')} The runs are equal in all {steps} that were compared."
        )
    chain.show(
        [line(difference) for difference in differences],
        key=KEY,
        on_pick=lambda number: _go(differences[number]),
    )
    cursor = session.run.debugger.cursor.step if session.run.debugger else None
    lanes.show(
        chart, key="compare_lanes", cursor=cursor, on_pick=lambda pick: moves.seek(int(pick.at))
    )
    left, right = st.columns(2, gap="medium")
    with left:
        markup.show(markup.section("Loops and branches"))
        _table(flows(compared), "compare_flows")
    with right:
        markup.show(markup.section("Outputs"))
        _table(outputs(model, compared), "compare_outputs")


def _tell_unfinished(compared: Compared) -> bool:
    """Show why a run did not finish; return True if one did not."""
    unfinished = [
        (name, run)
        for name, run in (("This run", compared.one), ("The other", compared.other))
        if run.state != "finished"
    ]
    for name, run in unfinished:
        why = markup.sentence(run.failure or "it was stopped")
        markup.show(f"{markup.chip('unfinished', 'bad')} {name} did not come to its end: {why}")
    return bool(unfinished)


def _table(rows: list[dict[str, str]], key: str) -> None:
    if not rows:
        markup.show("There are none.", "quiet")
        return
    narrow = {
        "": st.column_config.TextColumn(width=36),
        "place": st.column_config.TextColumn(width=150),
    }
    height = 28 * (1 + min(len(rows), 7)) + 12
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        width="stretch",
        row_height=28,
        height=height,
        key=key,
        column_config=narrow,
    )


def _compared(compared: Compared) -> tuple[Comparison, lanes.Chart]:
    steps = compared.one.steps + compared.other.steps
    cached = _found.get(compared.other)
    if cached is None or cached[0] != steps:
        comparison = compare(compared.one, compared.other)
        cached = _found[compared.other] = (steps, comparison, chart_of(compared, comparison))
    return cached[1], cached[2]


def chart_of(compared: Compared, comparison: Comparison) -> lanes.Chart:
    """Return both timelines over one axis, with the places where they differ."""
    drawn: list[lanes.Lane] = []
    for title, run in (("this run", compared.one), ("the other", compared.other)):
        chart = whole_run.chart_of(run, icicle(run), None)
        for number, lane in enumerate(chart.lanes):
            name = title if number == 0 else lane.name
            drawn.append(
                lanes.Lane(name, lane.blocks, height=14 if number == 0 else 20, strong=number == 0)
            )
    marks: list[lanes.Mark] = []
    if comparison.first_value is not None:
        marks.append(
            lanes.Mark(comparison.first_value.step, "nan", comparison.first_value.sentence)
        )
    if comparison.first_control_flow is not None:
        marks.append(
            lanes.Mark(
                comparison.first_control_flow.step, "now", comparison.first_control_flow.sentence
            )
        )
    return lanes.Chart(
        "two runs over their steps",
        "step",
        max(compared.one.steps, compared.other.steps, 1),
        drawn,
        marks,
    )


def line(difference: RunDifference) -> chain.ChainLine:
    """Return a difference as a line of a list."""
    what = {
        "value": "first other value",
        "shape": "first other shape",
        "branch": "first other branch",
        "iterations": "other number of iterations",
        "length": "other length",
    }[difference.kind]
    live = difference.kind != "length"
    return chain.ChainLine(
        elided(readable(difference.address), 200),
        what,
        "",
        f"{difference.one}  ≠  {difference.other}",
        0,
        "bad" if difference.kind in ("value", "shape") else "branch",
        difference.sentence,
        live,
    )


def _go(difference: RunDifference) -> None:
    """Go to the moment before the first difference in the stepped run, and select its place."""
    moves.seek(
        difference.address.partition(":")[0] if difference.kind != "iterations" else difference.step
    )
    if difference.kind != "iterations":
        selection.reveal_place(difference.address)


def flows(compared: Compared) -> list[dict[str, str]]:
    """Return what each loop and branch did in both runs, differences first."""
    runs: list[dict[str, str]] = []
    for run in (compared.one, compared.other):
        records = run.control_flow
        runs.append(
            {
                record.address: record_sentence(record)
                for record in (records[number] for number in range(min(len(records), MOST_RECORDS)))
            }
        )
    addresses = list(dict.fromkeys([*runs[0], *runs[1]]))
    rows = [
        (address, runs[0].get(address, "did not run"), runs[1].get(address, "did not run"))
        for address in addresses
    ]
    rows.sort(key=lambda row: row[1] == row[2])
    return [
        {
            "": "" if record == other else "≠",
            "place": readable(address),
            "this run": record,
            "the other": other,
        }
        for address, record, other in rows
    ]


def outputs(model: Model, compared: Compared) -> list[dict[str, str]]:
    """Return the outputs of both runs, if they finished."""
    values = [_outputs(run) for run in (compared.one, compared.other)]
    rows = []
    for number, signature in enumerate(model.outputs):
        shown = [
            value_preview(values_of_run[number]) if values_of_run else "did not finish"
            for values_of_run in values
        ]
        same = all(values) and same_value(values[0][number], values[1][number])
        name = next(iter(signature.names), signature.name)
        rows.append(
            {"": "" if same else "≠", "output": name, "this run": shown[0], "the other": shown[1]}
        )
    return rows


def _outputs(run: loopscope.Debugger) -> Sequence[np.ndarray]:
    return run.result.outputs if run.state == "finished" else ()


def same_value(left: object, right: object) -> bool:
    """Return True if two outputs are equal. NaN equals NaN."""
    if (
        isinstance(left, np.ndarray)
        and isinstance(right, np.ndarray)
        and left.dtype.kind in "fc"
        and right.dtype.kind in "fc"
    ):
        return bool(np.array_equal(left, right, equal_nan=True))
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return bool(np.array_equal(left, right))
    return value_preview(left) == value_preview(right)
