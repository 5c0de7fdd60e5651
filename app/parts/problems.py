"""What the check found wrong or odd: code, place, what to do; a click goes to the place."""

from __future__ import annotations

import streamlit as st

from app import actions, markup
from app.opened import Opened
from engine.check.diagnostic import Diagnostic, Severity

MOST = 60
_KIND = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: ""}


def show(opened: Opened) -> None:
    report = opened.report
    if not report.diagnostics:
        markup.show("No problems found.", "quiet")
        return
    markup.show(markup.text(report.summary().partition("\n")[0]))
    for number, one in enumerate(report.diagnostics[:MOST]):
        _show_one(number, one, opened.title)
    if len(report.diagnostics) > MOST:
        markup.show(f"… and {len(report.diagnostics) - MOST} more: see <span class='mono'>loopscope check</span>", "quiet")


def _show_one(number: int, one: Diagnostic, title: str) -> None:
    """``title``: what the model is called, where the file of an upload has no name of its own."""
    with st.container(border=True, key=f"problem_{number}", gap="xsmall"):
        markup.show(
            f"{markup.chip(one.severity.value, _KIND[one.severity])} <b>{markup.text(one.code)}</b> {markup.text(one.message, 600)}"
        )
        rows = [
            (name, markup.text(words, 400))
            for name, words in (("found", one.found), ("expected", one.expected), ("what to do", one.advice))
            if words
        ]
        line = f"{one.where.file.rpartition('/')[2] or title}:{one.where.line}" if one.where.line else ""
        if rows or line:
            markup.show(markup.facts([*rows, *([("in", markup.text(line))] if line else [])]))
        if one.where.address:
            st.button(
                f"Show {one.where.address.rpartition('/')[2]}"[:60],
                key=f"problem_show_{number}",
                type="tertiary",
                icon=":material/my_location:",
                on_click=actions.reveal_place,
                args=(one.where.address,),
            )
