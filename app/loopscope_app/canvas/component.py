"""The canvas as four Streamlit components.

One sends the layout library, one the structure of a picture, one the overlay of the moment, and one
the prefetched steps. They are separate because Streamlit sends a message whole if anything in it
changed, and as a short reference if nothing did: a step sends the overlay only. In the browser they
share one table per page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import streamlit as st

from loopscope.object_cache import cache_by_object
from loopscope.view import GraphView, Overlay, Track, structure
from loopscope_app.canvas_event import (
    Act,
    Move,
    StepReport,
    read_acts,
    read_ask,
    read_moves,
    read_report,
)
from loopscope_app.components import component
from loopscope_app.state.user_session import widget
from loopscope_app.vendor import LIBRARY

_ASSETS = Path(__file__).parent / "assets"
_MISSING = (
    "The layout library is missing from this installation. In a clone, run: python -m "
    "loopscope_app.vendor"
)

_canvas = component("canvas", "canvas.js", style="canvas.css", folder=_ASSETS, themed="canvas")
_overlay = component("overlay", "overlay.js", folder=_ASSETS)
_prefetch = component("prefetch", "prefetch.js", folder=_ASSETS)
_library = component("library", "library.js", folder=_ASSETS)

# The same view gives the same message, so that Streamlit sends it once.
_structure_of = cache_by_object(structure)


@lru_cache(maxsize=1)
def _library_bytes(changed: float) -> bytes:
    return LIBRARY.read_bytes()


@dataclass(frozen=True, slots=True)
class CanvasRun:
    """The run that a canvas plays and slides through."""

    name: str
    """Name of the run; two runs have different names."""
    step: int
    steps: int
    """Number of computed steps."""
    over: bool
    """True if no further step can be computed."""
    tracks: tuple[Track, ...]
    prefetch: Callable[[], Mapping[str, object] | None]
    """Function that returns the requested steps as ``loopscope.view.playback_batch`` does."""
    on_ask: Callable[[int], None]
    """Receives the first step that should be sent ahead."""
    on_step: Callable[[StepReport], None]
    """Receives the step that the canvas has reached while playing; of reports in quick succession
    only the latest arrives.
    """
    on_moves: Callable[[tuple[Move, ...]], None]
    """Receives the moves that are not confirmed."""
    reported: int
    """Number of the last report that was passed on."""
    moved: int
    """Number of the last move; it confirms all moves up to it."""
    plays: int
    """Grows when the canvas should begin or end playing."""

    def as_data(self) -> dict[str, object]:
        """Return the fields of a moment that the canvas receives."""
        data = ("step", "steps", "over", "reported", "moved", "plays")
        return {
            "run": self.name,
            "tracks": [track.as_data() for track in self.tracks],
            **{name: getattr(self, name) for name in data},
        }


def prepare() -> None:
    """Send the layout library before the page of a canvas, so that the browser compiles it while
    Python draws the page.
    """
    if LIBRARY.is_file():
        with st.container(key="layout_library"):
            _library(
                key="layout_library_bytes", data=_library_bytes(LIBRARY.stat().st_mtime), height=1
            )


def show(
    view: GraphView,
    overlay: Overlay,
    *,
    key: str,
    height: int,
    on_acts: Callable[[tuple[Act, ...]], None],
    acted: int = 0,
    focus: str = "",
    subject: str = "",
    file: str = "picture",
    traced: str = "",
    run: CanvasRun | None = None,
) -> None:
    """Draw a view at a moment, on a page that ``prepare`` began.

    ``focus`` is the address to scroll to, once per change: static, or with iterations of unrolled
    loops. The browser restores zoom and position for each ``subject``, such as a model. ``file`` is
    the name of a saved picture without its ending. ``traced`` is the name of the value whose
    origins the overlay highlights. ``acted`` is the number of the last event that was received.
    """
    missing = "" if LIBRARY.is_file() else _MISSING
    with st.container(gap=None, key=f"{key}_parts"):
        _overlay(
            key=f"{key}_overlay",
            data=moment(view, overlay, key=key, focus=focus, traced=traced, acted=acted, run=run),
        )
        _canvas(
            key=key,
            data={
                "key": key,
                "height": height,
                "structure": _structure_of(view),
                "missing": missing,
                "subject": subject,
                "file": file,
            },
            height=height,
            on_acts_change=partial(_report_acts, key, view, on_acts),
            on_step_change=partial(_report_step, key, run),
            on_moves_change=partial(_report_moves, key, run),
        )
        if run is not None:
            _send_prefetched(run, f"{key}_prefetch", message_target(view, key) | {"run": run.name})


def moment(
    view: GraphView,
    overlay: Overlay,
    *,
    key: str,
    focus: str,
    traced: str,
    acted: int,
    run: CanvasRun | None,
) -> dict[str, object]:
    """Return the overlay of the moment as it is sent: ``Moment`` in
    ``protocol/protocol.schema.json``.
    """
    now = (
        overlay.as_data()
        | message_target(view, key)
        | {"focus": _id_of(view, focus), "traced": traced, "acted": acted}
    )
    return now if run is None else now | run.as_data()


def message_target(view: GraphView, key: str) -> dict[str, object]:
    """Return the fields that name the canvas and the picture of a message."""
    return {"key": key, "hash": _structure_of(view)["hash"]}


def _id_of(view: GraphView, address: str) -> str:
    """Return the id of the part that shows an address in a view; empty if no part does."""
    shown = view.showing(view.place_of(address)) if address else None
    return shown.id if shown is not None else ""


def _report_acts(key: str, view: GraphView, on_acts: Callable[[tuple[Act, ...]], None]) -> None:
    acts = read_acts(getattr(widget(key), "acts", None), view)
    if acts:
        on_acts(acts)


def _report_step(key: str, run: CanvasRun | None) -> None:
    if run is None:
        return
    report = read_report(getattr(widget(key), "step", None), run.name)
    if report is not None:
        run.on_step(report)


def _report_moves(key: str, run: CanvasRun | None) -> None:
    if run is None:
        return
    moves = read_moves(getattr(widget(key), "moves", None), run.name)
    if moves:
        run.on_moves(moves)


@st.fragment
def _send_prefetched(run: CanvasRun, key: str, target: Mapping[str, object]) -> None:
    """Send the requested steps from a fragment of its own, so that nothing else is drawn again."""
    _prefetch(
        key=key,
        data={**(run.prefetch() or {}), **target},
        on_ask_change=partial(_report_ask, key, run),
    )


def _report_ask(key: str, run: CanvasRun) -> None:
    step = read_ask(getattr(widget(key), "ask", None), run.name)
    if step is not None:
        run.on_ask(step)
