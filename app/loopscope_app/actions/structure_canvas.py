"""Actions of the canvas of Compare that shows the structure of two models."""

from __future__ import annotations

from loopscope.comparison import INSIDE, StructureDiff
from loopscope.view import default_folding, reveal, toggle
from loopscope_app import canvas
from loopscope_app.actions import selection
from loopscope_app.actions.report_errors import show_errors
from loopscope_app.state.run_in_view import ShownStructure
from loopscope_app.state.user_session import UserSession, current


def shown_structure(session: UserSession, diff: StructureDiff) -> ShownStructure:
    """Return what the canvas shows of a difference; at first, the first change."""
    shown = session.run.structure
    if shown is None or shown.of is not diff:
        shown = session.run.structure = ShownStructure(diff, default_folding(diff.model))
        own = [change for change in diff.changes if change.words != INSIDE]
        if own:
            show_change(own[0].address)
    return shown


def show_change(address: str) -> None:
    """Select an operation, and open the bodies around it."""
    shown = current().run.structure
    if shown is not None:
        shown.address = address
        shown.folding = reveal(shown.of.model, shown.folding, address)


@show_errors
def on_canvas(event: canvas.CanvasEvent) -> None:
    """Carry out an event of the canvas: select an operation, fold or open a body."""
    shown = current().run.structure
    if shown is None:
        return
    match event.kind:
        case "fold" | "open":
            shown.folding = toggle(shown.of.model, shown.folding, event.address)
        case "too_dense":
            shown.folding = default_folding(shown.of.model, max_boxes=selection.FEWEST_BOXES)
        case "select":
            shown.address = event.address
