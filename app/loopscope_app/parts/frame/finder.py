"""The finder: a search over names, operations, shapes, element types and values in all bodies."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import streamlit as st

import loopscope
from loopscope.errors import neutral
from loopscope.ir import Model, readable
from loopscope.view import Hit, family_of, search
from loopscope_app.actions import selection
from loopscope_app.components import component
from loopscope_app.describe.code_moment import values_at
from loopscope_app.describe.node_index import places
from loopscope_app.describe.wording import outcome
from loopscope_app.state.user_session import UserSession, current, widget

KEY = "find"
MOST_SHOWN = 40
_MOST_PICKS = 2**31

_finder = component("find", "find.js", style="find.css")


@st.fragment
def show() -> None:
    """Draw the finder as a fragment, so that typing a letter redraws nothing else."""
    session = current()
    if session.model.opened is None:
        return
    query = read_ask(getattr(widget(KEY), "ask", None))
    result = _finder(
        key=KEY,
        data=message(session, query),
        on_ask_change=lambda: None,
        on_pick_change=_picked,
        height=40,
    )
    if result.pick:
        st.rerun()


def read_ask(data: object) -> str | None:
    """Return the text that the browser sent; None while the finder is closed."""
    if (
        not isinstance(data, Mapping)
        or data.get("open") is not True
        or not isinstance(data.get("text"), str)
    ):
        return None
    return str(data["text"])[:200]


def message(session: UserSession, query: str | None) -> dict[str, object]:
    """Return what the finder shows: hits for the text, or all loops and branches while the text is
    empty.
    """
    if query is None or session.model.opened is None:
        return {"hits": [], "foot": "", "asked": None, "picked": session.canvas.picked}
    model = session.model.opened.model
    run = session.run.at_rest
    values = values_at(run) if run else {}
    hits = (
        search(model, query, values.get, max_hits=sys.maxsize)
        if query.strip()
        else _control_flow(model)
    )
    rows = [_row(hit, _result(run, hit.address, values)) for hit in hits[:MOST_SHOWN]]
    return {
        "hits": rows,
        "foot": _foot(query, len(hits), len(rows), bool(values)),
        "asked": query,
        "picked": session.canvas.picked,
    }


def _control_flow(model: Model) -> tuple[Hit, ...]:
    matches = (entry for entry in places(model).values() if entry.node.bodies)
    return tuple(Hit(entry.address, entry.node.type, entry.node.name, "", 0) for entry in matches)


def _result(run: loopscope.Debugger | None, address: str, values: Mapping[str, str]) -> str:
    """Return what a node did in the run: branches or iterations, else its value at the cursor."""
    entry = places(run.model).get(address) if run and run.steps else None
    did = outcome(run, entry) if run and entry else ""
    return did or values.get(address, "")


def _row(hit: Hit, value: str) -> dict[str, str]:
    where = readable(hit.address.rpartition("/")[0])
    matched = f"by {hit.why}" if hit.why and hit.why != "name" else ""
    return {
        "address": hit.address,
        "type": neutral(hit.type, 60),
        "name": neutral(hit.name, 120),
        "where": neutral(where, 160),
        "why": matched,
        "value": value,
        "family": family_of(hit.type),
    }


def _foot(query: str, count: int, shown: int, with_values: bool) -> str:
    if not query.strip():
        return (
            "Loops and branches of this model. Type to find any node: several words must all match."
        )
    if not count:
        kinds = ", element type or value" if with_values else " or element type"
        return f"Nothing has “{query[:60]}” in its name, operation, shape{kinds}."
    more = f", the best {shown} are shown" if count > shown else ""
    return f"{count:,} node{'s' if count != 1 else ''}{more}  ·  ↑ ↓ choose  ·  Enter opens it"


def read_pick(data: object) -> tuple[str, int] | None:
    """Return the static address that was chosen and the number of the choice, as the browser sent
    them.
    """
    match data:
        case {"address": str(address), "number": int(number)} if 0 < number < _MOST_PICKS:
            return address, number
    return None


def _picked() -> None:
    pick = read_pick(getattr(widget(KEY), "pick", None))
    if pick is not None:
        selection.show_found(*pick)
