"""The Setup tab: the inputs of the run, and below them breakpoints and watches.

Inputs are edited as numbers and tables, generated with a seed, or uploaded; then the run starts
again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

import loopscope
from loopscope.debug import Breakpoint, BreakpointKind
from loopscope.ir import ElementType, Signature, is_trace, readable
from loopscope.ops import is_tensor
from loopscope.view import value_preview
from loopscope_app.actions import breakpoint_actions, input_draft
from loopscope_app.describe.random_inputs import default_shape
from loopscope_app.describe.signatures import signatures
from loopscope_app.describe.tensor_summary import values_for_editing
from loopscope_app.links.codec import beyond
from loopscope_app.links.current_link import pauses, watches
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession, current, widget
from loopscope_app.state.user_session import place as put


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is not None and not is_trace(opened.model):
        markup.show(markup.section("Inputs"))
        _show_inputs(session)
    _show_pauses(session)


EDITABLE = 1024
"""Number of elements up to which an input is shown as an editable table."""


def _show_inputs(session: UserSession) -> None:
    if session.model.opened is None:
        return
    model = session.model.opened.model
    if not model.inputs:
        markup.show("The model has no inputs.", "quiet")
        return
    for position, (key, signature) in enumerate(signatures(model).items()):
        _input(session, position, key, signature)
    _show_run_button(f"inputs_name_{session.run.generation}")
    if session.run.debugger is not None and any(
        array is not session.model.inputs.get(key) for key, array in session.model.draft.items()
    ):
        markup.show("Not run yet: the graph shows the run with the previous inputs.", "quiet")
    _show_generator(f"inputs_seed_{session.run.generation}")
    _show_upload(f"inputs_files_{session.run.generation}")


def _show_run_button(name: str) -> None:
    """Draw the button that runs the draft, and the field for a name to save it under."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Run",
            key="inputs_run",
            type="primary",
            icon=":material/replay:",
            on_click=input_draft.run_draft,
            args=(name,),
        )
        st.text_input(
            "Save as (optional)",
            key=name,
            placeholder="name",
            max_chars=input_draft.LONGEST_NAME,
            width=180,
            help="Adds these inputs to the list of inputs until you leave this page. Compare and "
            "Many runs offer them too.",
        )


def _show_generator(seed: str) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Generate",
            key="inputs_random",
            icon=":material/casino:",
            on_click=input_draft.make_up,
            args=(seed,),
            help="Random values, the same for the same seed. An input that the model compares "
            "with a constant becomes this constant.",
        )
        st.number_input("Seed", 0, 2**31 - 1, 0, key=seed, width=110)


def _show_upload(files: str) -> None:
    st.file_uploader(
        "Values from a file",
        type=["npz", "npy"],
        help="An .npz with arrays by name or position of the inputs, or an .npy that is named "
        "after its input",
        key=files,
        on_change=input_draft.upload_inputs,
        args=(files,),
    )


def _input(session: UserSession, position: int, key: str, signature: Signature) -> None:
    array = session.model.draft.get(key)
    kind = f"{signature.element_type or 'any type'} {markup.plain(signature.shape)}"
    label = f"{markup.plain(key, 60)} · {kind}"
    field_key = f"input_{position}_{session.run.generation}"
    if array is None:
        markup.show(f"<b>{markup.text(key)}</b> has no value yet: upload it below.", "quiet")
    elif not is_tensor(array):
        value = f'<span class="mono quiet">{markup.text(value_preview(array))}</span>'
        markup.show(f"<b>{markup.text(key, 60)}</b> {value}")
        return
    elif array.ndim == 0:
        _scalar(label, field_key, key, array)
    elif array.size <= EDITABLE and array.ndim <= 2 and array.size:
        import pandas as pd  # imported here: it takes half a second, and only tables need it

        chips = markup.chip(signature.element_type or "any type") + markup.chip(
            str(signature.shape)
        )
        markup.show(f"<b>{markup.text(key, 60)}</b> {chips}")
        matrix = array.reshape(1, -1) if array.ndim == 1 else array
        frame = pd.DataFrame(values_for_editing(matrix))
        frame.columns = [str(column) for column in range(matrix.shape[1])]
        st.data_editor(
            frame,
            key=field_key,
            hide_index=array.ndim == 1,
            height="auto" if matrix.shape[0] <= 6 else 240,
            on_change=input_draft.edit_table,
            args=(field_key, key),
        )
    else:
        value = f'<span class="mono quiet">{markup.text(value_preview(array))}</span>'
        markup.show(f"<b>{markup.text(key, 60)}</b> {value}")
    if not signature.shape.is_static and array is not None:
        _shape(session, position, key, signature, array)


def _scalar(label: str, field_key: str, key: str, array: np.ndarray) -> None:
    kind = ElementType.of(array)
    if kind is ElementType.BOOLEAN:
        st.toggle(
            label,
            bool(array),
            key=field_key,
            on_change=input_draft.edit_scalar,
            args=(field_key, key),
        )
    else:
        text = (
            str(array.item()) if kind is ElementType.STRING or kind.is_integer else str(array[()])
        )
        st.text_input(
            label, text, key=field_key, on_change=input_draft.edit_scalar, args=(field_key, key)
        )


def _shape(
    session: UserSession, position: int, key: str, signature: Signature, array: np.ndarray
) -> None:
    """Show a field for the lengths that the model leaves open."""
    field_key = f"input_shape_{position}_{session.run.generation}"
    st.text_input(
        f"Shape, within {markup.plain(signature.shape)}",
        ", ".join(map(str, array.shape or default_shape(signature.shape))),
        key=field_key,
        on_change=input_draft.reshape,
        args=(field_key, key),
        help="Another shape gets random values",
    )


BREAKPOINT_PLACE, BREAKPOINT_CONDITION, WATCH_EXPRESSION = (
    "breakpoint_place",
    "breakpoint_condition",
    "watch_expression",
)

_EVERYWHERE: tuple[tuple[BreakpointKind, str, str], ...] = (
    ("nan", "Pause at NaN", ":material/error:"),
    ("infinity", "Pause at infinity", ":material/all_inclusive:"),
    ("shape", "Pause when a shape changes", ":material/straighten:"),
)
"""Breakpoints that stop at any operation: kind, label of the button, icon."""


def _show_pauses(session: UserSession) -> None:
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
        change = _change_breakpoint if breakpoint.kind == "address" else None
        dot, rest = st.columns([0.7, 7.9], vertical_alignment="center", gap=None)
        with dot:
            _breakpoint_switch(session, breakpoint)
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
    _show_limit(beyond(pauses(debugger), "breakpoints"))


def _show_breakpoint_form(session: UserSession) -> None:
    with st.form("breakpoint_form", border=False):
        place, condition, add = st.columns([4, 3, 1.4], vertical_alignment="bottom", gap="small")
        place.text_input(
            "Pause at",
            key=BREAKPOINT_PLACE,
            placeholder=_example_place(session),
            help="A name, or an address as the inspector shows it; loop[5] is an iteration, "
            "loop[*] every iteration; empty: the next operation",
        )
        condition.text_input(
            "only when",
            key=BREAKPOINT_CONDITION,
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
    _show_limit(beyond(watches(debugger), "watches"))


def _show_watch_form() -> None:
    with st.form("watch_form", border=False):
        field, add = st.columns([7, 1.4], vertical_alignment="bottom", gap="small")
        field.text_input("Watch", key=WATCH_EXPRESSION, placeholder="max(abs(x))")
        add.form_submit_button("Add", on_click=_add_watch)


def _show_limit(words: str) -> None:
    if words:
        markup.show(markup.text(words), "quiet")


def _example_place(session: UserSession) -> str:
    return readable(session.run.debugger.cursor.address) if session.run.debugger else ""


def _breakpoint_switch(session: UserSession, breakpoint: Breakpoint) -> None:
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


def _change_breakpoint(number: int) -> None:
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
        put(BREAKPOINT_PLACE, readable(breakpoint.pattern) if breakpoint.pattern else "")
        put(BREAKPOINT_CONDITION, breakpoint.condition.text if breakpoint.condition else "")


def _change_watch(number: int) -> None:
    debugger = current().run.debugger
    expression = dict(debugger.watches.items()).get(number) if debugger else None
    if expression is not None:
        breakpoint_actions.remove_watch(number)
        put(WATCH_EXPRESSION, expression)


def _add_breakpoint() -> None:
    place, condition = (
        str(widget(BREAKPOINT_PLACE) or "").strip(),
        str(widget(BREAKPOINT_CONDITION) or "").strip(),
    )
    debugger = current().run.debugger
    if place or condition:
        breakpoint_actions.add_breakpoint(
            place or (debugger.cursor.address if debugger else ""), condition
        )
        _clear(BREAKPOINT_PLACE, BREAKPOINT_CONDITION)


def _add_watch() -> None:
    breakpoint_actions.add_watch(str(widget(WATCH_EXPRESSION) or ""))
    _clear(WATCH_EXPRESSION)


def _clear(*keys: str) -> None:
    """Empty fields for the next entry. A refused entry stays, so that it can be corrected."""
    if current().message is None:
        for key in keys:
            put(key, "")
