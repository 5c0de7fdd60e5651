"""Entries in the menu of a node: round to a narrower type, specialise, open as a loop, cut out."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

import loopscope
from loopscope.errors import neutral
from loopscope.ir import IF, REAL_FLOATS, Model, Port
from loopscope.ops import NARROWER
from loopscope.transform.recurrences import recurrence_of
from loopscope_app.actions import derived_models, opened_operators, other_runs, side_by_side
from loopscope_app.actions.report_errors import show_errors
from loopscope_app.describe.node_index import IndexedNode, places
from loopscope_app.describe.wording import name_of, narrower_type
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, place, widget

WHAT, TO = "inspector_round_what", "inspector_round_to"


def show_rounding(model: Model, node: IndexedNode) -> None:
    """Show the last entry of an operation's menu."""
    scopes = dict(patterns(model, node))
    if widget(WHAT) not in scopes:
        place(WHAT, next(iter(scopes)))
    if widget(TO) not in NARROWER:
        place(TO, NARROWER[0])
    st.selectbox(
        "What if this were rounded",
        list(scopes),
        key=WHAT,
        format_func=lambda pattern: scopes[pattern],
    )
    st.selectbox("to", NARROWER, key=TO, format_func=narrower_type)
    st.button(
        "Round and compare",
        icon=":material/compare_arrows:",
        key="inspector_round",
        on_click=_round,
        width="stretch",
    )


@show_errors
def _round() -> None:
    side_by_side.round_this(
        str(widget(WHAT) or other_runs.EVERYTHING), str(widget(TO) or NARROWER[0])
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
    for loop in _loops(model, place):
        yield f"{loop}/body/*", f"everything in {neutral(name_of(loop), 40)}"
    yield other_runs.EVERYTHING, "the whole model"


def _loops(model: Model, place: IndexedNode) -> Iterator[str]:
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
        on_click=derived_models.preview,
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
        words, action = "Fold", opened_operators.fold
        explanation = "Show the loop as one operator again"
    elif recurrence_of(place.node, opened.model.dialect) is not None:
        words, action = "Open as a loop", opened_operators.open_loop
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
