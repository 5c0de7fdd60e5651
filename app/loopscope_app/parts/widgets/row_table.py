"""A table whose rows are places in the run. The row of the moment is marked and kept in view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopscope.errors import neutral
from loopscope_app.components import component
from loopscope_app.state.user_session import widget

_rows = component("rows", "rows.js", style="rows.css")
LONGEST = 120


def show(
    titles: Sequence[str],
    cells: Sequence[Sequence[str]],
    *,
    key: str,
    now: int | None,
    on_pick: Callable[[int], None],
    in_view: int | None = None,
) -> None:
    """Draw the rows. ``now`` is the index of the marked row; ``on_pick`` receives the index of a
    clicked row. ``in_view`` is the row to scroll to without a marked row.
    """

    def picked() -> None:
        number = getattr(widget(key), "pick", None)
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(cells):
            on_pick(number)

    words = [[neutral(cell, LONGEST) for cell in row] for row in (titles, *cells)]
    data = {
        "titles": words[0],
        "cells": words[1:],
        "now": now,
        "inView": in_view if now is None else now,
    }
    _rows(key=key, data=data, on_pick_change=picked)
