"""Lanes of blocks over one axis, with marks: iterations of a loop, steps of a run; what a
browser gets of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal
from weakref import WeakKeyDictionary

from loopscope.errors import neutral

LONGEST_NAME = 80
Kind = Literal["idle", "even", "odd", "then", "else", "heat", "nan", "failed", "shape"]
Block = (
    tuple[float, float, Kind, float, str, str]
    | tuple[float, float, Kind, float, str, str, int, int]
)
"""From, to, kind, level (of heat -1 to 1, of shapes their number), words inside it, words beside
the pointer; where several share the height of a lane, which of how many it is from the top.
"""


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
    verdict: str = ""
    """A word or two under its name, where the lane is high enough for two lines."""


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


_messages: WeakKeyDictionary[Chart, dict[str, Any]] = WeakKeyDictionary()


def message(chart: Chart, key: str) -> dict[str, Any]:
    """What the browser gets of a chart, described once; names of the model are cut and made
    harmless.
    """
    kept = _messages.get(chart)
    if kept is None or kept["key"] != key:
        # Not `asdict`: it copies every block.
        lanes = [
            _fields(lane)
            | {"name": neutral(lane.name, LONGEST_NAME), "note": neutral(lane.note, 200)}
            for lane in chart.lanes
        ]
        kept = _messages[chart] = _fields(chart) | {
            "lanes": lanes,
            "marks": [_fields(mark) for mark in chart.marks],
            "key": key,
        }
    return kept


def _fields(one: Chart | Lane | Mark) -> dict[str, Any]:
    return {field.name: getattr(one, field.name) for field in fields(one)}
