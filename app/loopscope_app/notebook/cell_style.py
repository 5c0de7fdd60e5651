"""Scripts, style sheet and markup of a widget."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from loopscope.view import declarations
from loopscope_app.bundle import bundle
from loopscope_app.describe.controls import CONTROLS
from loopscope_app.page.text_sections import text

_ASSETS = Path(__file__).parents[1] / "canvas" / "assets"


@cache
def script() -> str:
    """Return the module that anywidget loads."""
    return bundle(_ASSETS / "notebook.js")


@cache
def sheet() -> str:
    """Return the style sheet for the shadow tree of a cell, light and dark."""
    sheets = "\n".join(
        (_ASSETS / name).read_text(encoding="utf-8")
        for name in ("canvas.css", "side_panel.css", "notebook.css")
    )
    light, dark = declarations("light"), declarations("dark")
    return f'.cell {{ {light} }}\n.cell:has(.canvas[data-theme="dark"]) {{ {dark} }}\n{sheets}'


GRAPH_MARKUP = '<div id="canvas"></div>'


@cache
def run_markup() -> str:
    """Return the markup of transport, place, canvas and texts about the run."""
    buttons = "".join(
        (
            f'<button data-move="{control.name}" title="{text(control.meaning)} '
            f'({text(control.shortcut)})">{_SIGNS.get(control.name, control.label)}</button>'
        )
        for control in CONTROLS
    )
    play = '<button id="play" title="Step by itself (Space)">Play</button>'
    moves = (
        f'<nav aria-label="Moves through the run">{buttons}{play}</nav><p id="place" '
        'role="status"></p>'
    )
    return f'{moves}{GRAPH_MARKUP}<p id="chosen"></p><section id="said"></section>'


_SIGNS = {
    "restart": "⇤",
    "back": "‹",
    "step": "Step ›",
    "previous": "«",
    "next": "Iteration »",
    "run": "Run ⇥",
}
"""Signs of the controls that have an icon in the app."""
