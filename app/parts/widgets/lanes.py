"""Lanes of blocks over one axis, with marks and the cursor; a click says where. The picture and the cursor travel apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal
from weakref import WeakKeyDictionary

import streamlit as st

from app.components import component
from app.state.user_session import widget
from engine.view import neutral

_lanes = component("lanes", "lanes.js", style="lanes.css")
_cursor = component("lanes_cursor", "lanes.js")

LONGEST_NAME = 80
Kind = Literal["idle", "even", "odd", "then", "else", "heat", "nan", "failed", "shape"]
Block = tuple[float, float, Kind, float, str, str] | tuple[float, float, Kind, float, str, str, int, int]
"""From, to, kind, level (of heat -1 to 1, of shapes their number), words inside it, words beside the pointer; where several share the
height of a lane, which of how many it is from the top."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of blocks."""

    name: str
    blocks: Sequence[Block]
    height: int = 22
    line: Sequence[float | None] | None = None
    """Levels from 0 to 1, one for each unit of the axis, drawn as a curve."""
    strong: bool = False
    note: str = ""
    """Words beside the pointer on its name."""
    pick: bool = False
    """A click on its name does something."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to see at a place: in one lane, or (``lane`` -1) across all."""

    at: float
    kind: Literal["nan", "stop", "now", "fixed"]
    text: str
    lane: int = -1
    until: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Chart:
    """All that is drawn."""

    label: str
    """What it is, for who cannot see it."""
    unit: str
    extent: float
    lanes: Sequence[Lane]
    marks: Sequence[Mark] = field(default_factory=tuple[Mark, ...])
    ticks: Sequence[str] | None = None
    """A name for each unit; None: numbers from ``first`` on."""
    first: int = 0


@dataclass(frozen=True, slots=True)
class Pick:
    """Where a chart was clicked."""

    lane: int
    """-1: on the axis."""
    at: float
    on_name: bool
    down: float = 0.0
    """The share of the lane's height above it, below 1."""


_messages: WeakKeyDictionary[Chart, dict[str, Any]] = WeakKeyDictionary()


def show(chart: Chart, *, key: str, cursor: float | None, wide: float = 0.0, on_pick: Callable[[Pick], None]) -> None:
    """Draws a chart; keep the chart object while it stays the same. ``wide``: units that the cursor covers, 0 for a line."""

    def picked() -> None:
        found = read_pick(getattr(widget(key), "pick", None), chart)
        if found is not None:
            on_pick(found)

    height = 2 + sum(lane.height + 3 for lane in chart.lanes) + 22
    with st.container(gap=None, key=f"{key}_parts"):
        _cursor(key=f"{key}_cursor", data={"key": key, "at": cursor, "wide": wide}, height=1)
        _lanes(key=key, data=message(chart, key), height=height, on_pick_change=picked)


def message(chart: Chart, key: str) -> dict[str, Any]:
    """What the browser gets of a chart, described once; names of the model are cut and made harmless."""
    kept = _messages.get(chart)
    if kept is None or kept["key"] != key:
        # Not `asdict`: it copies every block.
        lanes = [_fields(lane) | {"name": neutral(lane.name, LONGEST_NAME), "note": neutral(lane.note, 200)} for lane in chart.lanes]
        kept = _messages[chart] = _fields(chart) | {"lanes": lanes, "marks": [_fields(mark) for mark in chart.marks], "key": key}
    return kept


def _fields(one: Chart | Lane | Mark) -> dict[str, Any]:
    return {field.name: getattr(one, field.name) for field in fields(one)}


def read_pick(data: object, chart: Chart) -> Pick | None:
    """From what the browser sent, which is not trusted; None when it is not a place of this chart."""
    if not isinstance(data, Mapping):
        return None
    lane, at = data.get("lane"), data.get("at")
    if isinstance(lane, bool) or not isinstance(lane, int) or not isinstance(at, int | float):
        return None
    if not -1 <= lane < len(chart.lanes) or not math.isfinite(at) or not 0 <= at < chart.extent:
        return None
    down = data.get("down", 0.0)
    within = isinstance(down, int | float) and 0 <= down < 1
    return Pick(lane, float(at), data.get("name") is True, float(down) if within else 0.0)
