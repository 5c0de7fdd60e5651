"""All moments of a run for a page: overlays as differences, and the place of each in words, on the
pictures and on its tracks.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import loopscope
from loopscope.debug import Cursor
from loopscope.explain import Listing
from loopscope.ir import readable
from loopscope.view import (
    GraphView,
    Marks,
    NodeData,
    cursor_boxes,
    difference,
    node_colours,
    overlay_at,
    tracks,
)
from loopscope_app.describe.canvas_boxes import loop_endings
from loopscope_app.describe.code_moment import code_moment
from loopscope_app.page.paged_pictures import Pictures

MOST_MOMENTS = 2000
_VALUES = ("values", "backs", "sparks", "nans")
"""Tables of an overlay that contain values of the run."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Moments of a run in order: some of its steps, with the first and the last."""

    steps: tuple[int, ...]
    overlays: tuple[Mapping[str, object], ...]
    """Overlays of all parts of all pictures, without the cursor of each picture."""
    spots: tuple[tuple[tuple[str, str], ...], ...]
    """Boxes that run next and boxes that stay in view, by picture."""
    paths: tuple[tuple[int, ...], ...]
    """Open graphs, outermost first: the iteration of a loop's body, -1 for any other graph."""
    places: tuple[str, ...]
    """Words for what runs next."""
    graphs: tuple[str, ...]
    """Address of the innermost open graph."""
    tracks: tuple[str, ...]
    """Tracks as JSON, with steps."""
    lines: tuple[Mapping[str, object], ...]
    """Code lines that are current or skipped, and the values beside them."""

    def thinned(self, keep: int) -> Moments:
        """Return every other moment, with the first, the last, and the one at which the page
        opens.
        """
        numbers = [
            k
            for k in range(len(self.steps))
            if k % 2 == 0 or k == len(self.steps) - 1 or self.steps[k] == keep
        ]

        return Moments(
            steps=tuple(self.steps[k] for k in numbers),
            overlays=tuple(self.overlays[k] for k in numbers),
            spots=tuple(self.spots[k] for k in numbers),
            paths=tuple(self.paths[k] for k in numbers),
            places=tuple(self.places[k] for k in numbers),
            graphs=tuple(self.graphs[k] for k in numbers),
            tracks=tuple(self.tracks[k] for k in numbers),
            lines=tuple(self.lines[k] for k in numbers),
        )

    def at(self, step: int) -> int:
        """Return the number of the last moment that is not after a step."""
        return max(0, bisect_right(self.steps, step) - 1)

    def as_data(self) -> dict[str, object]:
        """Return the moments for the page's script, with tracks by moment."""
        different = list(dict.fromkeys(self.tracks))
        number = {text: k for k, text in enumerate(different)}
        spots = list(dict.fromkeys(self.spots))
        spot = {pair: k for k, pair in enumerate(spots)}
        return {
            "frames": _changes(self.overlays),
            "lines": _changes(self.lines),
            "spots": spots,
            "spot": [spot[pair] for pair in self.spots],
            "steps": self.steps,
            "paths": self.paths,
            "places": self.places,
            "tracks": [
                [self._by_moment(track) for track in json.loads(text)] for text in different
            ],
            "track": [number[text] for text in self.tracks],
        }

    def _by_moment(self, track: dict[str, object]) -> dict[str, object]:
        begins, ends = track["begins"], track["ends"]
        assert isinstance(begins, list)
        assert isinstance(ends, list)
        first, last = track["first"], track["last"]
        assert isinstance(first, int)
        assert isinstance(last, int)
        return {
            **track,
            "first": self.at(first),
            "last": self.at(last),
            "begins": [self.at(step) for step in begins],
            "ends": [self.at(step) for step in ends],
        }


def _changes(tables: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the first table whole, and the changes from each to the next."""
    changes: list[dict[str, object]] = []
    before: dict[str, object] = {}
    for table in tables:
        now = dict(table)
        changes.append(difference(before, now))
        before = now
    return changes


def moments(
    debugger: loopscope.Debugger,
    drawn: Pictures,
    code: Listing,
    step: int,
    *,
    with_values: bool,
    node_data: NodeData | None = None,
    limit: int = MOST_MOMENTS,
) -> Moments:
    """Return the moments of everything that has run; of a longer run every k-th step, and ``step``.

    The cursor of the debugger does not move. ``node_data`` colours the nodes.
    """
    stride = -(-(debugger.steps + 1) // limit)
    steps = sorted({*range(0, debugger.steps + 1, stride), step, debugger.steps})
    twin = copy(debugger)
    together = drawn.together
    previews: dict[str, str] = {}
    overlays: list[Mapping[str, object]] = []
    spots = _Spots(drawn.views)
    cursor_boxes: list[tuple[tuple[str, str], ...]] = []
    paths: list[tuple[int, ...]] = []
    places: list[str] = []
    graphs: list[str] = []
    texts: list[str] = []
    lines: list[Mapping[str, object]] = []
    for frame in steps:
        twin.seek(frame)
        now = overlay_at(
            twin, together, Marks(verdicts=loop_endings(twin, together)), previews=previews
        ).as_data()
        now = {**now, "next": "", "current": "", **_coloured(twin, drawn, node_data)}
        overlays.append(now if with_values else {**now, **{name: {} for name in _VALUES}})
        cursor_boxes.append(spots.at(twin))
        opened = twin.frames()
        paths.append(tuple(-1 if frame.iteration is None else frame.iteration for frame in opened))
        graphs.append(opened[-1].address if opened else "")
        places.append(place_words(twin.cursor))
        texts.append(json.dumps([track.as_data() for track in tracks(twin)]))
        written = code_moment(twin, code, "", previews)
        lines.append(written if with_values else {**written, "hints": {}})
    return Moments(
        tuple(steps),
        tuple(overlays),
        tuple(cursor_boxes),
        tuple(paths),
        tuple(places),
        tuple(graphs),
        tuple(texts),
        tuple(lines),
    )


def _coloured(
    debugger: loopscope.Debugger, drawn: Pictures, data: NodeData | None
) -> Mapping[str, object]:
    """Return the colours of the boxes of all pictures, and their legend."""
    if data is None:
        return {}
    return {
        "tints": {
            id: tint
            for view in drawn.views
            for id, tint in node_colours(view, debugger, data).items()
        },
        "scale": data.scale,
    }


class _Spots:
    """The place of the cursor on each picture, looked up once for each place of the model."""

    def __init__(self, views: tuple[GraphView, ...]) -> None:
        self._views = views
        self._known: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}

    def at(self, debugger: loopscope.Debugger) -> tuple[tuple[str, str], ...]:
        cursor = debugger.cursor
        key = (cursor.kind, self._views[0].place_of(cursor.address or cursor.previous or ""))
        if key not in self._known:
            self._known[key] = tuple(cursor_boxes(debugger, view) for view in self._views)
        return self._known[key]


def place_words(cursor: Cursor) -> str:
    """Return the place of a cursor as words."""
    if cursor.kind == "finished":
        return "finished"
    words = readable(cursor.address)
    return f"at the end of {words}" if cursor.kind == "end" else f"before {words}"
