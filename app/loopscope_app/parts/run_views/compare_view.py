"""Compare: the run here beside another one, chosen by its kind.

For the model's runtime and its source program: what differs, and what agrees.
"""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.comparison import Drift
from loopscope.errors import elided
from loopscope.ir import graphs, is_trace, readable
from loopscope.object_cache import cache_by_object
from loopscope.peers import ComparisonReport, SourceAlone, SourceReport, runtime_of
from loopscope_app.actions import side_by_side
from loopscope_app.describe.differences import DifferenceLine
from loopscope_app.parts.run_views import compared_canvas, compared_page, other_run
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state.launch import paths_allowed
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, place, widget
from loopscope_app.state.view_choices import (
    BEFORE,
    COMPARE_KIND,
    COMPARE_WITH,
    INPUTS,
    MODEL,
    ROUNDED,
    RUNTIME,
    SOURCE,
    UNCHANGED,
)

_BEFORE_IT_RUNS = {
    INPUTS: "Both runs start at the beginning; the run that you step through stays where it is.",
    ROUNDED: "The same inputs run once as they are and once with values rounded to a narrower "
    "type, as a device computes.",
    MODEL: "Choose another model file: before and after a conversion, a compression, a fix. Both "
    "run on the same inputs.",
}


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is None or session.run.debugger is None:
        return
    runtime = "" if session.run.changes or is_trace(opened.model) else runtime_of(opened.model)
    kind = _choose(session, opened, runtime)
    match kind:
        case "":
            markup.show("This model has nothing to be compared with.", "quiet")
        case str() if kind == RUNTIME:
            show_runtime(session, opened, runtime)
        case str() if kind == SOURCE:
            show_source(session, opened)
        case _:
            _show_runs(session, opened, kind)


def _choose(session: UserSession, opened: Opened, runtime: str) -> str:
    """Show the kinds that are possible, and the fields of the chosen one; return the kind."""
    sets = other_sets(session, opened)
    kinds = kinds_of(session, opened, runtime)
    if widget(COMPARE_KIND) not in kinds:
        place(COMPARE_KIND, next(iter(kinds), None))
    if widget(COMPARE_WITH) not in sets:
        place(COMPARE_WITH, next(iter(sets), None))
    with st.container(key="compare_bar", horizontal=True, vertical_alignment="center"):
        markup.show("Compare this run with", "quiet nowrap")
        kind = st.segmented_control(
            "Compare with",
            list(kinds),
            key=COMPARE_KIND,
            required=True,
            format_func=kinds.__getitem__,
            label_visibility="collapsed",
            width="content",
            on_change=side_by_side.choose_kind,
        )
        if kind == INPUTS:
            st.selectbox(
                "Other inputs",
                list(sets),
                key=COMPARE_WITH,
                format_func=sets.__getitem__,
                label_visibility="collapsed",
                width=260,
                on_change=side_by_side.compare,
            )
        else:
            other_run.fields(session, str(kind))
    return str(kind or "")


def kinds_of(session: UserSession, opened: Opened, runtime: str) -> dict[str, str]:
    """Return the titles of the kinds that are possible for the open run."""
    if is_trace(opened.model):
        return {MODEL: "Another trace or model"}
    kinds = {INPUTS: "Other inputs"} if other_sets(session, opened) else {}
    if runtime:
        kinds[RUNTIME] = runtime
    if _has_floats(opened.model):
        kinds[ROUNDED] = "Lower precision"
    if not session.run.changes:
        kinds[MODEL] = "Another model"
        if paths_allowed(st.get_option("server.address")):
            kinds[SOURCE] = "Source program"
    return kinds


@cache_by_object
def _has_floats(model: loopscope.Model) -> bool:
    """Return True if a value of the model is a float, or may be one."""
    return any(
        port.element_type is None or port.element_type.is_float
        for place in graphs(model)
        for node in place.graph.nodes
        for port in node.outputs
    )


def other_sets(session: UserSession, opened: Opened) -> dict[str, str]:
    """Return the other inputs that this model can be run on, as words."""
    words = {
        name: side_by_side.words_of(session, opened, name)
        for name in ((UNCHANGED,) if session.run.changes else ())
    }
    names = [name for name in opened.sets if name != session.model.input_set]
    names += [BEFORE] if session.model.before else []
    return words | {name: side_by_side.words_of(session, opened, name) for name in names}


def _show_runs(session: UserSession, opened: Opened, kind: str) -> None:
    """Show the comparison with another run; other inputs are compared at once."""
    compared, drifted = session.run.compared, session.run.drifted
    if kind == INPUTS and session.run.compared_with != widget(COMPARE_WITH):
        side_by_side.compare_with(INPUTS)
        if session.run.running is not None or session.message is not None:
            st.rerun()
        compared, drifted = session.run.compared, session.run.drifted
    if drifted is not None and drifted.name == kind:
        compared_page.show(session, opened, drifted)
    elif kind == INPUTS and compared is not None and compared.name == widget(COMPARE_WITH):
        compared_page.show_unfinished(session, opened, compared)
    else:
        markup.show(_BEFORE_IT_RUNS[kind], "quiet")


AGAINST = "against"


def show_runtime(session: UserSession, opened: Opened, runtime: str) -> None:
    """Show the result of a comparison; before it, what Compare will do."""
    report, drifted = session.run.other_runtime, session.run.drifted
    if report is None:
        markup.show(
            f"{runtime} runs the model on the same inputs and returns every inner value. The first "
            "that differs is shown.",
            "quiet",
        )
        return
    words = runtime_verdict(report, drifted.drift if drifted and drifted.name == RUNTIME else None)
    other_run.other_precision(session)
    if drifted is not None and drifted.name == RUNTIME and not report.agrees:
        outputs = [line for line in runtime_lines(report) if not line.address]
        compared_page.show(
            session, opened, drifted, verdict=words, outputs=outputs, note=_runtime_note(report)
        )
    else:
        compared_page.show_verdict(words, "good" if report.agrees else "bad")
        left, right = st.columns([1, 1], gap="medium")
        with left, st.container(key="compare_left"):
            _runtime_table(session, runtime_lines(report))
            markup.show(markup.sentence(_runtime_note(report)), "quiet")
        with right:
            compared_canvas.show(session, opened)


def runtime_verdict(report: ComparisonReport, drift: Drift | None) -> str:
    """Return the headline: the first difference with its cause, or what agrees."""
    first = report.first
    if report.agrees or first is None:
        return report.sentence
    place = elided(readable(first.address), 160)
    parts = [f"**First difference: {place}**, {first.here} here, {first.there} there."]
    if drift is not None and drift.first is not None and drift.first.growth is not None:
        parts.append(f"The error {drift.first.growth.words}.")
    return " ".join((*parts, *filter(None, (report.cause, report.rounding))))


def runtime_lines(report: ComparisonReport) -> list[DifferenceLine]:
    """Return the first different inner value and the different outputs."""
    first = [report.first] if report.first is not None else []
    return [
        *(
            DifferenceLine(
                elided(readable(value.address), 80),
                "",
                value.here,
                value.there,
                value.address,
                value.step,
            )
            for value in first
        ),
        *(
            DifferenceLine(f"{value.address} (output)", "", value.here, value.there, "", -1)
            for value in report.outputs
        ),
    ]


def _runtime_table(session: UserSession, lines: list[DifferenceLine]) -> None:
    if not lines:
        return
    if session.run.difference is None:
        side_by_side.show_difference(lines[0].address, lines[0].step)
    place_lists.show_table(
        compared_page.TITLES,
        [line.cells for line in lines],
        key=AGAINST,
        now=None,
        on_pick=lambda number: side_by_side.show_difference(
            lines[number].address, lines[number].step
        ),
    )


def _runtime_note(report: ComparisonReport) -> str:
    """Return a sentence about what was not compared."""
    left_out = [f"{count:,} {reason}" for reason, count in report.left_out.items()]
    return report.refused or (f"Not compared: {', '.join(left_out)}." if left_out else "")


SOURCE_KEY, SOURCE_TABLE = "beside_source", "source_table"


def show_source(session: UserSession, opened: Opened) -> None:
    """Show the result; before it exists, what Compare will do."""
    report = session.run.source
    if report is None:
        markup.show(
            "torch or TensorFlow runs the program on the same inputs and watches its loops and "
            "branches. Its values are shown beside the run here and the model's runtime.",
            "quiet",
        )
        return
    is_equal = isinstance(report, SourceReport) and report.agrees
    compared_page.show_verdict(report.sentence, "good" if is_equal else "bad")
    lines = source_lines(report) if isinstance(report, SourceReport) else []
    if session.run.difference is None and lines:
        side_by_side.show_difference(lines[0].address, lines[0].step)
    left, right = st.columns([1, 1], gap="medium")
    with left, st.container(key="compare_left"):
        if lines:
            place_lists.show_table(
                ("value", "iteration", "here", "in the source"),
                [line.cells for line in lines],
                key=SOURCE_KEY,
                now=None,
                on_pick=lambda number: side_by_side.show_difference(
                    lines[number].address, lines[number].step
                ),
            )
        _source_table(session, report)
    with right:
        compared_canvas.show(session, opened)


def source_lines(report: SourceReport) -> list[DifferenceLine]:
    """Return all inner differences, the earliest first."""
    rows = [
        (region.first, "branch" if region.kind == "cond" else "iterations")
        for region in report.regions
        if region.first is not None
    ]
    rows += [
        (value.first, "")
        for region in report.regions
        for value in region.values
        if value.first is not None
    ]
    rows.sort(key=lambda row: row[0].step)
    return [
        DifferenceLine(
            elided(readable(first.address), 60) + (f" ({what})" if what else ""),
            "",
            first.here,
            first.there,
            first.address,
            first.step,
        )
        for first, what in rows
    ]


def _source_table(session: UserSession, report: SourceReport | SourceAlone) -> None:
    head, *rows = report.table()
    if not rows:
        return
    regions = report.regions if isinstance(report, SourceReport) else ()

    def pick(number: int) -> None:
        first = regions[number].first if number < len(regions) else None
        if first is not None:
            side_by_side.show_difference(first.address, first.step)

    place_lists.show_table(
        ("source = file", *head[1:]), rows, key=SOURCE_TABLE, now=None, on_pick=pick
    )
