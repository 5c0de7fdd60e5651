"""The Node tab: one operation at one moment, as one page.

It shows inputs, outputs, the value with its course, port map, attributes and consumers. Its menu
rounds to a narrower type, specialises, opens an operator as a loop, and cuts out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import streamlit as st

import loopscope
from loopscope.errors import EngineError, neutral
from loopscope.explain import counterpart, ties
from loopscope.ir import IF, REAL_FLOATS, Address, Model, Port, is_trace, readable
from loopscope.ops import NARROWER, Operation, as_array, catalogue_for
from loopscope.transform.recurrences import recurrence_of
from loopscope_app.actions import (
    breakpoint_actions,
    derived_models,
    moves,
    other_runs,
    selection,
    side_by_side,
)
from loopscope_app.actions.report_errors import show_errors
from loopscope_app.describe.node_index import IndexedNode, places, with_output
from loopscope_app.describe.node_ports import type_of
from loopscope_app.describe.wording import name_of, narrower_type
from loopscope_app.parts.inspector import fact_sections, origin, port_list, value, what_if
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state import focus
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, place, widget
from loopscope_app.state.view_choices import HIDDEN, ORIGIN, SHOWN


def show(session: UserSession) -> None:
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None:
        return
    place = places(opened.model).get(focus.static_place(session))
    if place is None:
        markup.show("Click an operation to see what it is and what it computed.", "quiet")
        return
    concrete = focus.concrete_place(session, place)
    operation = catalogue_for(opened.model.dialect).find(place.node.type, place.node.opset)
    _heading(session, place, concrete, operation)
    address, array = _value(debugger, place, concrete)
    _actions(session, place, address, array)
    if debugger is not None and concrete:
        _to_the_other_loop(debugger, concrete)
    if is_trace(opened.model):  # its nodes have no operations, and their inputs control the trace
        _show_value(debugger, place, address, array)
        return
    graph = concrete.rpartition("/")[0] if concrete else focus.open_graph(debugger, place)
    port_list.show_inputs(opened.model, place, debugger, graph)
    port_list.show_outputs(opened.model, place, debugger, concrete)
    _show_value(debugger, place, address, array)
    port_list.show_bodies(place)
    fact_sections.show_weights(opened.model, place)
    fact_sections.show_operation(place.node, operation)
    fact_sections.show_node(session, place.address)
    port_list.show_uses(place)


def _heading(
    session: UserSession, place: IndexedNode, concrete: str | None, operation: Operation | None
) -> None:
    node = place.node
    title = operation.title if operation else f"{node.type} {node.opset}"
    declared = node.outputs[0] if node.outputs else node.inputs[0] if node.inputs else None
    facts = [title, type_of(declared) if declared else "no outputs"]
    if session.model.opened is not None and is_trace(session.model.opened.model):
        facts = [type_of(declared)] if declared and not node.bodies else []
    name = markup.text(node.name, 80).replace("/", "/<wbr>")  # a long name breaks at its scopes
    markup.show(
        f"<h2>{markup.text(node.type, 60)} <span>{name}</span></h2>"
        f'<span class="quiet">{markup.text(" · ".join(facts))}</span>'
    )
    place_lists.show_address(concrete or _where(session, place), key="inspector_address")


def _value(
    debugger: loopscope.Debugger | None, place: IndexedNode, concrete: str | None
) -> tuple[str, np.ndarray | EngineError | None]:
    """Return the address of the chosen output, and its value or the reason why it has none.

    The value is None before the node runs.
    """
    if debugger is None or concrete is None:
        return "", None
    output = int(widget(focus.output_key(place)) or 0)
    address = with_output(concrete, output if output < len(place.node.outputs) else 0)
    try:
        return address, as_array(debugger.value(address))
    except EngineError as error:
        return address, error


def _actions(
    session: UserSession,
    place: IndexedNode,
    address: str,
    array: np.ndarray | EngineError | None,
) -> None:
    debugger = session.run.debugger
    with st.container(key="node_actions", horizontal=True, vertical_alignment="center"):
        computed = None if isinstance(array, EngineError) else array
        if debugger is not None and computed is not None and not is_trace(debugger.model):
            what_if.editor(debugger, address, computed)
            is_open = ORIGIN.shown() == SHOWN
            st.button(
                "Hide where from" if is_open else "Where from?",
                key="node_origin",
                on_click=ORIGIN.show,
                args=(HIDDEN if is_open else SHOWN,),
                help="The values that this one was computed from, also on the canvas",
            )
        _item("Breakpoint", "pause", breakpoint_actions.add_breakpoint, place.address, "content")
        with st.popover("More", key="node_menu", icon=":material/more_horiz:"):
            if debugger is not None and not is_trace(debugger.model):
                show_specialising(session, place)  # first, because its preview is long
            _item("Run to here", "run_to", moves.run_to, place.address)
            if session.canvas.selected:
                _item("Follow the cursor", "follow", selection.select, "")
            else:
                _item("Stay on this node", "pin", selection.select, place.address)
            if debugger is not None and array is not None and not isinstance(array, EngineError):
                value.download(address, array)
            _need_operations(session, place, focus.concrete_place(session, place))


def _need_operations(session: UserSession, place: IndexedNode, concrete: str | None) -> None:
    """Show the items that change or cut the model; a trace has no operations to change."""
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None or is_trace(opened.model):
        return
    show_loop(opened, place)
    show_cutting_out(opened, debugger, place, concrete)
    show_rounding(opened.model, place)


def _item(
    words: str,
    name: str,
    action: Callable[[str], None],
    address: str,
    width: Literal["stretch", "content"] = "stretch",
) -> None:
    st.button(words, key=f"inspector_{name}", on_click=action, args=(address,), width=width)


def _to_the_other_loop(debugger: loopscope.Debugger, concrete: str) -> None:
    """Show a link from a place in a forward/backward pair to the same iteration of its partner."""
    other = counterpart(debugger, concrete.rpartition("/")[0])
    if not other:
        return
    loop = other.rpartition("/")[0]
    backward = {pair.backward_address for pair in ties(debugger.plan)}
    direction = "Backward" if Address.parse(loop).static in backward else "Forward"
    st.button(
        markup.plain(f"{direction} iteration: {readable(loop)}", 90),
        key="inspector_other_loop",
        type="tertiary",
        on_click=moves.seek,
        args=(other,),
    )


def _where(session: UserSession, place: IndexedNode) -> str:
    """Return where a place runs next, as far as the graphs around it are open. A pinned iteration
    stays.
    """
    if "[" in session.canvas.selected:
        return session.canvas.selected
    graph = focus.open_graph(session.run.debugger, place)
    return f"{graph}/{place.labels[place.node.id]}" if graph else place.address


def _show_value(
    debugger: loopscope.Debugger | None,
    place: IndexedNode,
    address: str,
    array: np.ndarray | EngineError | None,
) -> None:
    if debugger is None:
        markup.show("The model cannot be run: see its problems.", "quiet")
    elif array is None:
        is_over = debugger.cursor.kind == "finished"
        markup.show("It did not run." if is_over else "It has not run yet.", "quiet")
    elif isinstance(array, EngineError):
        markup.show(markup.sentence(array), "quiet")
    else:
        if ORIGIN.shown() == SHOWN:
            origin.show(debugger, address)
        markup.show(markup.section("Value"))
        _against_declared(place, Address.parse(address).output, array)
        value.show(debugger, address, array)


def _against_declared(place: IndexedNode, output: int, array: np.ndarray) -> None:
    """Show where a value differs from the declaration of the file, and which lengths the file left
    open.
    """
    if output >= len(place.node.outputs) or array.dtype.kind == "O":
        return
    port = place.node.outputs[output]
    words = f"declared {markup.text(type_of(port))}, here {markup.text(list(array.shape))}"
    if not port.shape.contains(array.shape):
        markup.show(f"{markup.chip('not as declared', 'warn')} {words}")
    elif not port.shape.is_static and port.shape.rank:
        markup.show(words, "quiet")


ROUNDED_PART, ROUNDED_TYPE = "inspector_round_what", "inspector_round_to"


def show_rounding(model: Model, node: IndexedNode) -> None:
    """Show the last entry of an operation's menu."""
    scopes = dict(patterns(model, node))
    if widget(ROUNDED_PART) not in scopes:
        place(ROUNDED_PART, next(iter(scopes)))
    if widget(ROUNDED_TYPE) not in NARROWER:
        place(ROUNDED_TYPE, NARROWER[0])
    st.selectbox(
        "What if this were rounded",
        list(scopes),
        key=ROUNDED_PART,
        format_func=lambda pattern: scopes[pattern],
    )
    st.selectbox("to", NARROWER, key=ROUNDED_TYPE, format_func=narrower_type)
    st.button(
        "Round and compare",
        icon=":material/compare_arrows:",
        key="inspector_round",
        on_click=_round_and_compare,
        width="stretch",
    )


@show_errors
def _round_and_compare() -> None:
    side_by_side.round_this(
        str(widget(ROUNDED_PART) or other_runs.EVERYTHING), str(widget(ROUNDED_TYPE) or NARROWER[0])
    )


def patterns(model: Model, place: IndexedNode) -> Iterator[tuple[str, str]]:
    """Yield what can be rounded from a place, as address patterns with words."""
    if any(map(_is_float, place.node.outputs)):
        carried = place.body is not None and any(
            edge.to_layer == place.node.id for edge in place.body.back_edges
        )
        name = neutral(place.node.name, 40)
        yield (
            place.address,
            f"what is carried to {name} in each iteration" if carried else f"this value, {name}",
        )
    for source in place.sources:
        node = place.graph.by_id[source.layer] if source is not None else None
        if node is not None and node.constant is not None and any(map(_is_float, node.outputs)):
            yield place.beside(node.id), f"the weight {neutral(node.name, 40)}"
    for loop in _rounded_loops(model, place):
        yield f"{loop}/body/*", f"everything in {neutral(name_of(loop), 40)}"
    yield other_runs.EVERYTHING, "the whole model"


def _rounded_loops(model: Model, place: IndexedNode) -> Iterator[str]:
    """Yield the loop at a place, and those around it, innermost first."""
    address = place.address
    while address:
        node = places(model).get(address)
        if node is not None and node.node.bodies and node.node.type != IF:
            yield address
        address = address.rpartition("/")[0]


def _is_float(port: Port) -> bool:
    return port.element_type is None or port.element_type in REAL_FLOATS


def show_specialising(session: UserSession, place: IndexedNode) -> None:
    """Show the entry, and after a click what goes, with a button that saves the result."""
    opened = session.model.opened
    if opened is None or (place.node.type != IF and not place.node.is_loop):
        return
    st.button(
        "Keep the branch that ran" if place.node.type == IF else "Keep the count that ran",
        icon=":material/content_cut:",
        key="inspector_specialise",
        on_click=derived_models.preview_specialised,
        args=(place.address,),
        width="stretch",
        help="Specialise: the model without what did not run. Nothing is changed here.",
    )
    preview = session.run.specialised
    if preview is None or preview.address != place.address or preview.original is not opened.model:
        return
    markup.show("<br>".join(map(markup.sentence, preview.sentences)), "quiet")
    stem = f"{opened.file_name()}_specialised"
    st.download_button(
        "Save as",
        lambda: preview.document(stem),
        file_name=f"{stem}{preview.ending}",
        icon=":material/save:",
        key="inspector_specialise_save",
        on_click="ignore",
        width="stretch",
    )


def show_loop(opened: Opened, place: IndexedNode) -> None:
    """Show the entry for an operator that is a loop, and for a loop that was opened."""
    if place.address in opened.operators:
        words, action = "Fold", derived_models.fold_loop
        explanation = "Show the loop as one operator again"
    elif recurrence_of(place.node, opened.model.dialect) is not None:
        words, action = "Open as a loop", derived_models.open_loop
        explanation = "Step through the operator's iterations"
    else:
        return
    st.button(
        words,
        key="inspector_loop",
        on_click=action,
        args=(place.address,),
        width="stretch",
        help=explanation,
    )


def show_cutting_out(
    opened: Opened, debugger: loopscope.Debugger, place: IndexedNode, concrete: str | None
) -> None:
    """Show the entry for a place that has run; ``concrete`` is its address with iterations."""
    if concrete is None:
        return
    is_end = place.node.type in ("Parameter", "Result") or place.node.constant is not None
    address = concrete.rpartition("/")[0] if is_end else concrete
    st.download_button(
        "Cut out the body" if is_end else "Cut out",
        lambda: derived_models.cut_out(debugger, address),
        file_name=f"{opened.file_name()}-part.zip",
        icon=":material/content_cut:",
        key="inspector_cut_out",
        on_click="ignore",
        width="stretch",
        help="This part as a model of its own, with its recorded inputs and outputs and a script",
    )
