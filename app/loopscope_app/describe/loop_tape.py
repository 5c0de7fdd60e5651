"""Iterations of a loop as strips of HTML: the branch of each, and the course of carried numbers."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from loopscope.errors import neutral
from loopscope.ir import iteration_words
from loopscope.view import COLOURS
from loopscope_app.describe.iteration_table import IterationRow, LoopTableColumns

MOST_STRIPS = 6
_WIDTH, _HEIGHT = 600, 22
_LINE = COLOURS["curve"].light


def tape(rows: Sequence[IterationRow], columns: LoopTableColumns, current: int | None) -> str:
    """Return the strips, or an empty text for a loop with fewer than two iterations."""
    if len(rows) < 2:
        return ""
    current_position = next(
        (position for position, row in enumerate(rows) if row.iteration == current), None
    )
    strips: list[str] = []
    for index, column in enumerate(columns.branches):
        branches = {row.iteration: row.branches[index] for row in rows}
        strips.append(_strip(column.title, _blocks(branches, current)))
    for index, column in enumerate(columns.carried):
        numbers = [_number(row.carried[index]) for row in rows]
        if sum(number is not None for number in numbers) > 1:
            strips.append(
                _strip(
                    column.title,
                    curve(numbers, current_position),
                    _ends(row.carried[index] for row in rows),
                )
            )
    return f'<div class="tapes">{"".join(strips[:MOST_STRIPS])}</div>' if strips else ""


def _strip(title: str, picture: str, ends: str = "") -> str:
    name, last = escape(neutral(title, 28)), escape(neutral(ends, 40))
    return (
        f'<span class="name">{name}</span><span class="tape">{picture}</span>'
        f'<span class="ends">{last}</span>'
    )


def _ends(texts: Iterable[str]) -> str:
    """Return the first and the last value.

    >>> _ends(["1", "", "5"])
    '1 → 5'
    """
    known = [text for text in texts if text]
    return f"{known[0]} → {known[-1]}" if known else ""


def _blocks(branches: Mapping[int, str], current: int | None) -> str:
    """Return the branches of all iterations.

    >>> _blocks({1199: "then"}, 1199)
    '<i class="then here" title="iteration 1,199: then"></i>'
    """
    blocks: list[str] = []
    for iteration, branch in branches.items():
        mark = " here" if iteration == current else ""
        title = f"{iteration_words(iteration)}: {branch or 'not yet'}"
        blocks.append(f'<i class="{branch}{mark}" title="{title}"></i>')
    return "".join(blocks)


def _number(text: str) -> float | None:
    """Return the preview of a scalar as a number; None for any other text.

    >>> _number("3.5"), _number("[2] 1, 2"), _number("NaN")
    (3.5, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def curve(numbers: Sequence[float | None], current: int | None, height: int = _HEIGHT) -> str:
    """Return a line through the numbers, each in the middle of its iteration; ``current`` is
    marked.
    """
    known = [number for number in numbers if number is not None]
    low, high = min(known), max(known)
    share, range_height = _WIDTH / len(numbers), height - 6
    points = []
    for position, number in enumerate(numbers):
        if number is not None:
            level = 0.5 if high == low else (number - low) / (high - low)
            points.append(f"{(position + 0.5) * share:.1f},{height - 3 - level * range_height:.1f}")
    mark = (
        f'<rect x="{current * share:.1f}" y="0" width="{share:.1f}" height="{height}" '
        f'fill="{_LINE}" opacity="0.25"/>'
        if current is not None
        else ""
    )
    line = (
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{_LINE}" '
        'stroke-width="1.6" vector-effect="non-scaling-stroke"/>'
    )
    size = f'viewBox="0 0 {_WIDTH} {height}" preserveAspectRatio="none"'
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{mark}{line}</svg>'
    # An image, because Streamlit removes drawings from markup.
    data = base64.b64encode(drawing.encode()).decode()
    return f'<img alt="" src="data:image/svg+xml;base64,{data}">'
