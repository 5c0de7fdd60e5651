"""Charts of lanes: blocks over one axis, with marks; the browser's data of iterations or steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from loopscope.errors import neutral
from loopscope.object_cache import cache_by_object

LONGEST_NAME = 80
Kind = Literal["none", "idle", "even", "odd", "then", "else", "heat", "nan", "failed", "shape"]
Block = (
    tuple[float, float, Kind, float, str, str]
    | tuple[float, float, Kind, float, str, str, int, int]
)
"""Begin, end, kind, level, text inside, tooltip; optionally the row and the number of rows in the
lane.

The level is heat from -1 to 1, or the number of a shape. Rows count from the top.
"""


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of blocks."""

    name: str
    blocks: Sequence[Block]
    height: int = 22
    line: Sequence[float | None] | None = None
    """Levels from 0 to 1, one for each unit of the axis, drawn as a curve."""
    second_line: Sequence[float | None] | None = None
    """Levels of a second run, drawn as a dashed curve."""
    strong: bool = False
    note: str = ""
    """Tooltip of the name."""
    pick: bool = False
    """True if a click on the name has an effect."""
    verdict: str = ""
    """Short text below the name, if the lane has room for two lines."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark at a position: in one lane, or across all (``lane`` -1)."""

    at: float
    kind: Literal["nan", "stop", "now", "fixed"]
    text: str
    lane: int = -1
    until: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Chart:
    """A chart."""

    label: str
    """Text alternative for users who cannot see the chart."""
    unit: str
    extent: float
    lanes: Sequence[Lane]
    marks: Sequence[Mark] = field(default_factory=tuple[Mark, ...])
    ticks: Sequence[str] | None = None
    """A name for each unit; None for numbers from ``first`` on."""
    first: int = 0


@cache_by_object(newest_only=True)
def message(chart: Chart, key: str) -> dict[str, Any]:
    """Return the browser's data of a chart, computed once; names of the model are cut and
    escaped.
    """
    # Not `asdict`, which copies every block.
    lanes = [
        _fields(lane) | {"name": neutral(lane.name, LONGEST_NAME), "note": neutral(lane.note, 200)}
        for lane in chart.lanes
    ]
    marks = [_fields(mark) for mark in chart.marks]
    return _fields(chart) | {"lanes": lanes, "marks": marks, "key": key}


def _fields(item: Chart | Lane | Mark) -> dict[str, Any]:
    return {field.name: getattr(item, field.name) for field in fields(item)}
