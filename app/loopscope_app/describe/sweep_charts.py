"""Charts of many runs, as Vega-Lite takes them. Each bar, point and cell has the number of a
sample, which a click gives back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from loopscope.errors import neutral
from loopscope.ir import readable
from loopscope.sweeps import RowLayout, numbers
from loopscope.view import COLOURS
from loopscope_app.describe.sweep_columns import said, short_names

Theme = Literal["light", "dark"]
Chart = dict[str, Any]
PICKED = "picked"
"""The selection that a click makes: the number of a sample."""
_BARS, _POINTS, _CELLS = 60, 2000, 60
_LONGEST, _LONGEST_ON_AXIS, _LONGEST_PLACE = 60, 28, 200


def histogram(rows: pa.Table, name: str, theme: Theme) -> Chart | None:
    """How many runs have which count. None where no run came to it."""
    values, samples = _finite(rows, name)
    if not len(values):
        return None
    low, high = values.min(), values.max()
    whole = bool(np.all(values == np.rint(values)))
    edges = _edges(low, high, whole=whole)
    aside = 0.5 if whole and edges[1] - edges[0] == 1 else 0.0  # a bar of one number stands over it
    which = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    bars = [
        {
            "from": float(edges[bar]) - aside,
            "to": float(edges[bar + 1]) - aside,
            "runs": len(there),
            "count": _span(edges[bar], edges[bar + 1], whole=whole),
            "sample": int(samples[there[0]]),
        }
        for bar in range(len(edges) - 1)
        if len(there := np.flatnonzero(which == bar))
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
        "tooltip": tooltip,
    }
    return _chart(
        bars, {"type": "bar", "color": _colour("curve", theme), "cursor": "pointer"}, encoding
    )


def _edges(low: float, high: float, *, whole: bool) -> np.ndarray:
    """Of bars that are as wide as each other; of whole numbers, as many in each."""
    if whole:
        step = max(1, int(np.ceil((high - low + 1) / _BARS)))
        return np.arange(low, high + step + 0.5, step)
    return (
        np.linspace(low, high, _BARS // 2 + 1) if high > low else np.array([low - 0.5, low + 0.5])
    )


def _span(low: float, high: float, *, whole: bool) -> str:
    """
    >>> _span(3, 4, whole=True), _span(3, 6, whole=True), _span(0.5, 0.75, whole=False)
    ('3', '3 – 5', '0.5 – 0.75')
    """
    if whole:
        return f"{low:,.0f}" if high - low == 1 else f"{low:,.0f} – {high - 1:,.0f}"
    return f"{low:.4g} – {high:.4g}"


def branches(rows: pa.Table, layout: RowLayout, theme: Theme) -> Chart | None:
    """How often each branch was taken, all runs together. None where nothing branches."""
    names = short_names([one.address for one in layout.branches], _LONGEST_ON_AXIS)
    bars = [
        bar
        for address, name in names.items()
        for way in ("then", "else")
        if (bar := _branch(rows, address, way, name)) is not None
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


def _branch(rows: pa.Table, address: str, way: str, name: str) -> dict[str, Any] | None:
    """One branch, with the first run that took it most."""
    values, samples = _finite(rows, f"{way} {address}")
    if not len(values) or not values.any():
        return None
    return {
        "branch": neutral(name, _LONGEST),
        "place": neutral(readable(address), _LONGEST_PLACE),
        "way": way,
        "order": int(way == "else"),
        "taken": int(values.sum()),
        "runs": int(np.count_nonzero(values)),
        "sample": int(samples[values.argmax()]),
    }


def scatter(rows: pa.Table, name: str, against: str, theme: Theme) -> Chart | None:
    """A count against a column: evenly chosen runs, and those with the least and the most."""
    both = np.stack([numbers(rows, against), numbers(rows, name)])
    there = np.flatnonzero(np.isfinite(both).all(axis=0))
    if not len(there):
        return None
    extremes = there[[both[1, there].argmin(), both[1, there].argmax()]]
    places = np.unique(np.concatenate([_evenly(there), extremes]))
    samples = rows["sample"].to_numpy()
    points = [
        {"x": float(both[0, one]), "y": float(both[1, one]), "sample": int(samples[one])}
        for one in places
    ]
    x, y = (
        _axis(field, title, both[row, places])
        for row, (field, title) in enumerate((("x", against), ("y", name)))
    )
    mark = {
        "type": "point",
        "filled": True,
        "size": 34 if len(points) < 400 else 14,
        "cursor": "pointer",
        "color": _colour("curve", theme),
    }
    tooltip = [
        {"field": "x", "title": _title(against)},
        {"field": "y", "title": _title(name)},
        _OPENS,
    ]
    return _chart(
        points, mark | {"opacity": 0.75}, {"x": x, "y": y, "tooltip": tooltip}, nearest=True
    )


def one_against_other(
    one: pa.Table, other: pa.Table, names: tuple[str, str], theme: Theme
) -> Chart | None:
    """A count in two sweeps of the same inputs, of evenly chosen runs among those that differ
    and among all.
    """
    both = np.stack([numbers(one, names[0]), numbers(other, names[1])])
    there = np.flatnonzero(np.isfinite(both).all(axis=0))
    if not len(there):
        return None
    differs = both[0] != both[1]
    places = np.union1d(_evenly(there), _evenly(there[differs[there]]))
    samples = one["sample"].to_numpy()
    said = np.where(differs, "other", "same")
    points = [
        {
            "x": float(both[0, at]),
            "y": float(both[1, at]),
            "sample": int(samples[at]),
            "is": str(said[at]),
        }
        for at in places
    ]
    colours = {
        "domain": ["same", "other"],
        "range": [_colour("curve", theme), _colour("back", theme)],
    }
    encoding = {
        "x": _axis("x", f"{names[0]} here", both[0, places]),
        "y": _axis("y", f"{names[1]} there", both[1, places]),
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
    """As many of them as a chart bears."""
    chosen: np.ndarray = places[
        np.unique(np.linspace(0, len(places) - 1, min(len(places), _POINTS)).astype(int))
    ]
    return chosen


def _axis(field: str, title: str, values: np.ndarray) -> Chart:
    """Of a scatter; whole numbers have no ticks between them."""
    axis = {"grid": field == "y", "tickMinStep": 1 if np.all(values == np.rint(values)) else 0}
    scale = {"zero": False, "padding": 8, "nice": False}  # no axis reaches below what is there
    return {
        "field": field,
        "type": "quantitative",
        "title": _title(title),
        "scale": scale,
        "axis": axis,
    }


def heat_map(rows: pa.Table, name: str, axes: Sequence[str], theme: Theme) -> Chart | None:
    """The greatest count for each cell of two inputs of a grid; None where fewer than two of
    them vary.
    """
    varying = [one for one in axes if len(np.unique(numbers(rows, one))) > 1][:2]
    if len(varying) < 2:
        return None
    across, down = (numbers(rows, one) for one in varying)
    values, samples = numbers(rows, name), rows["sample"].to_numpy()
    places = [_cells(one) for one in (across, down)]
    cells: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(np.isfinite(values)):
        cell = int(places[0][0][row]), int(places[1][0][row])
        if cell not in cells or values[row] > values[cells[cell]]:
            cells[cell] = int(row)
    data = [
        {
            "x": places[0][1][at[0]],
            "y": places[1][1][at[1]],
            "count": float(values[row]),
            "sample": int(samples[row]),
        }
        for at, row in cells.items()
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
    tooltip = [
        {"field": "x", "title": _title(varying[0])},
        {"field": "y", "title": _title(varying[1])},
        {"field": "count"},
        _OPENS,
    ]
    return _chart(
        data,
        {"type": "rect", "cursor": "pointer"},
        {"x": x, "y": y, "color": colour, "tooltip": tooltip},
    )


def _cells(values: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """The cell of each value along an axis, and where the cells are; neighbours share one where
    there are many.
    """
    different, which = np.unique(values, return_inverse=True)
    share = -(-len(different) // _CELLS)
    return which // share, [float(one) for one in different[::share]]


_OPENS = {"field": "sample", "title": "a click opens sample"}


def height_of_branches(chart: Chart) -> int:
    """Pixels: a bar for each If."""
    return 110 + 34 * len({bar["branch"] for bar in chart["data"]["values"]})


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
    """The values of a column and the samples that have them."""
    values = numbers(rows, name)
    there = np.isfinite(values)
    return values[there], rows["sample"].to_numpy()[there]


def _title(name: str) -> str:
    return neutral(said(name), _LONGEST)


def _colour(name: str, theme: Theme) -> str:
    colour = COLOURS[name]
    return colour.dark if theme == "dark" else colour.light
