"""The result of a comparison: verdict, tapes, differences, and a canvas at the first of them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from loopscope.explain import compare
from loopscope.object_cache import cache_by_object
from loopscope_app.actions import side_by_side
from loopscope_app.describe.both_runs import Compared, Drifted
from loopscope_app.describe.differences import (
    DifferenceLine,
    headline,
    lines_of,
    output_lines,
    parting_line,
)
from loopscope_app.parts.run_views import compared_canvas, drift_view, two_runs
from loopscope_app.parts.widgets import lanes, markup, place_lists
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, place, widget
from loopscope_app.state.view_choices import (
    BOTH_CANVASES,
    BY_ITERATION,
    CANVASES,
    COMPARE_PARTS,
    COMPARE_SHOWN,
    COMPARE_SIDES,
    INPUTS,
    STRUCTURE,
    TABLE,
    VALUES,
)

KEY = "compare_differences"
TITLES = ("value", "iteration", "here", "there")


def show(
    session: UserSession,
    opened: Opened,
    drifted: Drifted,
    *,
    verdict: str = "",
    outputs: Sequence[DifferenceLine] = (),
    note: str = "",
) -> None:
    """Show a comparison of values.

    ``verdict`` replaces the sentences about the values, if given. ``outputs`` are differences that
    the values do not contain. ``note`` is a sentence below the differences.
    """
    lines = _lines(drifted, session, outputs)
    kind = "bad" if lines else "good"
    words = headline(opened.model, lines, drifted.drift) or drifted.sentence
    show_verdict(verdict or words, kind)
    _begin_at_first(session, lines)
    shown = session.run.difference
    two_runs.show_tapes(drifted, title_of(session, opened, drifted.name), lines, shown)
    has_structure = widget(COMPARE_SHOWN) == STRUCTURE and drifted.structure is not None
    has_choice = drifted.other is not None and shown is not None and not has_structure
    both = has_choice and CANVASES.shown() == BOTH_CANVASES
    left, right = st.columns([1.25, 2] if both else [1, 1], gap="small" if both else "medium")
    with left, st.container(key="compare_left"):
        _parts(session, drifted, lines, note, with_matching=not both)
    with right, st.container(key="compare_right"):
        if has_choice:
            _choose_canvases()
        if both:
            compared_canvas.show_both(
                session, opened, drifted, title_of(session, opened, drifted.name)
            )
        elif has_structure and drifted.structure is not None:
            compared_canvas.show_canvas(session, opened, drifted.structure)
        else:
            compared_canvas.show(session, opened)


@cache_by_object(key=lambda *_: None)
def _lines(
    drifted: Drifted, session: UserSession, outputs: Sequence[DifferenceLine]
) -> list[DifferenceLine]:
    return [*lines_of(drifted, inputs=_other_inputs(session, drifted)), *outputs]


def _choose_canvases() -> None:
    """Show the choice between one canvas and two."""
    if widget(COMPARE_SIDES) not in CANVASES.options:
        place(COMPARE_SIDES, CANVASES.shown())
    with st.container(key="compare_canvases", horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "Canvases",
            CANVASES.options,
            key=COMPARE_SIDES,
            required=True,
            label_visibility="collapsed",
            width="content",
        )
        if CANVASES.shown() == BOTH_CANVASES:
            st.button(
                "Open in Debug",
                key="compare_open_both",
                on_click=side_by_side.open_in_debug,
                help="Go to this moment in the run that you step through",
            )


def show_unfinished(session: UserSession, opened: Opened, compared: Compared) -> None:
    """Show the first differences of two runs of which one did not finish."""
    for name, run in (("The run here", compared.run), ("The other run", compared.other)):
        if run.state != "finished":
            why = markup.sentence(run.failure or "it was stopped")
            markup.show(f"{markup.chip('unfinished', 'bad')} {name} did not finish: {why}")
    lines = unfinished_lines(compared)
    steps = min(compared.run.steps, compared.other.steps)
    equal = f"Both runs agree for all {steps:,} steps that both executed."
    show_verdict(headline(opened.model, lines) or equal, "bad" if lines else "good")
    _begin_at_first(session, lines)
    titles = (title_of(session, opened), side_by_side.words_of(session, opened, compared.name))
    chart = two_runs.steps_chart(titles, (compared.run, compared.other))
    lanes.leave_room(chart)
    lanes.show(chart, key=two_runs.KEY, cursor=None, on_pick=lambda _: None)
    left, right = st.columns([1, 1], gap="medium")
    with left, st.container(key="compare_left"):
        _table(lines, session)
    with right:
        compared_canvas.show(session, opened)


@cache_by_object(key=lambda compared: compared.run.steps + compared.other.steps, newest_only=True)
def unfinished_lines(compared: Compared) -> list[DifferenceLine]:
    """Return the first different value and the first different decision of two runs."""
    result = compare(compared.run, compared.other)
    firsts = [entry for entry in (result.first_value, result.first_control_flow) if entry]
    return [*map(parting_line, firsts), *output_lines(compared.run, compared.other, 0.0)]


def show_verdict(words: str, kind: str) -> None:
    """Show the headline of a view. Backticks and asterisks in it are markup."""
    markup.show(markup.prose(words, 4000), f"headline {kind}")


def title_of(session: UserSession, opened: Opened, kind: str = INPUTS) -> str:
    """Return the description of the run here."""
    return side_by_side.words_here(session, opened) if kind == INPUTS else "here"


def _other_inputs(session: UserSession, drifted: Drifted) -> frozenset[str]:
    """Return the names of the inputs that differ; none if the inputs are the same."""
    if drifted.name != INPUTS or session.run.changes:
        return frozenset()
    return frozenset(
        pair.one.rpartition("/")[2]
        for pair in drifted.drift.pairs
        if pair.program.parent is None and not pair.position and pair.first is not None
    )


def _begin_at_first(session: UserSession, lines: Sequence[DifferenceLine]) -> None:
    """Show the first difference, unless another one is chosen."""
    first = next((line for line in lines if line.address), None)
    if session.run.difference is None and first is not None:
        side_by_side.show_difference(first.address, first.step, first.spot)


def _parts(
    session: UserSession,
    drifted: Drifted,
    lines: list[DifferenceLine],
    note: str,
    *,
    with_matching: bool,
) -> None:
    offered = [part for part in COMPARE_PARTS if part != STRUCTURE or drifted.structure is not None]
    if widget(COMPARE_SHOWN) not in offered:
        place(COMPARE_SHOWN, TABLE)
    with st.container(key="compare_parts", horizontal=True, vertical_alignment="center"):
        markup.show(f"<b>{'Differences' if lines else 'No difference'}</b>")
        part = st.segmented_control(
            "Show differences as",
            offered,
            key=COMPARE_SHOWN,
            required=True,
            label_visibility="collapsed",
            width="content",
        )
        if with_matching:  # no room beside two canvases
            drift_view.matching(drifted.drift)
    with st.container(key="compare_part"):
        if part == BY_ITERATION:
            drift_view.show(session, drifted)
        elif part == VALUES:
            _both_values(session, drifted)
        elif part == STRUCTURE and drifted.structure is not None:
            compared_canvas.show_changes(session, drifted.structure)
        else:
            _table(lines, session)
            if note:
                markup.show(markup.sentence(note), "quiet")


def _both_values(session: UserSession, drifted: Drifted) -> None:
    shown = session.run.difference
    if shown is None or shown.spot is None:
        markup.show("Choose a value in the table, or a cell by iteration.", "quiet")
    else:
        two_runs.show_value(drifted, shown.spot)


def _table(lines: Sequence[DifferenceLine], session: UserSession) -> None:
    shown = session.run.difference
    addresses = [line.address for line in lines]
    now = addresses.index(shown.address) if shown and shown.address in addresses else None
    place_lists.show_table(
        TITLES,
        [line.cells for line in lines],
        key=KEY,
        now=now,
        on_pick=lambda number: _pick(lines[number]),
    )


def _pick(line: DifferenceLine) -> None:
    side_by_side.show_difference(line.address, line.step, line.spot)
