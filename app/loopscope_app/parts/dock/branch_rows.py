"""The Ifs of a model without loops, with the branch that each took."""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.errors import elided
from loopscope.ir import IF, readable
from loopscope_app.actions import selection
from loopscope_app.describe.node_index import places
from loopscope_app.describe.region_outcomes import NOT_RUN, outcome
from loopscope_app.parts.widgets import markup, row_table

KEY = "branch_table"
MOST_ROWS = 200


def show(debugger: loopscope.Debugger) -> None:
    """Draw a row for each If, those that ran first; a click on a row selects its If."""
    ifs = [
        (outcome(debugger, entry), entry)
        for entry in places(debugger.model).values()
        if entry.node.type == IF
    ]
    if not ifs:
        markup.show("This model has no loop and no If: its steps are under Performance.", "quiet")
        return
    shown = sorted(ifs, key=lambda row: row[0] == NOT_RUN)[:MOST_ROWS]
    markup.show("This model has no loop. Its Ifs and their branches:", "quiet")
    with st.container(key="branch_rows"):
        row_table.show(
            ("took", "If"),
            [(words, elided(readable(entry.address), 40)) for words, entry in shown],
            key=KEY,
            now=None,
            on_pick=lambda number: selection.reveal_place(shown[number][1].address),
        )
    if len(ifs) > len(shown):
        markup.show(f"{len(shown)} of {len(ifs):,} Ifs", "quiet")
