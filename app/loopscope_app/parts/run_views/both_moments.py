"""One value of one iteration in two runs, side by side, and the errors of its operands."""

from __future__ import annotations

import numpy as np
import streamlit as st

from loopscope.comparison import Spot, cosine_words, operands
from loopscope.errors import EngineError
from loopscope.ir import readable, significant
from loopscope.view import value_preview
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.both_runs import Drifted
from loopscope_app.parts.inspector import difference
from loopscope_app.parts.widgets import markup

_PICTURE_LEAST = 4


def show(drifted: Drifted, spot: Spot) -> None:
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
        rows = difference.largest(left, right)
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
