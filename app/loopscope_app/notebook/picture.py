"""The picture of a model in a cell, and the effect of clicks on it."""

from __future__ import annotations

from functools import lru_cache

import loopscope
from loopscope.ir import ROOT
from loopscope.view import (
    VISIBLE_NODES,
    Folding,
    GraphView,
    default_folding,
    graph_view,
    toggle,
    unrolling,
    without_iterations,
)
from loopscope_app.canvas_event import CanvasEvent
from loopscope_app.describe.breakpoint_dots import switch_at
from loopscope_app.describe.unrolled import unrolled

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
