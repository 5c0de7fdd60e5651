"""Compare: the run here beside another one, chosen by its kind."""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.ir import graphs, is_trace
from loopscope.object_cache import cache_by_object
from loopscope.peers import runtime_of
from loopscope_app.actions import side_by_side
from loopscope_app.parts.run_views import compared_page, other_programs, other_run
from loopscope_app.parts.widgets import markup
from loopscope_app.state.compare_choice import (
    BEFORE,
    CHOICE,
    INPUTS,
    KIND,
    MODEL,
    ROUNDED,
    RUNTIME,
    SOURCE,
    UNCHANGED,
)
from loopscope_app.state.launch import paths_allowed
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, place, widget

_BEFORE_IT_RUNS = {
    INPUTS: "Both runs start at the beginning; the run that you step through stays where it is.",
    ROUNDED: "The same inputs run once as they are and once with values rounded to a narrower "
    "type, as a device computes.",
    MODEL: "Choose another model file: before and after a conversion, a compression, a fix. Both "
    "run on the same inputs.",
}


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is None or session.run.debugger is None:
        return
    runtime = "" if session.run.changes or is_trace(opened.model) else runtime_of(opened.model)
    kind = _choose(session, opened, runtime)
    match kind:
        case "":
            markup.show("This model has nothing to be compared with.", "quiet")
        case str() if kind == RUNTIME:
            other_programs.show_runtime(session, opened, runtime)
        case str() if kind == SOURCE:
            other_programs.show_source(session, opened)
        case _:
            _show_runs(session, opened, kind)


def _choose(session: UserSession, opened: Opened, runtime: str) -> str:
    """Show the kinds that are possible, and the fields of the chosen one; return the kind."""
    sets = other_sets(session, opened)
    kinds = kinds_of(session, opened, runtime)
    if widget(KIND) not in kinds:
        place(KIND, next(iter(kinds), None))
    if widget(CHOICE) not in sets:
        place(CHOICE, next(iter(sets), None))
    with st.container(key="compare_bar", horizontal=True, vertical_alignment="center"):
        markup.show("Compare this run with", "quiet nowrap")
        kind = st.segmented_control(
            "Compare with",
            list(kinds),
            key=KIND,
            required=True,
            format_func=kinds.__getitem__,
            label_visibility="collapsed",
            width="content",
            on_change=side_by_side.choose_kind,
        )
        if kind == INPUTS:
            st.selectbox(
                "Other inputs",
                list(sets),
                key=CHOICE,
                format_func=sets.__getitem__,
                label_visibility="collapsed",
                width=260,
                on_change=side_by_side.compare,
            )
        else:
            other_run.fields(session, str(kind))
    return str(kind or "")


def kinds_of(session: UserSession, opened: Opened, runtime: str) -> dict[str, str]:
    """Return the titles of the kinds that are possible for the open run."""
    if is_trace(opened.model):
        return {MODEL: "Another trace or model"}
    kinds = {INPUTS: "Other inputs"} if other_sets(session, opened) else {}
    if runtime:
        kinds[RUNTIME] = runtime
    if _has_floats(opened.model):
        kinds[ROUNDED] = "Lower precision"
    if not session.run.changes:
        kinds[MODEL] = "Another model"
        if paths_allowed(st.get_option("server.address")):
            kinds[SOURCE] = "Source program"
    return kinds


@cache_by_object
def _has_floats(model: loopscope.Model) -> bool:
    """Return True if a value of the model is a float, or may be one."""
    return any(
        port.element_type is None or port.element_type.is_float
        for place in graphs(model)
        for node in place.graph.nodes
        for port in node.outputs
    )


def other_sets(session: UserSession, opened: Opened) -> dict[str, str]:
    """Return the other inputs that this model can be run on, as words."""
    words = {
        name: side_by_side.words_of(session, opened, name)
        for name in ((UNCHANGED,) if session.run.changes else ())
    }
    names = [name for name in opened.sets if name != session.model.input_set]
    names += [BEFORE] if session.model.before else []
    return words | {name: side_by_side.words_of(session, opened, name) for name in names}


def _show_runs(session: UserSession, opened: Opened, kind: str) -> None:
    """Show the comparison with another run; other inputs are compared at once."""
    compared, drifted = session.run.compared, session.run.drifted
    if kind == INPUTS and session.run.compared_with != widget(CHOICE):
        side_by_side.compare_with(INPUTS)
        if session.run.running is not None or session.message is not None:
            st.rerun()
        compared, drifted = session.run.compared, session.run.drifted
    if drifted is not None and drifted.name == kind:
        compared_page.show(session, opened, drifted)
    elif kind == INPUTS and compared is not None and compared.name == widget(CHOICE):
        compared_page.show_unfinished(session, opened, compared)
    else:
        markup.show(_BEFORE_IT_RUNS[kind], "quiet")
