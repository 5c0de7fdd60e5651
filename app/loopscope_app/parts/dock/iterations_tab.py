"""The Iterations tab: a row per iteration of the loop in focus."""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.ir import iteration_range
from loopscope_app.describe.iteration_table import IterationRow
from loopscope_app.parts.dock import branch_rows, formula_column, iteration_rows, matrix_lanes
from loopscope_app.parts.run_views import until_a_loop_runs
from loopscope_app.parts.widgets import markup
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import FORMULA, HIDDEN, SHOWN, WIDE, Look

KEY, WIDE_KEY = "loop_table", "loop_table_wide"


def show(session: UserSession, loop: LoopInFocus | None) -> None:
    """Draw the table, and the field of a formula if it is open."""
    debugger = session.run.debugger
    if debugger is None:
        markup.show("The model cannot be run: see its problems.", "quiet")
    elif loop is None or not loop.iterations:
        _without_rows(debugger, loop)
    elif WIDE.shown() == SHOWN:
        markup.show("The table is open over the canvas.", "quiet")
        _button("Close the wide table", "wide_close", WIDE, HIDDEN)
    else:
        _table(session, debugger, loop, KEY)
        with st.container(key="iteration_actions", horizontal=True):
            if FORMULA.shown() == HIDDEN:
                _button("Add a column", "formula_open", FORMULA, SHOWN)
            _button("Wide", "wide_open", WIDE, SHOWN)
        if FORMULA.shown() == SHOWN:
            formula_column.show(session, debugger, loop)


def show_wide(session: UserSession, loop: LoopInFocus | None) -> None:
    """Draw table, courses of carried values, and matrix over the canvas, if requested."""
    debugger = session.run.debugger
    if WIDE.shown() == HIDDEN or debugger is None or loop is None or not loop.iterations:
        return
    with st.container(key="wide"):
        with st.container(key="wide_head", horizontal=True, vertical_alignment="center"):
            markup.show(f"<h2>Iterations of {markup.text(loop.place.node.name, 60)}</h2>")
            _button("Close", "wide_close_top", WIDE, HIDDEN)
        page_rows = _table(session, debugger, loop, WIDE_KEY)
        strips = iteration_rows.courses(page_rows, loop)
        if strips:
            markup.show(strips)
        matrix_lanes.show(session, loop, "wide_matrix")


def _table(
    session: UserSession, debugger: loopscope.Debugger, loop: LoopInFocus, key: str
) -> list[IterationRow]:
    formula = formula_column.cells(session, debugger, loop) if FORMULA.shown() == SHOWN else None
    page_rows = iteration_rows.show(debugger, loop, formula, key)
    first, last = page_rows[0].iteration, page_rows[-1].iteration
    if (first, last) != (0, loop.iterations - 1):
        markup.show(f"{iteration_range(first, last)} of {loop.iterations:,}", "quiet")
    return page_rows


def _button(words: str, key: str, look: Look, option: str) -> None:
    st.button(words, key=key, on_click=look.show, args=(option,))


def _without_rows(debugger: loopscope.Debugger, loop: LoopInFocus | None) -> None:
    """Show the columns of the first loop of the model, the Ifs of a model without loops, or the
    reason for an empty table.
    """
    first = until_a_loop_runs.first_loop(debugger.model)
    if first is None:
        branch_rows.show(debugger)
        return
    if loop is not None and loop.record is not None and loop.record.ended_by is not None:
        markup.show(f"<b>{markup.text(loop.place.node.name, 60)}</b> ran no iteration.", "quiet")
        return
    iteration_rows.show_titles(first, KEY)
    markup.show(
        f"Once <b>{markup.text(first.node.name, 60)}</b> runs, its iterations are listed here, one "
        "row each.",
        "quiet",
    )
