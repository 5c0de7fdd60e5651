"""What a notebook shows of a model or a run: the app's canvas as a widget, else a picture, or a few words and why there is no picture."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.debug.debugger import Debugger
from engine.errors import InputError
from engine.ir.model import Model, Signature

if TYPE_CHECKING:
    from engine.view.node_data import Given, NodeData

_ROOM = "app.notebook"
_STILL = "app.notebook.still"
_WIDGETS = "anywidget"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Widget:
    """A model or a run as the last value of a cell shows it, with what others say of its nodes as colours."""

    shown: Model | Debugger
    node_data: NodeData | None

    def __repr__(self) -> str:
        return f"<the widget of {self.shown!r}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, Any]:
        if isinstance(self.shown, Model):
            return bundle(self.shown, self.node_data)
        return run_bundle(self.shown, self.node_data)


def widget(shown: Model | Debugger, *, overlay: Given | None = None) -> Widget:
    """What a notebook shows of a model or a run, coloured by what others say of its nodes.

    ``overlay``: a number or a text by address (``main/loop[2]/body/add`` holds in that iteration only) or name, or a JSON file of them, as
    of ``loopscope --overlay``. Needs ``pip install 'loopscope[notebook]'``; a still picture has no colours. A key that names nothing is
    a warning, ``ReadError`` where none names anything.
    """
    if not isinstance(shown, Model | Debugger):
        raise InputError(f"engine.widget shows a model or a Debugger, and this is a {type(shown).__name__}")
    if overlay is None:
        return Widget(shown, None)
    from engine.view.node_data import given_node_data

    found = given_node_data(overlay, shown if isinstance(shown, Model) else shown.model)
    if words := found.unmatched_words("the overlay"):
        warnings.warn(words, stacklevel=2)
    return Widget(shown, found)


def bundle(model: Model, node_data: NodeData | None = None) -> Mapping[str, Any]:
    """By media type: always text; a widget where the extra ``notebook`` is installed, else an SVG picture where the ``dot`` program is."""
    if _shows_widgets():
        shown: Mapping[str, Any] = importlib.import_module(_ROOM).cell_of_model(model, summary(model), node_data)
        return shown
    # Only here: who never shows a model need not wait for what draws it.
    from engine.view.build import graph_view
    from engine.view.folding import default_folding
    from engine.view.render import NoPicture, render

    try:
        picture = render(graph_view(model, default_folding(model)), "svg").decode()
    except NoPicture as problem:
        return {"text/plain": f"{summary(model)}\n  no picture: {problem}"}
    # As wide as the cell at most.
    return {"text/plain": summary(model), "image/svg+xml": picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)}


def run_bundle(debugger: Debugger, node_data: NodeData | None = None) -> Mapping[str, Any]:
    """By media type: always text; a widget, which follows the debugger and moves it, where the extra ``notebook`` is installed.

    Without it a page that stands still: what the run's loops and branches did, and the graph.
    """
    if _shows_widgets():
        shown: Mapping[str, Any] = importlib.import_module(_ROOM).cell_of_run(debugger, node_data)
        return shown
    words = {"text/plain": repr(debugger)}
    return {**words, "text/html": importlib.import_module(_STILL).still_of_run(debugger)} if _has_app() else words


def _shows_widgets() -> bool:
    """Whether a kernel runs here for which there are widgets."""
    return importlib.util.find_spec(_WIDGETS) is not None and _has_app()


def _has_app() -> bool:
    """Whether the app stands beside the engine."""
    return importlib.util.find_spec("app") is not None and importlib.util.find_spec(_ROOM) is not None


def summary(model: Model) -> str:
    """Name, inputs and outputs, a line each."""
    lines = [f"Model {model.name!r} with {len(model.graph.nodes)} nodes"]
    lines += [f"  input  {_signature(one)}" for one in model.inputs]
    lines += [f"  output {_signature(one)}" for one in model.outputs]
    return "\n".join(lines)


def _signature(one: Signature) -> str:
    return f"{next(iter(one.names), one.name)}: {one.element_type or '?'}{one.shape}"
