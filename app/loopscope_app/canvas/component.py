"""The canvas as Streamlit components: one carries the layout library, one the structure, one the
overlay of the moment.

They travel apart because Streamlit sends a message whole when anything in it changed, and replaces
it by a short reference when nothing did: a step sends the overlay only. In the browser they meet in
one table per page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from weakref import WeakKeyDictionary

import streamlit as st

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
_MISSING = "The layout library is missing from this installation. In a clone, run: python -m loopscope_app.vendor"

_canvas = component("canvas", "canvas.js", style="canvas.css", folder=_ASSETS, themed="canvas")
_overlay = component("overlay", "overlay.js", folder=_ASSETS)
_prefetch = component("prefetch", "prefetch.js", folder=_ASSETS)
_library = component("library", "library.js", folder=_ASSETS)

# The same view gives the same message, so that Streamlit sends it once.
_structures: WeakKeyDictionary[GraphView, dict[str, object]] = WeakKeyDictionary()


@lru_cache(maxsize=1)
def _library_bytes(changed: float) -> bytes:
    return LIBRARY.read_bytes()


@dataclass(frozen=True, slots=True)
class CanvasRun:
    """The run that a canvas plays and slides through."""

    name: str
    """Differs between runs."""
    step: int
    steps: int
    """That have been computed."""
    over: bool
    """No more can be computed."""
    tracks: tuple[Track, ...]
    prefetch: Callable[[], Mapping[str, object] | None]
    """What ``loopscope.view.playback_batch`` makes when the canvas asks for it."""
    on_ask: Callable[[int], None]
    """Told the first step that should be sent ahead."""
    on_step: Callable[[StepReport], None]
    """Called with the step that the canvas has reached while playing; of reports in quick
    succession only the latest arrives.
    """
    on_moves: Callable[[tuple[Move, ...]], None]
    """Told the moves that were asked for and are not confirmed."""
    reported: int
    """Number of the last report that was passed on."""
    moved: int
    """Number of the last move that was made: all up to it are confirmed."""
    plays: int
    """Grows when the canvas is to begin or to end playing."""

    def as_data(self) -> dict[str, object]:
        """The fields of a moment that the canvas receives."""
        told = ("step", "steps", "over", "reported", "moved", "plays")
        return {
            "run": self.name,
            "tracks": [one.as_data() for one in self.tracks],
            **{name: getattr(self, name) for name in told},
        }


def prepare() -> None:
    """Sends the layout library, before the page that a canvas is on: the browser compiles it
    while the page is still being made.
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
    """Draw a view at a moment, on a page that ``prepare`` began; ``on_acts`` is told what is done
    on the canvas, again and again until ``acted``, the number of the last act that was heard,
    confirms it.

    ``focus``: address to bring into sight, once per change; static, or with iterations of unrolled
    loops. Zoom and place are kept for each ``subject``, such as a model. ``file``: what a picture
    of it is called on disk. ``traced``: the name of the value whose origins the overlay lights up.
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
            on_acts_change=partial(_tell_acts, key, view, on_acts),
            on_step_change=partial(_tell_step, key, run),
            on_moves_change=partial(_tell_moves, key, run),
        )
        if run is not None:
            _send_prefetched(run, f"{key}_prefetch", belonging(view, key) | {"run": run.name})


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
    """The overlay of now as it is sent: ``Moment`` in ``protocol/protocol.schema.json``."""
    now = (
        overlay.as_data()
        | belonging(view, key)
        | {"focus": _id_of(view, focus), "traced": traced, "acted": acted}
    )
    return now if run is None else now | run.as_data()


def belonging(view: GraphView, key: str) -> dict[str, object]:
    """Which canvas and which of its pictures a message is for."""
    return {"key": key, "hash": _structure_of(view)["hash"]}


def _structure_of(view: GraphView) -> dict[str, object]:
    data = _structures.get(view)
    if data is None:
        data = _structures[view] = structure(view)
    return data


def _id_of(view: GraphView, address: str) -> str:
    """What shows an address in a view; empty where nothing does."""
    shown = view.showing(view.place_of(address)) if address else None
    return shown.id if shown is not None else ""


def _tell_acts(key: str, view: GraphView, on_acts: Callable[[tuple[Act, ...]], None]) -> None:
    acts = read_acts(getattr(widget(key), "acts", None), view)
    if acts:
        on_acts(acts)


def _tell_step(key: str, run: CanvasRun | None) -> None:
    if run is None:
        return
    report = read_report(getattr(widget(key), "step", None), run.name)
    if report is not None:
        run.on_step(report)


def _tell_moves(key: str, run: CanvasRun | None) -> None:
    if run is None:
        return
    moves = read_moves(getattr(widget(key), "moves", None), run.name)
    if moves:
        run.on_moves(moves)


@st.fragment
def _send_prefetched(run: CanvasRun, key: str, belonging: Mapping[str, object]) -> None:
    """A fragment, so that what is asked for while the canvas plays comes alone: nothing else of
    the page is drawn again for it.
    """
    _prefetch(
        key=key,
        data={**(run.prefetch() or {}), **belonging},
        on_ask_change=partial(_tell_ask, key, run),
    )


def _tell_ask(key: str, run: CanvasRun) -> None:
    step = read_ask(getattr(widget(key), "ask", None), run.name)
    if step is not None:
        run.on_ask(step)
