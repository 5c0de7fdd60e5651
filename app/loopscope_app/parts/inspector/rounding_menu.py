"""Round this to a narrower type: a value, what is carried back to it, a weight that it reads,
its loop, or the model.
"""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from loopscope.ir import IF, REAL_FLOATS, Model, Port
from loopscope.ops import NARROWER
from loopscope_app.actions import other_runs, side_by_side
from loopscope_app.actions.report_errors import show_errors
from loopscope_app.describe.node_index import IndexedNode, places
from loopscope_app.describe.wording import name_of, narrower_type
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import place, widget

WHAT, TO = "inspector_round_what", "inspector_round_to"


def show(model: Model, at: IndexedNode) -> None:
    """The last entry of an operation's menu."""
    scopes = dict(patterns(model, at))
    if widget(WHAT) not in scopes:
        place(WHAT, next(iter(scopes)))
    if widget(TO) not in NARROWER:
        place(TO, NARROWER[0])
    st.selectbox(
        "What if this were rounded", list(scopes), key=WHAT, format_func=lambda one: scopes[one]
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


def patterns(model: Model, at: IndexedNode) -> Iterator[tuple[str, str]]:
    """What can be rounded from here, as patterns of addresses, each in words."""
    if any(map(_is_float, at.node.outputs)):
        carried = at.body is not None and any(
            edge.to_layer == at.node.id for edge in at.body.back_edges
        )
        name = markup.plain(at.node.name, 40)
        yield (
            at.address,
            f"what is carried to {name} in each iteration" if carried else f"this value, {name}",
        )
    for source in at.sources:
        node = at.graph.by_id[source.layer] if source is not None else None
        if node is not None and node.constant is not None and any(map(_is_float, node.outputs)):
            yield at.beside(node.id), f"the weight {markup.plain(node.name, 40)}"
    for loop in _loops(model, at):
        yield f"{loop}/body/*", f"everything in {markup.plain(name_of(loop), 40)}"
    yield other_runs.EVERYTHING, "the whole model"


def _loops(model: Model, at: IndexedNode) -> Iterator[str]:
    """The loop that a place is, and those around it, from the inside out."""
    address = at.address
    while address:
        found = places(model).get(address)
        if found is not None and found.node.bodies and found.node.type != IF:
            yield address
        address = address.rpartition("/")[0]


def _is_float(port: Port) -> bool:
    return port.element_type is None or port.element_type in REAL_FLOATS
