"""The link that reopens the current moment of a session."""

from __future__ import annotations

import loopscope
from loopscope.debug import Pause
from loopscope_app.links.codec import Link, Window, has_room_for, written
from loopscope_app.state import view_choices
from loopscope_app.state.user_session import UserSession, widget
from loopscope_app.state.view_choices import COMPARE_KIND, COMPARE_WITH, INPUTS


def current_link(session: UserSession) -> Link | None:
    """Return the link; None if nothing is open, the model was uploaded, or a long run is under
    way.
    """
    opened = session.model.opened
    if opened is None or not opened.link or session.run.running is not None:
        return None
    return (
        None
        if opened.backward is not None and not has_room_for(opened.backward)
        else _link(session, opened.link)
    )


def look(session: UserSession) -> dict[str, str]:
    """Return the view of the moment as parameters of a link, without those that a saved run
    stores, and without an open drawer.
    """
    return {
        name: text for name, text in written(_link(session, "")).items() if name not in _LEFT_OUT
    }


_LEFT_OUT = frozenset(
    {
        "lesson",
        "type",
        "model",
        "backward",
        "open",
        "set",
        "whatif",
        "step",
        "breakpoints",
        "watches",
        "drawer",
    }
)


def _link(session: UserSession, model: str) -> Link:
    debugger = session.run.at_rest
    return Link(
        model=model,
        lesson=session.learning.lesson,
        large=session.learning.large,
        backward=session.model.opened.backward if session.model.opened else None,
        opened=session.model.opened.operators if session.model.opened else (),
        input_set=session.model.input_set,
        changes=session.run.changes,
        step=str(debugger.cursor.step) if debugger and debugger.cursor.step else "",
        node=session.canvas.selected,
        body=session.canvas.root,
        unrolled=tuple(
            Window(window.address, window.first, window.count)
            for window in session.canvas.folding.unrolled
        ),
        breakpoints=pauses(debugger) if debugger else (),
        watches=watches(debugger) if debugger else (),
        looks=view_choices.chosen(),
        question=session.run.asked,
        view=session.view,
        other_set=_other_set(session),
        runs=session.many.words,
    )


def _other_set(session: UserSession) -> str:
    """Return the input set of the other run while Compare shows one."""
    opened, chosen = session.model.opened, str(widget(COMPARE_WITH) or "")
    is_shown = session.view == "compare" and widget(COMPARE_KIND) == INPUTS and opened is not None
    return chosen if is_shown and opened is not None and chosen in opened.sets else ""


def pauses(debugger: loopscope.Debugger) -> tuple[Pause, ...]:
    """Return the breakpoints of a run."""
    return tuple(breakpoint.as_set for breakpoint in debugger.breakpoints.items())


def watches(debugger: loopscope.Debugger) -> tuple[str, ...]:
    """Return the watched expressions of a run."""
    return tuple(expression for _, expression in debugger.watches.items())
