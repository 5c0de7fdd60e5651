"""The header: the open model, its inputs, the row of views, the finder, badges, and the menu at its
end.

The finder searches names, operations, shapes, element types and values in all bodies.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

import numpy as np
import streamlit as st

import loopscope
from loopscope.errors import neutral, shorten
from loopscope.ir import Model, is_trace, readable
from loopscope.view import Hit, family_of, search, short_name, value_preview
from loopscope_app.actions import models, selection, side_by_side, views
from loopscope_app.components import component
from loopscope_app.describe.code_moment import values_at
from loopscope_app.describe.input_words import generated_words, varying_first
from loopscope_app.describe.node_index import places
from loopscope_app.describe.wording import model_size, outcome
from loopscope_app.parts.dock import drawer
from loopscope_app.parts.frame import style
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import MADE_UP, Opened
from loopscope_app.state.user_session import UserSession, current, place, widget
from loopscope_app.state.view_choices import DEBUG, DOCK, DRAWER, HIDDEN, VIEWS, offered_views

EDITED = "edited"
_MOST_NAMED = 3
"""Number of inputs up to which an input set is called by its values."""


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is None:
        return
    with st.container(key="header_row", horizontal=True, vertical_alignment="center"):
        st.button(
            "Gallery",
            key="header_close",
            icon=":material/chevron_left:",
            on_click=models.close,
            type="tertiary",
            help="Back to the samples, or open another model",
        )
        about = " · ".join(filter(None, (opened.card, model_size(opened.model))))
        with st.container(key="header_title"):
            markup.show(
                f'<b title="{markup.text(about, 400)}">{markup.text(opened.title, 80)}</b>',
                "titles",
            )
        with st.container(key="header_inputs"):
            if not is_trace(opened.model):  # a trace has no inputs
                _choose(session, opened)
        with st.container(key="header_views"):
            _show_views(session, opened)
        _show_agreement(session)
        _show_finder()
        _show_problems(session, opened)
        _show_menu()
    if shown_view(session, opened) != DEBUG and DRAWER.shown() != HIDDEN:
        with st.container(key="dock"):
            drawer.show(session, opened)


def _choose(session: UserSession, opened: Opened) -> None:
    names = list(opened.sets)
    options = names if session.model.input_set in names else [EDITED, *names]
    if options == [MADE_UP] and opened.report.ok and opened.model.inputs:
        _generated(session, opened)
        return
    if not opened.model.inputs or not options:
        return
    key = f"header_set_{session.run.generation}"
    st.selectbox(
        "Inputs",
        options,
        index=options.index(session.model.input_set) if session.model.input_set in names else 0,
        key=key,
        format_func=lambda name: f"Input: {_set_words(session, opened, str(name))}",
        on_change=models.choose_set,
        args=(key,),
        label_visibility="collapsed",
    )


def _generated(session: UserSession, opened: Opened) -> None:
    """Show that the inputs are generated, with a link to the tab where they are entered."""
    st.button(
        "Generated inputs · edit",
        key="header_generated",
        type="secondary",
        help=markup.plain(generated_words(opened.model, session.model.inputs), 400),
        on_click=DOCK.show,
        args=("Setup",),
    )


def _set_words(session: UserSession, opened: Opened, name: str) -> str:
    """Return the values of a set of few numbers, and the sentence about it or its name."""
    arrays = session.model.inputs if name == EDITED else opened.sets.get(name, {})
    words = name.replace("_", " ")
    text = (opened.sample.text_of(name) if opened.sample else "") or (
        "" if name in (EDITED, MADE_UP) else words
    )
    is_small = 0 < len(arrays) <= _MOST_NAMED and all(
        isinstance(value, np.ndarray | np.generic) and np.size(value) == 1
        for value in arrays.values()
    )
    title = words
    if is_small:  # a menu of sets is narrow: what tells them apart is to be read in it
        names = varying_first(arrays, [arrays, *opened.sets.values()])
        title = ", ".join(f"{short_name(key)} = {value_preview(arrays[key])}" for key in names)
    return shorten(f"{title} · {text}" if text not in ("", title) else title, 110)


def shown_view(session: UserSession, opened: Opened) -> str:
    """Return the word of the shown view; the default if the model cannot have the chosen one."""
    return session.view if session.view in offered_views(opened) else DEBUG


def _show_views(session: UserSession, opened: Opened) -> None:
    """Draw the views that the model can have, unless there is only one."""
    offered = offered_views(opened)
    if len(offered) < 2:
        return
    view = shown_view(session, opened)
    if widget(views.BAR) != view:  # a value that arrives again would undo a click meanwhile
        place(views.BAR, view)
    st.segmented_control(
        "View",
        offered,
        key=views.BAR,
        required=True,
        format_func=VIEWS.__getitem__,
        label_visibility="collapsed",
        width="content",
        on_change=views.show_chosen,
    )


_EVERY = 1.5
"""Seconds between two looks at a comparison that runs in the background."""


def _show_agreement(session: UserSession) -> None:
    """Show the badge once the comparison is over; nothing without a report."""
    side_by_side.begin_agreement(session)
    agreement, opened = session.model.agreement, session.model.opened
    if agreement is None or opened is None or not agreement.is_for(opened, session.model.inputs):
        return
    with st.container(key="agreement"):
        if agreement.over:
            _badge(session)
        else:
            _wait()


@st.fragment(run_every=_EVERY)
def _wait() -> None:
    """Redraw only the badge until the comparison is over."""
    agreement = current().model.agreement
    if agreement is not None and agreement.over:
        st.rerun()


def _badge(session: UserSession) -> None:
    report = session.model.agreement.report if session.model.agreement else None
    if report is None:
        return
    runtime = short_runtime(report.runtime)
    st.button(
        f"Agrees with {runtime}" if report.agrees else f"Differs from {runtime}",
        key="agreement_badge",
        type="tertiary",
        icon=":material/verified:" if report.agrees else ":material/difference:",
        help=report.sentence.replace("`", ""),
        on_click=side_by_side.show_comparison,
    )


def short_runtime(name: str) -> str:
    """Return the name of a runtime with the first two numbers of its version.

    >>> short_runtime("ONNX Runtime 1.31.0"), short_runtime("OpenVINO 2026.4.1-22982")
    ('ONNX Runtime 1.31', 'OpenVINO 2026.4')
    """
    return re.sub(r"(\d+\.\d+)[.\-\w]*$", r"\1", name)


def _show_problems(session: UserSession, opened: Opened) -> None:
    """Draw the badge if the check found errors or warnings."""
    report = opened.report.about(session.model.checked_for)
    count = len(report.errors) + len(report.warnings)
    if not count:
        return
    is_open = DRAWER.shown() == "Problems"
    st.button(
        f"{count:,}",
        key="header_problems",
        icon=":material/error:" if report.errors else ":material/warning:",
        help=f"{count:,} problem{'s' * (count > 1)}: {'close' if is_open else 'show'} the list",
        on_click=DRAWER.show,
        args=(HIDDEN if is_open else "Problems",),
    )


_MENU_KEY = "more_menu"
_MENU_ENTRIES = {
    "Export": "Export",
    "Problems": "Problems and notes",
    "Keyboard": "Keyboard",
    "About": "About this model",
}
"""Titles of the entries by their drawer."""


def _show_menu() -> None:
    menu = st.popover(
        "More", key=_MENU_KEY, icon=":material/more_horiz:", help="More", on_change="rerun"
    )
    if not menu.open:
        return
    with menu:
        for name, title in _MENU_ENTRIES.items():
            st.button(
                title,
                key=f"more_{name.lower()}",
                on_click=_open_drawer,
                args=(name,),
                type="tertiary",
                width="stretch",
            )
        style.show_theme_choice()


def _open_drawer(name: str) -> None:
    """Open a drawer and close the menu."""
    DRAWER.show(name)
    place(_MENU_KEY, False)


FINDER = "find"
MOST_SHOWN = 40
_MOST_PICKS = 2**31

_finder = component("find", "find.js", style="find.css")


@st.fragment
def _show_finder() -> None:
    """Draw the finder as a fragment, so that typing a letter redraws nothing else."""
    session = current()
    if session.model.opened is None:
        return
    query = read_finder_text(getattr(widget(FINDER), "ask", None))
    result = _finder(
        key=FINDER,
        data=finder_message(session, query),
        on_ask_change=lambda: None,
        on_pick_change=_pick_hit,
        height=40,
    )
    if result.pick:
        st.rerun()


def read_finder_text(data: object) -> str | None:
    """Return the text that the browser sent; None while the finder is closed."""
    if (
        not isinstance(data, Mapping)
        or data.get("open") is not True
        or not isinstance(data.get("text"), str)
    ):
        return None
    return str(data["text"])[:200]


def finder_message(session: UserSession, query: str | None) -> dict[str, object]:
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
    rows = [_hit_row(hit, _result_of_node(run, hit.address, values)) for hit in hits[:MOST_SHOWN]]
    return {
        "hits": rows,
        "foot": _finder_foot(query, len(hits), len(rows), bool(values)),
        "asked": query,
        "picked": session.canvas.picked,
    }


def _control_flow(model: Model) -> tuple[Hit, ...]:
    matches = (entry for entry in places(model).values() if entry.node.bodies)
    return tuple(Hit(entry.address, entry.node.type, entry.node.name, "", 0) for entry in matches)


def _result_of_node(run: loopscope.Debugger | None, address: str, values: Mapping[str, str]) -> str:
    """Return what a node did in the run: branches or iterations, else its value at the cursor."""
    entry = places(run.model).get(address) if run and run.steps else None
    did = outcome(run, entry) if run and entry else ""
    return did or values.get(address, "")


def _hit_row(hit: Hit, value: str) -> dict[str, str]:
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


def _finder_foot(query: str, count: int, shown: int, with_values: bool) -> str:
    if not query.strip():
        return (
            "Loops and branches of this model. Type to find any node: several words must all match."
        )
    if not count:
        kinds = ", element type or value" if with_values else " or element type"
        return f"Nothing has “{query[:60]}” in its name, operation, shape{kinds}."
    more = f", the best {shown} are shown" if count > shown else ""
    return f"{count:,} node{'s' if count != 1 else ''}{more}  ·  ↑ ↓ choose  ·  Enter opens it"


def read_finder_pick(data: object) -> tuple[str, int] | None:
    """Return the static address that was chosen and the number of the choice, as the browser sent
    them.
    """
    match data:
        case {"address": str(address), "number": int(number)} if 0 < number < _MOST_PICKS:
            return address, number
    return None


def _pick_hit() -> None:
    pick = read_finder_pick(getattr(widget(FINDER), "pick", None))
    if pick is not None:
        selection.show_found(*pick)
