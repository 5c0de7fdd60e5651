"""The result of a comparison: verdict, tapes, differences, one value side by side, and a canvas.

The tapes are the iterations of a loop on one scale, or both runs over their steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

import loopscope
from loopscope.comparison import Spot, cosine_words, operands
from loopscope.errors import EngineError
from loopscope.explain import compare, icicle
from loopscope.ir import readable, significant
from loopscope.object_cache import cache_by_object
from loopscope.view import value_preview
from loopscope_app.actions import side_by_side
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.both_runs import Compared, Drifted
from loopscope_app.describe.differences import (
    DifferenceLine,
    headline,
    lines_of,
    output_lines,
    parting_line,
)
from loopscope_app.describe.loop_execution import place_in_loop
from loopscope_app.describe.node_index import moment_of
from loopscope_app.describe.tape_pair import chart_of, column_of, width_of
from loopscope_app.parts.inspector import value
from loopscope_app.parts.run_views import compared_canvas, drift_view, whole_run
from loopscope_app.parts.widgets import lanes, markup, place_lists
from loopscope_app.state.open_model import Opened
from loopscope_app.state.run_in_view import ShownDifference
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
    _show_tapes(drifted, title_of(session, opened, drifted.name), lines, shown)
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
    chart = steps_chart(titles, (compared.run, compared.other))
    lanes.leave_room(chart)
    lanes.show(chart, key=TAPES, cursor=None, on_pick=lambda _: None)
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
        _show_value(drifted, shown.spot)


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


TAPES = "compare_tapes"
_MOST_LANES = 3


def _show_tapes(
    drifted: Drifted, title: str, lines: list[DifferenceLine], shown: ShownDifference | None
) -> None:
    """Draw the tapes of the loop around the shown difference, or both runs over their steps.

    A click on an iteration shows the same value there.
    """
    address = _address_in_a_loop(lines, shown)
    chart = _tapes_chart(drifted, title, address)
    lanes.leave_room(chart)
    if chart is not None:
        lanes.show(
            chart,
            key=TAPES,
            cursor=column_of(chart, address),
            wide=1,
            on_pick=lambda pick: _pick_iteration(drifted, chart, address, int(pick.at)),
        )


def _address_in_a_loop(lines: list[DifferenceLine], shown: ShownDifference | None) -> str:
    """Return the shown place if it lies in a loop, else the first difference in a loop."""
    line = next((line for line in lines if shown and line.address == shown.address), None)
    candidates = [line.inside if line else shown.address if shown else ""]
    candidates += [line.inside for line in lines if line.address]
    return next((place for place in candidates if "[" in place), "")


def _tapes_key(_: Drifted, title: str, address: str) -> tuple[str, str, str]:
    """Return the title of the run here, the loop, and the value in its body."""
    place = place_in_loop(address)
    return (title, place.loop, place.rest) if place else (title, "", "")


@cache_by_object(key=_tapes_key)
def _tapes_chart(drifted: Drifted, title: str, address: str) -> lanes.Chart | None:
    beside = drifted.address_there(address) if address else ""
    return chart_of(drifted, title, address, beside) or _steps_of_both(drifted, title)


def _steps_of_both(drifted: Drifted, title: str) -> lanes.Chart | None:
    """Return both runs over their steps; None for a runtime, which has no steps."""
    if drifted.other is None:
        return None
    return steps_chart((title, drifted.title), (drifted.run, drifted.other))


def steps_chart(
    titles: tuple[str, str], runs: tuple[loopscope.Debugger, loopscope.Debugger]
) -> lanes.Chart:
    """Return two runs over one axis of steps, each as its outermost lanes."""
    drawn: list[lanes.Lane] = []
    for title, run in zip(titles, runs, strict=True):
        for number, lane in enumerate(whole_run.chart_of(run, icicle(run), None).lanes):
            if number < _MOST_LANES:
                name = title if number == 0 else lane.name
                height = 14 if number == 0 else 20
                drawn.append(lanes.Lane(name, lane.blocks, height=height, strong=number == 0))
    extent = max(*(run.steps for run in runs), 1)
    return lanes.Chart("two runs over their steps", "step", extent, drawn)


def _pick_iteration(drifted: Drifted, chart: lanes.Chart, address: str, column: int) -> None:
    """Show the same value in another iteration of the loop, if the run here has it."""
    place = place_in_loop(address)
    if place is None:
        return
    moved = place.at(column * width_of(chart))
    try:
        step = moment_of(drifted.run, moved)
    except EngineError:
        return
    side_by_side.show_difference(moved, step, drifted.spot_at(moved))


_PICTURE_LEAST = 4


def _show_value(drifted: Drifted, spot: Spot) -> None:
    pair = drifted.drift.pairs[spot.pair]
    moment = pair.moment(drifted.run, spot.row)
    try:
        left, right = np.asarray(drifted.run.value(moment.address)), np.asarray(drifted.there(spot))
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return
    where = readable(moment.address)
    apart = (
        "equal"
        if not moment.relative
        else f"{significant(moment.relative, 2)} of the largest magnitude apart"
        + cosine_words(moment)
    )
    matched = "" if pair.how == "name" and pair.one == pair.other else f", matched by {pair.how}"
    with st.container(key="both_moments"):
        markup.show(f"<b>{markup.text(where)}</b>&ensp;{apart}{matched}")
        sides = st.columns(2, gap="medium")
        names = (
            ("here", drifted.title),
            (
                moment.address,
                moment.address
                if drifted.other is None
                else pair.address_beside(drifted.other, spot.row),
            ),
        )
        for column, title, address, array in zip(sides, *names, (left, right), strict=True):
            with column:
                _value_side(title, address, array)
        _show_operand_errors(drifted, spot)
        rows = value.largest_changes(left, right)
        if rows:
            lines = [
                (f'<span class="mono">{list(place)}</span>',
                 (f'<span class="mono">{significant(left_value, 5)} ≠ '
                 f'{significant(other, 5)}</span>'))
                for place, left_value, other in rows
            ]  # fmt: skip
            markup.show(markup.section("Largest differences") + markup.facts(lines))


def _value_side(title: str, address: str, array: np.ndarray) -> None:
    markup.show(
        f"{markup.section(markup.text(title, 80))}"
        f'<span class="mono">{markup.text(value_preview(array), 160)}</span>'
        f'<div class="quiet" style="overflow-wrap:anywhere" title="{markup.text(address, 2000)}">'
        f"{markup.text(readable(address), 240)}</div>"
    )
    plane = (
        tensor_summary.plane(array, [0] * max(array.ndim - 2, 0))
        if array.size
        else np.zeros((0, 0))
    )
    if min(plane.shape) >= _PICTURE_LEAST and plane.dtype.kind != "O":
        markup.show(f'<img alt="heat map" class="heat" src="{tensor_summary.heat_map(plane)}">')


def _show_operand_errors(drifted: Drifted, spot: Spot) -> None:
    """Show whether the error was made by this operation or came with its operands."""
    read = operands(drifted.drift, spot)
    if read:
        words = [
            f"<b>{markup.text(name, 60)}</b> {'equal' if not error else significant(error, 2)}"
            for name, error in read
        ]
        markup.show(f"Relative errors of its operands: {', '.join(words)}.", "quiet")
