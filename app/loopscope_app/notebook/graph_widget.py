"""The canvas of a model in a cell: its picture, and the effect of clicks on it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import anywidget
import traitlets

import loopscope
from loopscope.errors import EngineError
from loopscope.ir import ROOT
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
    structure,
    toggle,
    unrolling,
    without_iterations,
)
from loopscope_app.canvas_event import CanvasEvent, read_acts
from loopscope_app.describe.canvas_boxes import switch_at, unrolled
from loopscope_app.notebook.cell_style import GRAPH_MARKUP, script, sheet
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
