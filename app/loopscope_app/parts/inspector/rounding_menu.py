"""The menu that rounds to a narrower type: a value, a carried value, a weight, a loop, or the
model.
"""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from loopscope.errors import neutral
from loopscope.ir import IF, REAL_FLOATS, Model, Port
from loopscope.ops import NARROWER
from loopscope_app.actions import other_runs, side_by_side
from loopscope_app.actions.report_errors import show_errors
from loopscope_app.describe.node_index import IndexedNode, places
from loopscope_app.describe.wording import name_of, narrower_type
from loopscope_app.state.user_session import place, widget

WHAT, TO = "inspector_round_what", "inspector_round_to"


def show(model: Model, node: IndexedNode) -> None:
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
