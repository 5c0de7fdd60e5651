"""The canvas of a model or of a run in a cell: its picture, and the effect of clicks on it.

The canvas of a run follows the debugger and moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from functools import lru_cache, partial

import anywidget
import traitlets

import loopscope
from loopscope.errors import EngineError
from loopscope.ir import ROOT, Address
from loopscope.view import (
    VISIBLE_NODES,
    Folding,
    GraphView,
    Marks,
    NodeData,
    Overlay,
    default_folding,
    graph_view,
    overlay_at,
    playback_batch,
    structure,
    toggle,
    tracks,
    unrolling,
    without_iterations,
)
from loopscope_app.canvas_event import (
    CanvasEvent,
    Move,
    read_acts,
    read_ask,
    read_moves,
    read_report,
)
from loopscope_app.describe.canvas_boxes import loop_endings, switch_at, unrolled
from loopscope_app.describe.controls import BY_NAME
from loopscope_app.notebook.cell_style import GRAPH_MARKUP, run_markup, script, sheet
from loopscope_app.page.moments import place_words
from loopscope_app.page.text_sections import MOST_ROWS, MOST_TABLES, tables, verdicts
from loopscope_app.vendor import LIBRARY


class GraphWidget(anywidget.AnyWidget):
    """The graph of a model. Clicks fold, unroll and open its parts."""

    _esm = script()
    sheet = traitlets.Unicode(sheet()).tag(sync=True)
    markup = traitlets.Unicode(GRAPH_MARKUP).tag(sync=True)
    file = traitlets.Unicode("").tag(sync=True)
    """Name of a saved picture."""
    structure = traitlets.Dict().tag(sync=True)
    """The structure, as ``loopscope.view.structure`` returns it."""
    moment = traitlets.Dict().tag(sync=True)
    """``Moment`` of the canvas's protocol without the key, because each view of the widget has its
    own key.
    """
    said = traitlets.Unicode("").tag(sync=True)
    """HTML about what the run did."""
    place = traitlets.Unicode("").tag(sync=True)
    """The place of the run, as words."""

    def __init__(self, model: loopscope.Model, node_data: NodeData | None = None) -> None:
        """Create the widget; ``node_data`` colours its nodes."""
        self.node_data = node_data
        self.picture = Picture(model)
        self._acted = 0
        self._drawn: GraphView | None = None
        super().__init__(
            file="".join(letter if letter.isalnum() else "_" for letter in model.name)[:80]
            or "graph"
        )
        self.on_msg(lambda _, content, __: self.hear(content))
        self.show()

    def show(self) -> None:
        """Send the current picture and moment to the canvas."""
        with self.hold_sync():
            if self._drawn is not self.picture.view:
                self._drawn = self.picture.view
                self.structure = structure(self._drawn)
            marks = {
                "hash": self.structure["hash"],
                "focus": "",
                "traced": "",
                "acted": self._acted,
            }
            self.moment = {**self._overlay(self._drawn).as_data(), **marks, **self._of_run()}

    def hear(self, content: object) -> None:
        """Apply a message of the canvas. The message is not trusted: its ids must belong to this
        picture.
        """
        if not isinstance(content, Mapping):
            return
        try:
            self._heard(str(content.get("kind")), content.get("value"))
        except EngineError as problem:
            self.place = str(problem)

    def _heard(self, kind: str, value: object) -> None:
        if kind == "library":
            self.send({"kind": "library"}, [LIBRARY.read_bytes()])
        elif kind == "acts":
            for act in read_acts(value, self.picture.view):
                if act.number > self._acted:
                    self._acted = act.number
                    if act.event is not None:
                        self.picture.hear(act.event, self._debugger())
            self.show()

    def _debugger(self) -> loopscope.Debugger | None:
        """Return the debugger of the run; None for a model without a run."""
        return None

    def _overlay(self, view: GraphView) -> Overlay:
        return overlay_at(
            None, view, Marks(selected=self.picture.selected, node_data=self.node_data)
        )

    def _of_run(self) -> Mapping[str, object]:
        """Return the fields of a moment that describe the run."""
        return {}


FEWEST_BOXES = 20
"""Number of boxes below which a picture is not folded further."""


class Picture:
    """The open graph, its folding, and the selected node."""

    def __init__(self, model: loopscope.Model) -> None:
        self.model = model
        self.root = ROOT
        self.folding: Folding = default_folding(model)
        self.selected = ""
        self._boxes = VISIBLE_NODES
        self._view = lru_cache(maxsize=1)(graph_view)

    @property
    def view(self) -> GraphView:
        """Return the view; the same object until the folding changes."""
        return self._view(self.model, self.folding, self.root)

    def hear(self, event: CanvasEvent, debugger: loopscope.Debugger | None) -> None:
        """Apply an event of the canvas."""
        match event.kind:
            case "select":
                self.selected = event.address
            case "clear":
                self.selected = ""
            case "fold":
                self.folding = toggle(self.model, self.folding, event.address)
            case "unroll":
                self.folding = unrolled(
                    self.model, self.folding, self.root, event.address, debugger
                )
                if self.folding.window(without_iterations(event.address)) is None:
                    self.selected = without_iterations(self.selected)
            case "earlier" | "later":
                self.folding = unrolling.shift(
                    self.folding, event.address, 1 if event.kind == "later" else -1
                )
            case "fewer" | "wider":
                self.folding = unrolling.resize(
                    self.folding, event.address, 1 if event.kind == "wider" else -1
                )
            case "open" if event.root:
                self._open(event.root)
            case "key" if event.key == "Backspace":
                self._open(self.root.rpartition("/")[0].rpartition("/")[0])
            case "too_dense" if self._boxes > FEWEST_BOXES:
                self._boxes //= 2
                self.folding = default_folding(self.model, self.root, max_boxes=self._boxes)
            case "breakpoint" if debugger is not None:
                switch_at(debugger, self.view, event.address)

    def follow(self, debugger: loopscope.Debugger) -> None:
        """Move the windows of unrolled loops to the cursor."""
        self.folding = unrolling.followed(self.folding, debugger)

    def _open(self, root: str) -> None:
        """Show a graph on the canvas; ignore what lies outside the main graph."""
        if root:
            self.root, self._boxes = root, VISIBLE_NODES
            self.folding = default_folding(self.model, root)


FURTHER = 64
"""Number of steps beyond the computed ones that a message of the canvas may request."""
SECONDS = 0.05
"""Seconds for describing steps that are sent ahead."""


class RunWidget(GraphWidget):
    """The graph at a moment of a run, with transport, verdicts and tables."""

    def __init__(self, debugger: loopscope.Debugger, node_data: NodeData | None = None) -> None:
        self.debugger = debugger
        self._scout: loopscope.Debugger | None = None
        self._previews: dict[str, str] = {}
        self._reported = self._moved = 0
        self._told: tuple[object, ...] = ()
        self._moving = False
        super().__init__(debugger.model, node_data)
        self.markup = run_markup()
        debugger.listeners.add(self._follow)

    def show(self) -> None:
        """Send the moment, and the texts about the run if it has advanced."""
        version = (id(self.debugger.machine), self.debugger.steps, self.debugger.state)
        with self.hold_sync():
            if version != self._told:
                self._told = version
                self.said = verdicts(self.debugger, with_values=True) + tables(
                    self.debugger, _first_steps(self.debugger), with_values=True
                )
            notice = self.debugger.failure or self.debugger.notice
            self.place = place_words(self.debugger.cursor) + (f" · {notice}" if notice else "")
            super().show()

    def _debugger(self) -> loopscope.Debugger | None:
        return self.debugger

    def _overlay(self, view: GraphView) -> Overlay:
        breakpoints = [breakpoint for breakpoint in self.debugger.breakpoints if breakpoint.pattern]
        return overlay_at(
            self.debugger,
            view,
            Marks(
                selected=self.picture.selected,
                breakpoints=[breakpoint.pattern for breakpoint in breakpoints if breakpoint.on],
                switched_off=[
                    breakpoint.pattern for breakpoint in breakpoints if not breakpoint.on
                ],
                verdicts=loop_endings(self.debugger, view),
                node_data=self.node_data,
            ),
            previews=self._previews,
        )

    def _of_run(self) -> Mapping[str, object]:
        return {
            "run": self._run_name(),
            "step": self.debugger.cursor.step,
            "steps": self.debugger.steps,
            "over": self.debugger.state != "paused",
            "tracks": [track.as_data() for track in tracks(self.debugger)],
            "reported": self._reported,
            "moved": self._moved,
            "plays": 0,
        }

    def _run_name(self) -> str:
        """Return a name of the run that changes when its breakpoints change."""
        return " ".join(
            [
                str(id(self.debugger)),
                *(str(breakpoint.id) for breakpoint in self.debugger.breakpoints.on),
            ]
        )

    def _follow(self) -> None:
        """Show the moment after the debugger has moved."""
        if not self._moving:
            self.picture.follow(self.debugger)
            self.show()

    def _go(self, move: Callable[[loopscope.Debugger], object]) -> None:
        """Move the debugger and send one moment."""
        self._moving = True
        try:
            move(self.debugger)
        finally:
            self._moving = False

    def _heard(self, kind: str, value: object) -> None:
        name = self._run_name()
        if kind == "ask" and (wanted := read_ask(value, name)) is not None:
            self.send(
                {
                    "kind": "stretch",
                    "stretch": {**self._ahead(wanted), "run": name, "hash": self.structure["hash"]},
                }
            )
        elif kind == "step" and (report := read_report(value, name)) is not None:
            self._reported = report.number
            if report.number > self._moved:
                self._seek(report.step)
            self._follow()
        elif kind == "moves":
            for move in read_moves(value, name):
                self._make(move)
            self._follow()
        else:
            super()._heard(kind, value)

    def _make(self, move: Move) -> None:
        control = BY_NAME.get(move.name)
        if move.number > self._moved and control is not None:
            self._moved = move.number
            if move.start is not None:
                self._seek(move.start)
            self._go(control.move)

    def _seek(self, step: int) -> None:
        known = max(self.debugger.steps, self._scout.steps if self._scout else 0)
        self._go(lambda debugger: debugger.seek(min(step, known + FURTHER)))

    def _ahead(self, wanted: int) -> Mapping[str, object]:
        """Return steps ahead: computed ones from the debugger, later ones from a second run."""
        batch = partial(
            playback_batch, seconds=SECONDS, previews=self._previews, node_data=self.node_data
        )
        if wanted <= self.debugger.steps or self.debugger.state != "paused":
            return batch(self.debugger, self.picture.view, wanted)
        if self._scout is None or self._scout.steps > wanted:
            self._scout = copy(self.debugger)
            self._scout.restart()
        frames = batch(
            self._scout,
            self.picture.view,
            min(wanted, max(self.debugger.steps, self._scout.steps) + FURTHER),
            further=True,
            breakpoints=self.debugger.breakpoints.on,
        )
        return frames if self._scout.state == "paused" else {**frames, "end": self._scout.steps}


def _first_steps(debugger: loopscope.Debugger) -> dict[str, int]:
    """Return the first step of each body execution in the tables, by its address."""
    steps: dict[str, int] = {}
    loops = [record for record in debugger.control_flow if record.iterations][:MOST_TABLES]
    for record in loops:
        for iteration in range(min(record.iterations or 0, MOST_ROWS)):
            body = f"{record.address}[{iteration}]/body"
            with suppress(EngineError):  # an If, which has no iterations
                steps[body] = debugger.timeline.step_at(
                    *debugger.rows_of(Address.parse(f"{body}/any")), 0
                )
    return steps
