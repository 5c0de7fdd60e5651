"""Moves through a run that have a button and a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import loopscope

Move = Callable[[loopscope.Debugger], object]


@dataclass(frozen=True, slots=True)
class TransportButton:
    """A button with its move, its key and its meaning."""

    name: str
    icon: str
    """Name of the icon; empty for a button with only a text."""
    move: Move
    shortcut: str
    meaning: str
    label: str = ""
    """Text on the button; empty for a well-known icon."""
    back: bool = False
    """True for a move backward, which is useless at the first step."""


def _rewind(debugger: loopscope.Debugger) -> None:
    debugger.seek(0)  # not `restart`, which would drop computed values


CONTROLS = (
    TransportButton("restart", "first_page", _rewind, "Home", "To the first moment", back=True),
    TransportButton(
        "back",
        "chevron_left",
        loopscope.Debugger.step_back,
        "Left",
        "One operation back",
        back=True,
    ),
    TransportButton(
        "step",
        "",
        loopscope.Debugger.step,
        "Right",
        "Run one operation, going into bodies",
        "Step",
    ),
    TransportButton(
        "over",
        "step_over",
        loopscope.Debugger.step_over,
        "O",
        "Run a whole loop or branch as one operation",
        "Over",
    ),
    TransportButton(
        "into",
        "step_into",
        loopscope.Debugger.step_into,
        "Down",
        "Go to the first operation inside the loop or branch",
        "Into",
    ),
    TransportButton(
        "out", "step_out", loopscope.Debugger.step_out, "Up", "Run to the end of this body", "Out"
    ),
    TransportButton(
        "previous",
        "keyboard_double_arrow_left",
        loopscope.Debugger.previous_iteration,
        "Shift+Left",
        "To the beginning of the previous iteration",
        "Previous iteration",
        back=True,
    ),
    TransportButton(
        "next",
        "",
        loopscope.Debugger.next_iteration,
        "Shift+Right",
        "To the beginning of the next iteration",
        "Iteration",
    ),
    TransportButton(
        "run",
        "",
        loopscope.Debugger.run,
        "End",
        "Run to the next breakpoint, or to the end",
        "Run",
    ),
)
BY_NAME = {control.name: control for control in CONTROLS}
MORE = ("over", "into", "out", "previous")
"""Names of the moves behind the caret of the transport."""
