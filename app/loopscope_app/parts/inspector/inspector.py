"""One operation at one moment: its whole value, its ports, and its attributes with their
meaning.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import counterpart, ties
from loopscope.ir import Address, Port, is_trace, readable
from loopscope.ops import Operation, as_array, catalogue_for
from loopscope.transform.recurrences import recurrence_of
from loopscope.view import walked_back_now, without_iterations
from loopscope_app.actions import breakpoint_actions, moves, opened_operators, selection
from loopscope_app.describe.node_index import IndexedNode, places, with_output
from loopscope_app.parts.inspector import (
    attribute_table,
    cut_out_item,
    origin,
    port_list,
    rounding_menu,
    specialise_menu,
    value,
)
from loopscope_app.parts.widgets import address_line, markup
from loopscope_app.state.user_session import UserSession, widget
from loopscope_app.state.view_choices import VIEW

BODIES = ("body", "then", "else")


def show(session: UserSession) -> None:
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None:
        return
    place = places(opened.model).get(static_place(session))
    if place is None:
        markup.show("Click an operation to see what it is and holds, or take a step.", "quiet")
        return
    concrete = concrete_place(session, place)
    _heading(session, place, concrete)
    if debugger is not None and concrete:
        _to_the_other_loop(debugger, concrete)
    offered = ("Value",) if is_trace(opened.model) else VIEW.options
    VIEW.begin(VIEW.options[0], offered)
    view = st.segmented_control(
        "What to show",
        offered,
        key=VIEW.key,
        required=True,
        label_visibility="collapsed",
        width="stretch",
    )
    if view == "Attributes":
        attribute_table.show(place.node, _operation(session, place))
    elif view == "Ports":
        port_list.show(
            place,
            debugger,
            concrete.rpartition("/")[0] if concrete else open_graph(debugger, place),
        )
    else:
        _show_value(debugger, place, concrete, origin_only=view == "Origin")


def static_place(session: UserSession) -> str:
    """Return the selected place, else what ran last; at the begin and end of a body, what runs
    next.
    """
    if session.canvas.selected or session.run.debugger is None:
        return without_iterations(session.canvas.selected)
    cursor = session.run.debugger.cursor
    before, ahead = (
        Address.parse(address).static if address else ""
        for address in (cursor.previous, cursor.address)
    )
    entered = bool(before) and ahead.startswith(f"{before}/")
    for static in (ahead, before) if entered else (before, ahead):
        if static and static.rpartition("/")[2] not in BODIES:
            return static
    return (before or ahead).rpartition("/")[0]


def concrete_place(session: UserSession, place: IndexedNode) -> str | None:
    """Return the execution of a place that the canvas shows at the cursor; None if it has not
    run.
    """
    if session.run.debugger is None:
        return None
    cursor = session.run.debugger.cursor
    if (
        not session.canvas.selected
        and cursor.previous
        and Address.parse(cursor.previous).static == place.address
    ):
        return str(cursor.previous)
    return session.run.debugger.resolve(
        walked_back_now(session.run.debugger, session.canvas.selected or place.address)
    )


def shown_value(session: UserSession) -> str:
    """Return the concrete address of the value that is shown, or an empty text."""
    place = (
        places(session.model.opened.model).get(static_place(session))
        if session.model.opened
        else None
    )
    concrete = concrete_place(session, place) if place is not None else None
    return (
        with_output(concrete, widget(_output_key(place)) or 0)
        if place is not None and concrete
        else ""
    )


def _output_key(place: IndexedNode) -> str:
    return f"inspector_output_{place.address}"


def _operation(session: UserSession, place: IndexedNode) -> Operation | None:
    dialect = session.model.opened.model.dialect if session.model.opened else "openvino"
    return catalogue_for(dialect).find(place.node.type, place.node.opset)


def _heading(session: UserSession, place: IndexedNode, concrete: str | None) -> None:
    node = place.node
    operation = _operation(session, place)
    title = operation.title if operation else f"{node.type} {node.opset}"
    declared = node.outputs[0] if node.outputs else node.inputs[0] if node.inputs else None
    described = (
        f"declared {declared.element_type or 'any type'} {_shape_words(declared)}"
        if declared
        else "no outputs"
    )
    shown = concrete or _where(session, place)
    words, button = st.columns([6, 1.2], vertical_alignment="top", gap="small")
    with words:
        markup.show(
            f'<b style="font-size:1.08rem">{markup.text(node.name, 80)}</b>'
            f"<br>{markup.chip(title, 'live')}{markup.chip(described)}"
        )
        address_line.show(shown, key="inspector_address")
    with button.popover("More", key="node_menu", icon=":material/more_horiz:", width="stretch"):
        _item(
            "Pause here", "pause_circle", "pause", breakpoint_actions.add_breakpoint, place.address
        )
        _item("Run to here", "keyboard_tab", "run_to", moves.run_to, place.address)
        if session.canvas.selected:
            _item("Follow the cursor", "my_location", "follow", selection.select, "")
        else:
            _item("Stay on this one", "push_pin", "pin", selection.select, place.address)
        if (
            session.model.opened is not None
            and session.run.debugger is not None
            and not is_trace(session.model.opened.model)
        ):
            _loop_item(session, place)
            cut_out_item.show(session.model.opened, session.run.debugger, place, concrete)
            specialise_menu.show(session, session.model.opened, place)
            rounding_menu.show(session.model.opened.model, place)


def _loop_item(session: UserSession, place: IndexedNode) -> None:
    """Show the item that opens an operator as a loop, or folds the loop again."""
    opened = session.model.opened
    if opened is None:
        return
    if place.address in opened.operators:
        _item("Fold", "unfold_less", "fold", opened_operators.fold, place.address)
    elif recurrence_of(place.node, opened.model.dialect) is not None:
        _item("Open as a loop", "replay", "open_loop", opened_operators.open_loop, place.address)


def _to_the_other_loop(debugger: loopscope.Debugger, concrete: str) -> None:
    """Show a link from a place in a forward/backward pair to the same iteration of its partner."""
    other = counterpart(debugger, concrete.rpartition("/")[0])
    if not other:
        return
    loop = other.rpartition("/")[0]
    verb = (
        "Walked back"
        if Address.parse(loop).static in {pair.backward_address for pair in ties(debugger.plan)}
        else "Walks back"
    )
    words = markup.plain(f"{verb}: {readable(loop)}", 90)
    st.button(
        words,
        key="inspector_other_loop",
        icon=":material/undo:",
        type="tertiary",
        on_click=moves.seek,
        args=(other,),
    )


def _item(words: str, icon: str, name: str, action: Callable[[str], None], address: str) -> None:
    """Show one entry of the menu of a place."""
    st.button(
        words,
        icon=f":material/{icon}:",
        key=f"inspector_{name}",
        on_click=action,
        args=(address,),
        width="stretch",
    )


def _where(session: UserSession, place: IndexedNode) -> str:
    """Return where a place runs next, as far as the graphs around it are open. A pinned iteration
    stays.
    """
    if "[" in session.canvas.selected:
        return session.canvas.selected
    graph = open_graph(session.run.debugger, place)
    return f"{graph}/{place.labels[place.node.id]}" if graph else place.address


def _shape_words(port: Port) -> str:
    return "of any rank" if port.shape.rank is None else str(port.shape)


def _show_value(
    debugger: loopscope.Debugger | None, place: IndexedNode, concrete: str | None, origin_only: bool
) -> None:
    if debugger is None:
        markup.show("The model cannot be run: see its problems.", "quiet")
        return
    if concrete is None:
        markup.show("It has not run yet.", "quiet")
        port_list.show_inputs(place, debugger, open_graph(debugger, place))
        return
    output = 0
    if len(place.node.outputs) > 1:
        numbers = range(len(place.node.outputs))
        chosen = st.segmented_control(
            "Output",
            numbers,
            label_visibility="collapsed",
            default=0,
            format_func=lambda number: f"output {number}",
            key=_output_key(place),
        )
        output = chosen or 0
    address = with_output(concrete, output)
    try:
        array = as_array(debugger.value(address))
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return
    if origin_only:
        origin.show(debugger, address)
    else:
        _against_declared(place, output, array)
        value.show(debugger, address, array)


def _against_declared(place: IndexedNode, output: int, array: np.ndarray) -> None:
    """Show where a value differs from the declaration of the file, and which lengths the file left
    open.
    """
    if output >= len(place.node.outputs) or array.dtype.kind == "O":
        return
    shape, declared = (
        place.node.outputs[output].shape,
        markup.text(_shape_words(place.node.outputs[output])),
    )
    if not shape.contains(array.shape):
        markup.show(
            f"{markup.chip('not as declared', 'warn')} declared {declared}, here "
            f"{markup.text(list(array.shape))}"
        )
    elif not shape.is_static and shape.rank:
        markup.show(f"declared {declared}, here {markup.text(list(array.shape))}", "quiet")


def open_graph(debugger: loopscope.Debugger | None, place: IndexedNode) -> str:
    """Return the concrete address of the graph around a place, as open at the cursor."""
    opened = debugger.frames() if debugger else ()
    return next((frame.address for frame in opened if frame.static == place.graph_address), "")
