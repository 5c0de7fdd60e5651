"""Both runs of a comparison: the iterations of a loop on one scale, and one value side by side."""

from __future__ import annotations

import numpy as np
import streamlit as st

import loopscope
from loopscope.comparison import Spot, cosine_words, operands
from loopscope.errors import EngineError
from loopscope.explain import icicle
from loopscope.ir import readable, significant
from loopscope.object_cache import cache_by_object
from loopscope.view import value_preview
from loopscope_app.actions import side_by_side
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.both_runs import Drifted
from loopscope_app.describe.differences import DifferenceLine
from loopscope_app.describe.loop_execution import place_in_loop
from loopscope_app.describe.node_index import moment_of
from loopscope_app.describe.tape_pair import chart_of, column_of, width_of
from loopscope_app.parts.inspector import value
from loopscope_app.parts.run_views import whole_run
from loopscope_app.parts.widgets import lanes, markup
from loopscope_app.state.run_in_view import ShownDifference

KEY = "compare_tapes"
_MOST_LANES = 3


def show_tapes(
    drifted: Drifted, title: str, lines: list[DifferenceLine], shown: ShownDifference | None
) -> None:
    """Draw the tapes of the loop around the shown difference, or both runs over their steps.

    A click on an iteration shows the same value there.
    """
    address = _address(lines, shown)
    chart = _chart(drifted, title, address)
    lanes.leave_room(chart)
    if chart is not None:
        lanes.show(
            chart,
            key=KEY,
            cursor=column_of(chart, address),
            wide=1,
            on_pick=lambda pick: _pick(drifted, chart, address, int(pick.at)),
        )


def _address(lines: list[DifferenceLine], shown: ShownDifference | None) -> str:
    """Return the shown place if it lies in a loop, else the first difference in a loop."""
    line = next((line for line in lines if shown and line.address == shown.address), None)
    candidates = [line.inside if line else shown.address if shown else ""]
    candidates += [line.inside for line in lines if line.address]
    return next((place for place in candidates if "[" in place), "")


def _subject(_: Drifted, title: str, address: str) -> tuple[str, str, str]:
    """Return the title of the run here, the loop, and the value in its body."""
    place = place_in_loop(address)
    return (title, place.loop, place.rest) if place else (title, "", "")


@cache_by_object(key=_subject)
def _chart(drifted: Drifted, title: str, address: str) -> lanes.Chart | None:
    beside = drifted.address_there(address) if address else ""
    return chart_of(drifted, title, address, beside) or _steps(drifted, title)


def _steps(drifted: Drifted, title: str) -> lanes.Chart | None:
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


def _pick(drifted: Drifted, chart: lanes.Chart, address: str, column: int) -> None:
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


def show_value(drifted: Drifted, spot: Spot) -> None:
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
                _side(title, address, array)
        _read(drifted, spot)
        rows = value.largest_changes(left, right)
        if rows:
            lines = [
                (f'<span class="mono">{list(place)}</span>',
                 (f'<span class="mono">{significant(left_value, 5)} ≠ '
                 f'{significant(other, 5)}</span>'))
                for place, left_value, other in rows
            ]  # fmt: skip
            markup.show(markup.section("Largest differences") + markup.facts(lines))


def _side(title: str, address: str, array: np.ndarray) -> None:
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


def _read(drifted: Drifted, spot: Spot) -> None:
    """Show whether the error was made by this operation or came with its operands."""
    read = operands(drifted.drift, spot)
    if read:
        words = [
            f"<b>{markup.text(name, 60)}</b> {'equal' if not error else significant(error, 2)}"
            for name, error in read
        ]
        markup.show(f"Relative errors of its operands: {', '.join(words)}.", "quiet")
