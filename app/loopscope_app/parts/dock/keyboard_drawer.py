"""A sheet that lists the keys."""

from __future__ import annotations

from loopscope_app.describe.controls import CONTROLS
from loopscope_app.parts.widgets import markup

_SHOWN = {"Right": "→", "Left": "←", "Up": "↑", "Down": "↓"}
_OTHER = (
    ("/ or Ctrl+F", "Find a node by name, operation, shape or value"),
    ("W", "What if: set the value of the shown node by hand"),
    ("P", "Play: step automatically, or stop; so does the space bar"),
    ("Backspace", "On the canvas: out of the body that it shows"),
    ("F", "The canvas alone in the window; Esc brings the panels back"),
    (
        "Tab",
        (
            "Into the canvas: arrow keys walk along wires, Enter shows a box or opens it, "
            "Esc steps again"
        ),
    ),
    ("+ − 0", "The canvas closer, further, all of it"),
    ("U", "Iterations side by side, or the loop drawn once"),
    ("? L", "The legend: what colours and lines mean"),
    ("Double click", "A body on a canvas of its own"),
    ("Red dot", "A breakpoint: a click switches it off, and on again"),
)


def show() -> None:
    rows = [(_keys(control.shortcut), markup.text(control.meaning)) for control in CONTROLS]
    rows += [(markup.text(key), markup.text(meaning)) for key, meaning in _OTHER]
    markup.show(markup.facts(rows))


def _keys(shortcut: str) -> str:
    return " ".join(f"<kbd>{_SHOWN.get(key, key)}</kbd>" for key in shortcut.split("+"))
