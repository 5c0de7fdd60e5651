"""The drift between two runs: the verdict, loops or values by iterations as one picture, both sides
of a cell.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from weakref import WeakKeyDictionary

import pandas as pd
import streamlit as st

from loopscope.comparison import (
    OUTSIDE,
    Cell,
    Divergence,
    Drift,
    Heat,
    HeatRow,
    MatchedSlots,
    Moment,
    heat_of_loops,
    heat_of_values,
    loops,
    spot_of,
)
from loopscope.errors import elided
from loopscope.ir import iteration_range, iteration_words, readable, readable_steps
from loopscope_app.actions import moves, other_runs, selection
from loopscope_app.parts.run_views import both_moments
from loopscope_app.parts.widgets import chain, lanes, markup
from loopscope_app.state.compare_choice import LOOP
from loopscope_app.state.run_in_view import Drifted
from loopscope_app.state.user_session import UserSession, place, widget

KEY = "drift"
ALL = "all loops"
MOST_COLUMNS, MOST_ROWS, MOST_LISTED = 128, 40, 200
_ROOMY, _NARROW, _MANY = 22, 14, 12
"""Heights of a lane, and up to how many lanes there is room for high ones."""
_LEAST = 1e-8
"""Relative error below which a cell is nearly blank; an error of 1 has the full colour."""

_pictures: WeakKeyDictionary[Drift, dict[str, tuple[Heat, lanes.Chart, int]]] = WeakKeyDictionary()
"""The picture, its chart and the number of rows that it leaves out, by what is shown."""


def show(session: UserSession, drifted: Drifted) -> None:
    drift = drifted.drift
    kind = (
        "bad"
        if drift.first is not None or drift.partings or not drift.outputs <= drift.tolerance
        else "good"
    )
    chip = markup.chip("apart" if kind == "bad" else "within the tolerance", kind)
    markup.show(f"{chip} {markup.prose(drifted.sentence, 20_000)}")
    lines = list(_lines(drift))
    chain.show(
        [line for line, _ in lines], key="drift_lines", on_pick=lambda number: lines[number][1]()
    )
    if drift.pairs:
        _picture(session, drifted)
    _matching(drift)


def _lines(drift: Drift) -> Iterator[tuple[chain.ChainLine, Callable[[], None]]]:
    """Yield where the drift begins, where it is worst, and where control flow diverges, each with
    its action.
    """
    first, worst = drift.first, drift.worst
    if first is not None and first.first is not None:
        yield _line(drift, first, first.first, "begins here")
    if worst is not None and worst.worst.relative and (first is None or worst.worst != first.first):
        yield _line(drift, worst, worst.worst, "is largest here")
    for divergence in drift.partings:
        what = "other count" if divergence.kind == "iterations" else "other branch"
        line = chain.ChainLine(
            elided(readable(divergence.address), 200),
            what,
            "",
            f"{divergence.one}  ≠  {divergence.other}",
            0,
            "branch",
            divergence.sentence,
        )
        yield line, partial(_go, divergence)


def _line(
    drift: Drift, pair: MatchedSlots, moment: Moment, what: str
) -> tuple[chain.ChainLine, Callable[[], None]]:
    grows = pair.growth.words if pair.growth else ""
    line = chain.ChainLine(
        elided(readable(moment.address), 200),
        what,
        grows,
        f"{moment.relative:.2g}",
        0,
        "bad" if moment.relative > drift.tolerance else "",
    )
    return line, lambda: other_runs.pick(spot_of(drift, pair, moment))


def _go(parting: Divergence) -> None:
    moves.seek(parting.step)
    selection.reveal_place(parting.address)


def _picture(session: UserSession, drifted: Drifted) -> None:
    bodies = loops(drifted.drift)
    options = [ALL, *bodies] if len(bodies) > 1 else [*bodies, ALL]
    if widget(LOOP) not in options:
        place(LOOP, options[0])
    if len(bodies) > 1:
        st.selectbox(
            "Loops or values", options, key=LOOP, format_func=_title, label_visibility="collapsed"
        )
    chosen = str(widget(LOOP))
    heat, chart, left_out = _chart(drifted.drift, chosen)

    def picked(pick: lanes.Pick) -> None:
        row = heat.rows[pick.lane] if pick.lane >= 0 else heat.rows[0]
        cell = (
            row.cells[min(int(pick.at), len(row.cells) - 1)]
            if row.address != OUTSIDE
            else row.cells[0]
        )
        if pick.on_name:
            _pick_name(row, chosen)
        elif cell is not None and pick.lane >= 0:
            other_runs.pick(cell.spot)

    more = (
        f"&ensp;{left_out:,} rows that are equal, or least apart, are left out." if left_out else ""
    )
    words = f"from no difference to the tolerance of {drifted.drift.tolerance:g}"
    markup.show(
        (
            f'<i class="key heat"></i>{words}, <i class="key heat over"></i>beyond. A click on a '
            f"cell opens both sides.{more}"
        ),
        "quiet",
    )
    with st.container(key="drift_rows"):
        lanes.show(chart, key=KEY, cursor=_column(session, drifted, heat), wide=1, on_pick=picked)
        if session.run.spot is not None:
            both_moments.show(drifted, session.run.spot)


def _pick_name(row: HeatRow, chosen: str) -> None:
    """Open the values of a loop, or show a value on the canvas."""
    if chosen == ALL and row.address != OUTSIDE:
        other_runs.show_values_of(row.address)
    elif chosen != ALL:
        selection.reveal_place(row.address)


def _title(body: str) -> str:
    return ALL if body == ALL else f"values of {readable(body)}"


def _column(session: UserSession, drifted: Drifted, heat: Heat) -> float | None:
    spot = session.run.spot
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


def _chart(drift: Drift, chosen: str) -> tuple[Heat, lanes.Chart, int]:
    cached = _pictures.setdefault(drift, {})
    if chosen not in cached:
        heat = (
            heat_of_loops(drift, MOST_COLUMNS)
            if chosen == ALL
            else heat_of_values(drift, chosen, MOST_COLUMNS)
        )
        rows = _worst(heat.rows)
        shown = Heat(rows, heat.columns)
        cached[chosen] = shown, chart_of(drift, shown, _title(chosen)), len(heat.rows) - len(rows)
    return cached[chosen]


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
    words = "equal" if not cell.error else f"{cell.error:.2g} of the largest magnitude, in {name}"
    return (
        float(begin),
        float(end),
        "heat",
        level(cell.error, drift.tolerance),
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


def _matching(drift: Drift) -> None:
    """Show how pairs were matched, what has no partner, and what was not compared."""
    counts = Counter(pair.how for pair in drift.pairs)
    counts_text = ", ".join(f"{count:,} by {how}" for how, count in counts.items())
    left = [len(places) for places in drift.unmatched]
    with st.expander(
        f"How values were matched: {counts_text or 'none'}"
        + (f"; {sum(left):,} belong to nothing" if any(left) else "")
    ):
        others = [pair for pair in drift.pairs if pair.one != pair.other or pair.how != "name"]
        rows = [
            {"this": readable(pair.one), "the other": readable(pair.other), "by": str(pair.how)}
            for pair in others
        ]
        rows += [
            {"this": readable(place), "the other": "nothing", "by": ""}
            for place in drift.unmatched[0]
        ]
        rows += [
            {"this": "nothing", "the other": readable(place), "by": ""}
            for place in drift.unmatched[1]
        ]
        rows += [
            {"this": readable(place), "the other": "unpacks weights", "by": ""}
            for place in drift.unpacking[0]
        ]
        rows += [
            {"this": "unpacks weights", "the other": readable(place), "by": ""}
            for place in drift.unpacking[1]
        ]
        if rows:
            st.dataframe(
                pd.DataFrame(rows[:MOST_LISTED]),
                hide_index=True,
                width="stretch",
                row_height=28,
                key="drift_matched",
            )
        elif drift.pairs:
            markup.show("Every value belongs to the one of the same name.", "quiet")
        if len(rows) > MOST_LISTED:
            markup.show(
                f"{len(rows) - MOST_LISTED:,} more are listed by loopscope drift --json.", "quiet"
            )
        if drift.left_out:
            markup.show(
                markup.sentence(
                    "Not compared: "
                    + ", ".join(f"{count:,} {reason}" for reason, count in drift.left_out.items())
                ),
                "quiet",
            )
