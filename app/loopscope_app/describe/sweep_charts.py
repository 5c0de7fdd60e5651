"""Charts of many runs in Vega-Lite. Each bar, point and cell carries a sample number for clicks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from loopscope.errors import neutral
from loopscope.ir import readable, significant
from loopscope.sweeps import RowLayout, numbers
from loopscope.view import COLOURS
from loopscope_app.describe.sweep_words import said, short_names

Theme = Literal["light", "dark"]
Chart = dict[str, Any]
PICKED = "picked"
"""Name of the selection that a click makes: a sample number."""
_MAX_BARS, _MAX_POINTS, _MAX_CELLS = 60, 2000, 60
_MAX_TITLE, _MAX_LABEL, _MAX_ADDRESS = 60, 28, 200


def histogram(rows: pa.Table, name: str, theme: Theme, bound: float) -> Chart | None:
    """Return the distribution of a count over the runs; None if no run has a value.

    Bars that begin above ``bound`` have the colour of runs above it.
    """
    values, samples = _finite(rows, name)
    if not len(values):
        return None
    low, high = values.min(), values.max()
    whole = bool(np.all(values == np.rint(values)))
    edges = _edges(low, high, whole=whole)
    shift = (
        0.5 if whole and edges[1] - edges[0] == 1 else 0.0
    )  # centers the bar of a single integer on it
    bar_of_value = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    bars = [
        {
            "from": float(edges[bar]) - shift,
            "to": float(edges[bar + 1]) - shift,
            "runs": len(members),
            "count": _span(edges[bar], edges[bar + 1], whole=whole),
            "sample": int(samples[members[0]]),
            "is": _side(values[members].max(), bound),
        }
        for bar in range(len(edges) - 1)
        if len(members := np.flatnonzero(bar_of_value == bar))
    ]
    tooltip = [{"field": "count", "title": _title(name)}, {"field": "runs", "format": ","}, _OPENS]
    axis = {"tickMinStep": 1 if whole else 0, "grid": False}
    x = {
        "field": "from",
        "type": "quantitative",
        "bin": {"binned": True},
        "title": _title(name),
        "axis": axis,
        "scale": {"nice": False},
    }
    encoding = {
        "x": x,
        "x2": {"field": "to"},
        "y": {"field": "runs", "type": "quantitative"},
        "color": _sides(theme, bound),
        "tooltip": tooltip,
    }
    return _chart(bars, {"type": "bar", "cursor": "pointer"}, encoding)


def _edges(low: float, high: float, *, whole: bool) -> np.ndarray:
    """Return edges of equally wide bars; bars of integers contain equally many."""
    if whole:
        step = max(1, int(np.ceil((high - low + 1) / _MAX_BARS)))
        return np.arange(low, high + step + 0.5, step)
    return (
        np.linspace(low, high, _MAX_BARS // 2 + 1)
        if high > low
        else np.array([low - 0.5, low + 0.5])
    )


def _span(low: float, high: float, *, whole: bool) -> str:
    """Return the range of a bar as text.

    >>> _span(3, 4, whole=True), _span(3, 6, whole=True), _span(0.5, 0.75, whole=False)
    ('3', '3 – 5', '0.5 – 0.75')
    """
    if whole:
        return f"{low:,.0f}" if high - low == 1 else f"{low:,.0f} – {high - 1:,.0f}"
    return f"{significant(low)} – {significant(high)}"


def branches(rows: pa.Table, layout: RowLayout, theme: Theme) -> Chart | None:
    """Return how often all runs together took each branch; None without branches."""
    names = short_names([branch.address for branch in layout.branches], _MAX_LABEL)
    bars = [
        bar
        for address, name in names.items()
        for way in ("then", "else")
        if (bar := _branch_bar(rows, address, way, name)) is not None
    ]
    if not bars:
        return None
    colours = {
        "domain": ["then", "else"],
        "range": [_colour("then", theme), _colour("else", theme)],
    }
    encoding = {
        "y": {
            "field": "branch",
            "type": "nominal",
            "title": None,
            "axis": {"labelLimit": 180},
            "sort": None,
        },
        "x": {
            "field": "taken",
            "type": "quantitative",
            "title": "times taken",
            "stack": "zero",
            "axis": {"grid": False},
        },
        "color": {
            "field": "way",
            "type": "nominal",
            "scale": colours,
            "title": None,
            "legend": {"orient": "right"},
        },
        "order": {"field": "order", "type": "quantitative"},
        "tooltip": [
            {"field": "place"},
            {"field": "way", "title": "branch"},
            {"field": "taken", "format": ","},
            {"field": "runs", "format": ","},
            _OPENS,
        ],
    }
    return _chart(bars, {"type": "bar", "cursor": "pointer"}, encoding)


def _branch_bar(rows: pa.Table, address: str, way: str, name: str) -> dict[str, Any] | None:
    """Return one branch, with the sample that took it most often."""
    values, samples = _finite(rows, f"{way} {address}")
    if not len(values) or not values.any():
        return None
    return {
        "branch": neutral(name, _MAX_TITLE),
        "place": neutral(readable(address), _MAX_ADDRESS),
        "way": way,
        "order": int(way == "else"),
        "taken": int(values.sum()),
        "runs": int(np.count_nonzero(values)),
        "sample": int(samples[values.argmax()]),
    }


def scatter(rows: pa.Table, name: str, against: str, theme: Theme, bound: float) -> Chart | None:
    """Return a count against a column: evenly chosen runs, and those with the extreme counts.

    Points above ``bound`` have a colour of their own.
    """
    columns = np.stack([numbers(rows, against), numbers(rows, name)])
    finite = np.flatnonzero(np.isfinite(columns).all(axis=0))
    if not len(finite):
        return None
    extremes = finite[[columns[1, finite].argmin(), columns[1, finite].argmax()]]
    places = np.unique(np.concatenate([_evenly(finite), extremes]))
    samples = rows["sample"].to_numpy()
    points = [
        {
            "x": float(columns[0, row]),
            "y": float(columns[1, row]),
            "sample": int(samples[row]),
            "is": _side(columns[1, row], bound),
        }
        for row in places
    ]
    x, y = (
        _axis(field, title, columns[row, places])
        for row, (field, title) in enumerate((("x", against), ("y", name)))
    )
    mark = {
        "type": "point",
        "filled": True,
        "size": 34 if len(points) < 400 else 14,
        "cursor": "pointer",
    }
    tooltip = [
        {"field": "x", "title": _title(against)},
        {"field": "y", "title": _title(name)},
        _OPENS,
    ]
    encoding = {"x": x, "y": y, "color": _sides(theme, bound), "tooltip": tooltip}
    return _chart(points, mark | {"opacity": 0.75}, encoding, nearest=True)


def _side(value: float, bound: float) -> str:
    """Return the side of the threshold of a value, as in the legend.

    >>> _side(51, 50), _side(50, 50)
    ('above 50', 'up to 50')
    """
    return f"{'above' if value > bound else 'up to'} {significant(bound)}"


def _sides(theme: Theme, bound: float) -> Chart:
    """Return the colours of both sides of the threshold, with a legend."""
    sides = [_side(bound, bound), _side(np.inf, bound)]
    colours = [_colour("curve", theme), _colour("less", theme)]
    return {
        "field": "is",
        "type": "nominal",
        "scale": {"domain": sides, "range": colours},
        "title": None,
        "legend": {"orient": "top", "offset": 2, "padding": 0},
    }


def one_against_other(
    left: pa.Table, right: pa.Table, names: tuple[str, str], theme: Theme
) -> Chart | None:
    """Return a count in two sweeps of the same inputs: evenly chosen among all runs and among those
    that differ.
    """
    columns = np.stack([numbers(left, names[0]), numbers(right, names[1])])
    finite = np.flatnonzero(np.isfinite(columns).all(axis=0))
    if not len(finite):
        return None
    differs = columns[0] != columns[1]
    places = np.union1d(_evenly(finite), _evenly(finite[differs[finite]]))
    samples = left["sample"].to_numpy()
    labels = np.where(differs, "other", "same")
    points = [
        {
            "x": float(columns[0, row]),
            "y": float(columns[1, row]),
            "sample": int(samples[row]),
            "is": str(labels[row]),
        }
        for row in places
    ]
    colours = {
        "domain": ["same", "other"],
        "range": [_colour("curve", theme), _colour("back", theme)],
    }
    encoding = {
        "x": _axis("x", f"{names[0]} here", columns[0, places]),
        "y": _axis("y", f"{names[1]} there", columns[1, places]),
        "color": {
            "field": "is",
            "type": "nominal",
            "scale": colours,
            "title": None,
            "legend": {"orient": "right"},
        },
        "tooltip": [{"field": "x", "title": "here"}, {"field": "y", "title": "there"}, _OPENS],
    }
    mark = {
        "type": "point",
        "filled": True,
        "size": 34 if len(points) < 400 else 14,
        "cursor": "pointer",
        "opacity": 0.75,
    }
    return _chart(points, mark, encoding, nearest=True)


def _evenly(places: np.ndarray) -> np.ndarray:
    """Return evenly chosen places, as many as a chart can show."""
    chosen: np.ndarray = places[
        np.unique(np.linspace(0, len(places) - 1, min(len(places), _MAX_POINTS)).astype(int))
    ]
    return chosen


def _axis(field: str, title: str, values: np.ndarray) -> Chart:
    """Return an axis of a scatter plot; integers have no ticks between them."""
    axis = {"grid": field == "y", "tickMinStep": 1 if np.all(values == np.rint(values)) else 0}
    scale = {"zero": False, "padding": 8, "nice": False}  # no axis extends below the data
    return {
        "field": field,
        "type": "quantitative",
        "title": _title(title),
        "scale": scale,
        "axis": axis,
    }


def heat_map(
    rows: pa.Table, name: str, axes: Sequence[str], theme: Theme, bound: float
) -> Chart | None:
    """Return the largest count for each cell of two inputs of a grid; None if fewer than two inputs
    vary.

    Cells up to ``bound`` are paler.
    """
    varying = [axis for axis in axes if len(np.unique(numbers(rows, axis))) > 1][:2]
    if len(varying) < 2:
        return None
    across, down = (numbers(rows, axis) for axis in varying)
    values, samples = numbers(rows, name), rows["sample"].to_numpy()
    places = [_cells(axis) for axis in (across, down)]
    cells: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(np.isfinite(values)):
        cell = int(places[0][0][row]), int(places[1][0][row])
        if cell not in cells or values[row] > values[cells[cell]]:
            cells[cell] = int(row)
    data = [
        {
            "x": places[0][1][cell[0]],
            "y": places[1][1][cell[1]],
            "count": float(values[row]),
            "sample": int(samples[row]),
        }
        for cell, row in cells.items()
    ]
    ends = [_colour("matrix-low", theme), _colour("matrix-high", theme)]
    x, y = (
        {
            "field": field,
            "type": "ordinal",
            "title": _title(title),
            "sort": order,
            "axis": {"labelOverlap": True, "format": ".4~g"},
        }
        for field, title, order in (("x", varying[0], "ascending"), ("y", varying[1], "descending"))
    )
    colour = {
        "field": "count",
        "type": "quantitative",
        "scale": {"range": ends},
        "title": None,
        "legend": {"orient": "right"},
    }
    test = f"datum.count > {float(bound)!r}"
    opacity = {"condition": {"test": test, "value": 1.0}, "value": 0.35}
    tooltip = [
        {"field": "x", "title": _title(varying[0])},
        {"field": "y", "title": _title(varying[1])},
        {"field": "count"},
        _OPENS,
    ]
    return _chart(
        data,
        {"type": "rect", "cursor": "pointer"},
        {"x": x, "y": y, "color": colour, "opacity": opacity, "tooltip": tooltip},
    )


def _cells(values: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Return the cell of each value along an axis, and the positions of the cells.

    Neighbours share a cell if there are many values.
    """
    different, indices = np.unique(values, return_inverse=True)
    share = -(-len(different) // _MAX_CELLS)
    return indices // share, [float(value) for value in different[::share]]


_OPENS = {"field": "sample", "title": "click to open run"}


def _chart(
    data: list[dict[str, Any]], mark: Chart, encoding: Chart, *, nearest: bool = False
) -> Chart:
    select = {"type": "point", "fields": ["sample"], **({"nearest": True} if nearest else {})}
    return {
        "data": {"values": data},
        "mark": mark,
        "encoding": encoding,
        "params": [{"name": PICKED, "select": select}],
    }


def _finite(rows: pa.Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the finite values of a column and their samples."""
    values = numbers(rows, name)
    finite = np.isfinite(values)
    return values[finite], rows["sample"].to_numpy()[finite]


def _title(name: str) -> str:
    return neutral(said(name), _MAX_TITLE)


def _colour(name: str, theme: Theme) -> str:
    colour = COLOURS[name]
    return colour.dark if theme == "dark" else colour.light
