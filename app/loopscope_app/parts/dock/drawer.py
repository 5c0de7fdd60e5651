"""Drawers over the dock: problems, exports, facts about the model, and the sheet of keys."""

from __future__ import annotations

import streamlit as st

from loopscope_app.describe.controls import CONTROLS
from loopscope_app.parts.dock import about_drawer, export_drawer, problems_drawer
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import DRAWER, HIDDEN

_TITLES = {
    "Problems": "Problems",
    "Export": "Export",
    "Keyboard": "Keyboard",
    "About": "About this model",
}


def show(session: UserSession, opened: Opened) -> bool:
    """Draw the open drawer and return True; return False if none is open."""
    name = DRAWER.shown()
    if name == HIDDEN:
        return False
    with st.container(key="drawer"):
        with st.container(key="drawer_head", horizontal=True, vertical_alignment="center"):
            markup.show(f"<h2>{_TITLES[name]}</h2>")
            st.button(
                "Close",
                key="drawer_close",
                icon=":material/close:",
                type="tertiary",
                on_click=DRAWER.show,
                args=(HIDDEN,),
                help=f"Close {_TITLES[name]}",
            )
        match name:
            case "Problems":
                problems_drawer.show(session, opened)
            case "Export":
                export_drawer.show(session)
            case "Keyboard":
                show_keys()
            case _:
                about_drawer.show(session, opened)
    return True


_SHOWN = {"Right": "→", "Left": "←", "Up": "↑", "Down": "↓"}
_OTHER = (  # alternatives are separated by a bar
    ("/|Ctrl+F", "Find a node by name, operation, shape or value"),
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
    ("+|−|0", "Zoom in, zoom out, show the whole picture"),
    ("U", "Iterations side by side, or the loop drawn once"),
    ("?|L", "The legend: what colours and lines mean"),
)
_MOUSE = (
    ("Double click", "A body on a canvas of its own"),
    ("Red dot", "A breakpoint: a click switches it off, and on again"),
)


def show_keys() -> None:
    rows = [(_keys(control.shortcut), markup.text(control.meaning)) for control in CONTROLS]
    rows += [
        (" ".join(_keys(key) for key in keys.split("|")), markup.text(meaning))
        for keys, meaning in _OTHER
    ]
    rows += [(markup.text(mouse), markup.text(meaning)) for mouse, meaning in _MOUSE]
    markup.show(markup.facts(rows))


def _keys(shortcut: str) -> str:
    """Return the keys of a shortcut as markup; a plus alone is a key."""
    keys = shortcut.split("+") if len(shortcut) > 1 else [shortcut]
    return " ".join(f"<kbd>{_SHOWN.get(key, key)}</kbd>" for key in keys)
