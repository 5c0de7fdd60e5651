"""What a notebook shows of a model or a run: the app's canvas as a widget, else a picture, or a few words and why there is no picture."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from engine.debug.debugger import Debugger
from engine.ir.model import Model, Signature

_ROOM = "app.notebook"
_WIDGETS = "anywidget"


def bundle(model: Model) -> Mapping[str, Any]:
    """By media type: always text; a widget where the extra ``notebook`` is installed, else an SVG picture where the ``dot`` program is."""
    if _shows_widgets():
        shown: Mapping[str, Any] = importlib.import_module(_ROOM).cell_of_model(model, summary(model))
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


def run_bundle(debugger: Debugger) -> Mapping[str, Any]:
    """By media type: always text; a widget, which follows the debugger and moves it, where the extra ``notebook`` is installed."""
    if _shows_widgets():
        shown: Mapping[str, Any] = importlib.import_module(_ROOM).cell_of_run(debugger)
        return shown
    return {"text/plain": repr(debugger)}


def _shows_widgets() -> bool:
    """Whether a kernel runs here for which there are widgets."""
    return all(importlib.util.find_spec(one) is not None for one in (_WIDGETS, "app")) and importlib.util.find_spec(_ROOM) is not None


def summary(model: Model) -> str:
    """Name, inputs and outputs, a line each."""
    lines = [f"Model {model.name!r} with {len(model.graph.nodes)} nodes"]
    lines += [f"  input  {_signature(one)}" for one in model.inputs]
    lines += [f"  output {_signature(one)}" for one in model.outputs]
    return "\n".join(lines)


def _signature(one: Signature) -> str:
    return f"{next(iter(one.names), one.name)}: {one.element_type or '?'}{one.shape}"
