"""Errors of a comparison by iteration: loops, or the values of one loop, as one picture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import streamlit as st

from loopscope.comparison import (
    OUTSIDE,
    Cell,
    Drift,
    Heat,
    HeatRow,
    Spot,
    heat_of_loops,
    heat_of_values,
    loops,
    spot_of,
)
from loopscope.ir import iteration_range, iteration_words, readable, readable_steps, significant
from loopscope.object_cache import cache_by_object
from loopscope_app.actions import other_runs, side_by_side
from loopscope_app.describe.both_runs import Drifted
from loopscope_app.parts.widgets import lanes, markup
from loopscope_app.state.user_session import UserSession, place, widget
from loopscope_app.state.view_choices import COMPARE_LOOP

KEY = "drift"
ALL = "all loops"
MOST_COLUMNS, MOST_ROWS, MOST_LISTED = 128, 40, 200
_ROOMY, _NARROW, _MANY = 22, 14, 12
"""Heights of a lane, and up to how many lanes there is room for high ones."""
_LEAST = 1e-8
"""Relative error below which a cell is nearly blank; an error of 1 has the full colour."""


def show(session: UserSession, drifted: Drifted) -> None:
    """Show the errors of loops, or of the values of one loop, by iteration."""
    if drifted.drift.pairs:
        _picture(session, drifted)
    else:
        markup.show("No value could be compared.", "quiet")


def _picture(session: UserSession, drifted: Drifted) -> None:
    bodies = loops(drifted.drift)
    options = [ALL, *bodies] if len(bodies) > 1 else [*bodies, ALL]
    if widget(COMPARE_LOOP) not in options:
        place(COMPARE_LOOP, options[0])
    if len(bodies) > 1:
        st.selectbox(
            "Loops or values",
            options,
            key=COMPARE_LOOP,
            format_func=_title,
            label_visibility="collapsed",
        )
    chosen = str(widget(COMPARE_LOOP))
    heat, chart, left_out = _chart(drifted.drift, chosen)

    def picked(pick: lanes.Pick) -> None:
        row = heat.rows[pick.lane] if pick.lane >= 0 else heat.rows[0]
        cell = (
            row.cells[min(int(pick.at), len(row.cells) - 1)]
            if row.address != OUTSIDE
            else row.cells[0]
        )
        if pick.on_name:
            _pick_name(drifted, row, chosen)
        elif cell is not None and pick.lane >= 0:
            _show_cell(drifted, cell.spot)

    _largest(drifted)
    more = f"&ensp;{left_out:,} rows with smaller differences are left out." if left_out else ""
    within = f"up to the tolerance of {significant(drifted.drift.tolerance, 6)}"
    legend = (
        f'<i class="key heat"></i>{within}, <i class="key heat over"></i>beyond'
        if drifted.drift.tolerance
        else '<i class="key heat over"></i>small to large differences'
    )
    markup.show(f"{legend}. A click on a cell shows both values.{more}", "quiet")
    lanes.show(chart, key=KEY, cursor=_column(session, drifted, heat), wide=1, on_pick=picked)


def _largest(drifted: Drifted) -> None:
    """Show a button to the largest difference."""
    worst = drifted.drift.worst
    if worst is None or not worst.worst.relative:
        return
    place_words = readable(worst.worst.address)
    st.button(
        markup.plain(f"Largest: {place_words}, {significant(worst.worst.relative, 2)}", 120),
        key="drift_largest",
        type="tertiary",
        on_click=_show_cell,
        args=(drifted, spot_of(drifted.drift, worst, worst.worst)),
        help="Relative to the largest magnitude in the tensor; shows both values",
    )


def _show_cell(drifted: Drifted, spot: Spot) -> None:
    moment = drifted.drift.pairs[spot.pair].moment(drifted.run, spot.row)
    side_by_side.show_cell(moment.address, moment.step, spot)


def _pick_name(drifted: Drifted, row: HeatRow, chosen: str) -> None:
    """Open the values of a loop, or show the largest difference of a value."""
    if chosen == ALL and row.address != OUTSIDE:
        other_runs.show_values_of(row.address)
    elif chosen != ALL:
        cells = [cell for cell in row.cells if cell is not None]
        _show_cell(drifted, max(cells, key=lambda cell: cell.error).spot)


def _title(body: str) -> str:
    return ALL if body == ALL else f"values of {readable(body)}"


def _column(session: UserSession, drifted: Drifted, heat: Heat) -> float | None:
    spot = session.run.difference.spot if session.run.difference is not None else None
    if spot is None:
        return None
    iteration = max(int(drifted.drift.pairs[spot.pair].rows.iteration[spot.row]), 0)
    return next(
        (
            float(number)
            for number, (begin, end) in enumerate(heat.columns)
            if begin <= iteration < end
        ),
        None,
    )


@cache_by_object
def _chart(drift: Drift, chosen: str) -> tuple[Heat, lanes.Chart, int]:
    """Return a picture, its chart and the number of rows that it leaves out."""
    heat = (
        heat_of_loops(drift, MOST_COLUMNS)
        if chosen == ALL
        else heat_of_values(drift, chosen, MOST_COLUMNS)
    )
    rows = _worst(heat.rows)
    shown = Heat(rows, heat.columns)
    return shown, chart_of(drift, shown, _title(chosen)), len(heat.rows) - len(rows)


def _worst(rows: Sequence[HeatRow]) -> tuple[HeatRow, ...]:
    """Return the rows with the largest errors, in the order of the model. Return all rows if no
    value differs.
    """
    errors = [max((cell.error for cell in row.cells if cell), default=0.0) for row in rows]
    order = sorted(range(len(rows)), key=lambda number: -errors[number])
    apart = [number for number in order if errors[number]] or order
    return tuple(rows[number] for number in sorted(apart[:MOST_ROWS]))


def chart_of(drift: Drift, heat: Heat, label: str) -> lanes.Chart:
    """Return each row as a lane. A value outside loops is one block over the whole axis."""
    height = _ROOMY if len(heat.rows) <= _MANY else _NARROW
    drawn = [
        lanes.Lane(
            _row_title(row),
            list(_blocks(drift, heat, row)),
            height,
            note=row.address,
            pick=row.address != OUTSIDE,
        )
        for row in heat.rows
    ]
    names = [
        f"{begin:,}" if end - begin == 1 else f"{begin:,}–{end - 1:,}"
        for begin, end in heat.columns
    ]
    return lanes.Chart(
        f"relative error, {label}",
        "iteration",
        max(len(heat.columns), 1),
        drawn,
        _marks(drift, heat),
        names,
    )


def _row_title(row: HeatRow) -> str:
    return "outside of loops" if row.address == OUTSIDE else readable_steps(row.address)[-1]


def _blocks(drift: Drift, heat: Heat, row: HeatRow) -> list[lanes.Block]:
    if row.address == OUTSIDE:
        cell = row.cells[0]
        return (
            [_block(drift, 0, len(heat.columns), "outside of loops", cell)]
            if cell is not None
            else []
        )
    blocks: list[lanes.Block] = []
    for number, (cell, (begin, end)) in enumerate(zip(row.cells, heat.columns, strict=True)):
        where = iteration_words(begin) if end - begin == 1 else iteration_range(begin, end - 1)
        if cell is not None:
            blocks.append(_block(drift, number, number + 1, where, cell))
    return blocks


def _block(drift: Drift, begin: int, end: int, where: str, cell: Cell) -> lanes.Block:
    name = readable_steps(drift.pairs[cell.spot.pair].one)[-1]
    if not math.isfinite(cell.error):
        return (
            float(begin),
            float(end),
            "nan",
            0,
            "",
            f"{where}: finite on one side only, in {name}",
        )
    words = (
        "equal"
        if not cell.error
        else f"{significant(cell.error, 2)} of the largest magnitude, in {name}"
    )
    return (
        float(begin),
        float(end),
        "heat",
        level(cell.error, max(drift.tolerance, _LEAST)),
        "",
        f"{where}: {words}",
    )


def level(error: float, tolerance: float) -> float:
    """Return the intensity of an error by its logarithm; negative, which is another colour, above
    the tolerance.

    >>> level(0.0, 1e-3), level(1e-3, 1e-3), level(1e-2, 1e-3), level(1.0, 1e-3)
    (0.0, 1.0, -0.44, -1.0)
    """
    if error > tolerance:
        weakest, span = 0.16, max(-math.log10(tolerance), 1.0)
        return -round(min(1.0, weakest + (1 - weakest) * math.log10(error / tolerance) / span), 3)
    return (
        0.0
        if error <= _LEAST
        else round(math.log10(error / _LEAST) / math.log10(tolerance / _LEAST), 3)
    )


def _marks(drift: Drift, heat: Heat) -> list[lanes.Mark]:
    """Return the mark where the drift begins."""
    first = drift.first
    if first is None or first.first is None or first.first.iteration is None:
        return []
    lane = next((number for number, row in enumerate(heat.rows) if row.address == first.one), None)
    column = next(
        (
            number
            for number, (begin, end) in enumerate(heat.columns)
            if begin <= first.first.iteration < end
        ),
        None,
    )
    if lane is None or column is None:
        return []
    return [
        lanes.Mark(
            column,
            "now",
            f"first over the tolerance: {iteration_words(first.first.iteration)}",
            lane,
        )
    ]


def matching(drift: Drift) -> None:
    """Show how pairs were matched, what has no partner, and what was not compared."""
    counts = Counter(pair.how for pair in drift.pairs)
    counts_text = ", ".join(f"{count:,} by {how}" for how, count in counts.items())
    left = [len(places) for places in drift.unmatched]
    with st.popover("Matching", key="drift_matching", type="tertiary"):
        unmatched = f"; {sum(left):,} without a match" if any(left) else ""
        markup.show(f"Values matched: {counts_text or 'none'}{unmatched}.")
        others = [pair for pair in drift.pairs if pair.one != pair.other or pair.how != "name"]
        rows = [
            {"here": readable(pair.one), "there": readable(pair.other), "by": str(pair.how)}
            for pair in others
        ]
        rows += [
            {"here": readable(place), "there": "no match", "by": ""} for place in drift.unmatched[0]
        ]
        rows += [
            {"here": "no match", "there": readable(place), "by": ""} for place in drift.unmatched[1]
        ]
        rows += [
            {"here": readable(place), "there": "unpacks weights", "by": ""}
            for place in drift.unpacking[0]
        ]
        rows += [
            {"here": "unpacks weights", "there": readable(place), "by": ""}
            for place in drift.unpacking[1]
        ]
        if rows:
            import pandas as pd  # imported here: it takes half a second, and only tables need it

            st.dataframe(
                pd.DataFrame(rows[:MOST_LISTED]),
                hide_index=True,
                width="stretch",
                row_height=28,
                key="drift_matched",
            )
        elif drift.pairs:
            markup.show("Each value is matched with the value of the same name.", "quiet")
        if len(rows) > MOST_LISTED:
            markup.show(
                f"{len(rows) - MOST_LISTED:,} more: `loopscope drift --json` lists all.", "quiet"
            )
        if drift.left_out:
            markup.show(
                markup.sentence(
                    "Not compared: "
                    + ", ".join(f"{count:,} {reason}" for reason, count in drift.left_out.items())
                ),
                "quiet",
            )
