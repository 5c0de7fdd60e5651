"""The canvas of a model in a cell."""

from __future__ import annotations

from collections.abc import Mapping

import anywidget
import traitlets

import loopscope
from loopscope.errors import EngineError
from loopscope.view import GraphView, Marks, NodeData, Overlay, overlay_at, structure
from loopscope_app.canvas_event import read_acts
from loopscope_app.notebook.cell_style import GRAPH_MARKUP, script, sheet
from loopscope_app.notebook.picture import Picture
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
