"""Breakpoints, where a run pauses, and watches, expressions that are shown at every moment."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

import loopscope
from loopscope.debug import Breakpoint, BreakpointKind
from loopscope.ir import readable
from loopscope.view import value_preview
from loopscope_app.actions import breakpoint_actions
from loopscope_app.links.codec import beyond
from loopscope_app.links.current_link import pauses, watches
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession, current, widget
from loopscope_app.state.user_session import place as put

PLACE, CONDITION, EXPRESSION = "breakpoint_place", "breakpoint_condition", "watch_expression"

_EVERYWHERE: tuple[tuple[BreakpointKind, str, str], ...] = (
    ("nan", "Pause at NaN", ":material/error:"),
    ("infinity", "Pause at infinity", ":material/all_inclusive:"),
    ("shape", "Pause when a shape changes", ":material/straighten:"),
)
"""Breakpoints that stop at any operation: kind, label of the button, icon."""


def show(session: UserSession) -> None:
    debugger = session.run.debugger
    if debugger is None:
        return
    markup.show(markup.section("Breakpoints"))
    _show_breakpoints(session, debugger)
    _show_breakpoint_form(session)
    _show_buttons(debugger)
    markup.show(markup.section("Watches"))
    _show_watches(debugger)
    _show_watch_form()


def _show_breakpoints(session: UserSession, debugger: loopscope.Debugger) -> None:
    for breakpoint in debugger.breakpoints.items():
        change = _change if breakpoint.kind == "address" else None
        dot, rest = st.columns([0.7, 7.9], vertical_alignment="center", gap=None)
        with dot:
            _switch(session, breakpoint)
        with rest:
            words = f"{breakpoint.id} · {breakpoint.describe()}{'' if breakpoint.on else ' (off)'}"
            _row(
                words,
                "",
                f"breakpoint_remove_{breakpoint.id}",
                breakpoint_actions.remove_breakpoint,
                breakpoint.id,
                change,
            )
    _tell(beyond(pauses(debugger), "breakpoints"))


def _show_breakpoint_form(session: UserSession) -> None:
    with st.form("breakpoint_form", border=False):
        place, condition, add = st.columns([4, 3, 1.4], vertical_alignment="bottom", gap="small")
        place.text_input(
            "Pause at",
            key=PLACE,
            placeholder=_example(session),
            help="A name, or an address as the inspector shows it; loop[5] is an iteration, "
            "loop[*] every iteration; empty: the next operation",
        )
        condition.text_input(
            "only when",
            key=CONDITION,
            placeholder="value > 10",
            help="An expression over the values of the graph; if it names the value of this "
            "operation, the run pauses after the operation",
        )
        add.form_submit_button("Add", on_click=_add_breakpoint)


def _show_buttons(debugger: loopscope.Debugger) -> None:
    """Draw the buttons of breakpoints that stop at any operation."""
    with st.container(horizontal=True):
        for kind, words, icon in _EVERYWHERE:
            st.button(
                words,
                key=f"breakpoint_{kind}",
                type="primary" if debugger.breakpoints.has(kind) else "secondary",
                on_click=breakpoint_actions.toggle_breakpoint,
                args=(kind,),
                icon=icon,
                help="Click again to remove it" if debugger.breakpoints.has(kind) else None,
            )


def _show_watches(debugger: loopscope.Debugger) -> None:
    values = debugger.watches.values()
    for number, expression in debugger.watches.items():
        value = values[number]
        detail = (
            markup.text(f"· {value}")
            if isinstance(value, str)
            else f'<span class="mono">= {markup.text(value_preview(value))}</span>'
        )
        _row(
            expression,
            detail,
            f"watch_remove_{number}",
            breakpoint_actions.remove_watch,
            number,
            _change_watch,
        )
    _tell(beyond(watches(debugger), "watches"))


def _show_watch_form() -> None:
    with st.form("watch_form", border=False):
        field, add = st.columns([7, 1.4], vertical_alignment="bottom", gap="small")
        field.text_input("Watch", key=EXPRESSION, placeholder="max(abs(x))")
        add.form_submit_button("Add", on_click=_add_watch)


def _tell(words: str) -> None:
    if words:
        markup.show(markup.text(words), "quiet")


def _example(session: UserSession) -> str:
    return readable(session.run.debugger.cursor.address) if session.run.debugger else ""


def _switch(session: UserSession, breakpoint: Breakpoint) -> None:
    key = f"breakpoint_on_{session.run.generation}_{breakpoint.id}"  # another run numbers them anew
    put(key, breakpoint.on)  # it may have been switched on the picture
    st.checkbox(
        f"Breakpoint {breakpoint.id} pauses the run",
        key=key,
        label_visibility="collapsed",
        on_change=breakpoint_actions.switch_breakpoint,
        args=(breakpoint.id, key),
    )


def _row(
    words: str,
    detail: str,
    key: str,
    remove: Callable[[int], None],
    number: int,
    change: Callable[[int], None] | None,
) -> None:
    text, pen, cross = st.columns([7, 0.8, 0.8], vertical_alignment="center", gap="small")
    with text:
        markup.show(
            f'<span class="mono">{markup.text(words)}</span> <span class="quiet">{detail}</span>'
        )
    if change is not None:
        pen.button(
            "Change",
            key=f"{key}_change",
            icon=":material/edit:",
            type="tertiary",
            on_click=change,
            args=(number,),
            help="Change",
        )
    cross.button(
        "Remove",
        key=key,
        icon=":material/close:",
        type="tertiary",
        on_click=remove,
        args=(number,),
        help="Remove",
    )


def _change(number: int) -> None:
    """Move a breakpoint from the list into the fields, where a person changes it and adds it
    again.
    """
    debugger = current().run.debugger
    breakpoint = (
        next((breakpoint for breakpoint in debugger.breakpoints if breakpoint.id == number), None)
        if debugger
        else None
    )
    if breakpoint is not None:
        breakpoint_actions.remove_breakpoint(number)
        put(PLACE, readable(breakpoint.pattern) if breakpoint.pattern else "")
        put(CONDITION, breakpoint.condition.text if breakpoint.condition else "")


def _change_watch(number: int) -> None:
    debugger = current().run.debugger
    expression = dict(debugger.watches.items()).get(number) if debugger else None
    if expression is not None:
        breakpoint_actions.remove_watch(number)
        put(EXPRESSION, expression)


def _add_breakpoint() -> None:
    place, condition = str(widget(PLACE) or "").strip(), str(widget(CONDITION) or "").strip()
    debugger = current().run.debugger
    if place or condition:
        breakpoint_actions.add_breakpoint(
            place or (debugger.cursor.address if debugger else ""), condition
        )
        _clear(PLACE, CONDITION)


def _add_watch() -> None:
    breakpoint_actions.add_watch(str(widget(EXPRESSION) or ""))
    _clear(EXPRESSION)


def _clear(*keys: str) -> None:
    """Empty fields for the next entry. A refused entry stays, so that it can be corrected."""
    if current().message is None:
        for key in keys:
            put(key, "")
