"""What the check found wrong or odd: for each rule its places and what to do; a click goes to
the place. And what a run leaves out.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import streamlit as st

import loopscope
from loopscope.checks import Diagnostic, Group, Runtime, Severity
from loopscope.executor import Plan, left_out_for_outputs
from loopscope.explain import FragileDecision, fragile
from loopscope.ir import decode, readable
from loopscope_app.actions import moves, report_errors, selection
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, widget

MOST_PLACES = 60
"""Findings shown for one rule; `loopscope check --each` lists all."""
_FEW = 3
"""Places that are buttons at once; the others are folded away."""
_KIND = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: ""}

_fragile: WeakKeyDictionary[loopscope.Debugger, tuple[FragileDecision, ...]] = WeakKeyDictionary()
_left_out: WeakKeyDictionary[Plan, tuple[str, ...]] = WeakKeyDictionary()


def show(session: UserSession, opened: Opened) -> None:
    report = opened.report.about(session.model.checked_for)
    if any(one.runtimes for one in opened.report.diagnostics):
        _choose(session)
    markup.show(
        markup.text(report.summary().partition("\n")[0]), "" if report.diagnostics else "quiet"
    )
    for group in report.groups:
        _show_group(group, opened.title)
    if session.run.debugger is not None:
        _show_fragile(session.run.debugger)
        _show_left_out(session.run.debugger.plan)


def _show_fragile(debugger: loopscope.Debugger) -> None:
    """Decisions of this run that narrower floats would turn; nothing where there is none, or
    until the run is over.
    """
    if debugger.state != "finished":
        return
    if debugger not in _fragile:
        _fragile[debugger] = fragile(debugger)
    found = _fragile[debugger]
    if not found:
        return
    narrowest = min(found, key=lambda one: one.margin.distance)
    with st.container(border=True, key="problem_fragile", gap="xsmall"):
        several = (
            f" {len(found)} decisions of this run are narrow, this most of all:"
            if len(found) > 1
            else ""
        )
        markup.show(
            f"{markup.chip('note')} <b>fragile</b>{several} {markup.sentence(narrowest.sentence)}"
        )
        markup.show(
            "A device that computes in it may run another number of iterations, or take the other branch: see Compare.",
            "quiet",
        )
        for number, one in enumerate(sorted(found, key=lambda one: one.margin.distance)[:_FEW]):
            st.button(
                f"Show {markup.plain(readable(one.address), 120)}",
                key=f"problem_fragile_{number}",
                type="tertiary",
                icon=":material/my_location:",
                on_click=_go,
                args=(one,),
                help=f"decided by {one.margin.distance:.1g}",
            )


@report_errors.show_errors
def _go(one: FragileDecision) -> None:
    moves.seek(one.step)
    selection.reveal_place(one.address.rpartition("[")[0] if one.is_loop else one.address)


def _show_left_out(plan: Plan) -> None:
    """Nothing for a model of which a run leaves out nothing."""
    if plan not in _left_out:
        _left_out[plan] = left_out_for_outputs(plan).sentences()
    if _left_out[plan]:
        what = "".join(f"<li>{markup.text(decode(one), 600)}</li>" for one in _left_out[plan])
        markup.show(
            "A run for the outputs (<span class='mono'>loopscope run</span>, <span class='mono'>loopscope.run</span>) leaves out what makes "
            f"no difference to them; steps show all of it.<ul>{what}</ul>",
            "quiet",
        )


def _choose(session: UserSession) -> None:
    """Chooses the runtimes whose findings are listed."""
    key = f"problems_for_{session.run.generation}"
    st.pills(
        "Include findings about",
        [one.title for one in Runtime],
        selection_mode="multi",
        default=[one.title for one in Runtime if one in session.model.checked_for],
        key=key,
        on_change=lambda: selection.check_for(widget(key) or ()),
        help="Models that OpenVINO or ONNX Runtime refuses or runs differently: listed only for the runtimes chosen here.",
    )


def _show_group(group: Group, title: str) -> None:
    """``title``: what to call the file of an upload, which has no name."""
    one, places = group.first, group.diagnostics
    with st.container(border=True, key=f"problem_{one.code}", gap="xsmall"):
        several = (
            f" <span class='quiet'>at {len(places)} places, the first:</span>"
            if len(places) > 1
            else ""
        )
        chip = markup.chip(one.severity.value, _KIND[one.severity])
        markup.show(
            f"{chip} <b>{markup.text(one.code)}</b>{several} {markup.sentence(one.message)}"
        )
        rows = [
            (name, markup.sentence(words))
            for name, words in (
                ("found", one.found),
                ("expected", one.expected),
                ("what to do", one.advice),
            )
            if words
        ]
        line = (
            f"{one.where.file.rpartition('/')[2] or title}:{one.where.line}"
            if one.where.line
            else ""
        )
        if rows or line:
            markup.show(markup.facts([*rows, *([("in", markup.text(line))] if line else [])]))
        buttons = [
            (number, place, "" if place.message == one.message else place.message)
            for number, place in enumerate(places)
        ]
        for button in buttons[:_FEW]:
            _show_place(*button)
        if len(places) > _FEW:
            with st.expander(f"and {len(places) - _FEW} more"):
                for button in buttons[_FEW:MOST_PLACES]:
                    _show_place(*button)
                if len(places) > MOST_PLACES:
                    markup.show(
                        "… the rest: <span class='mono'>loopscope check --each</span>", "quiet"
                    )


def _show_place(number: int, one: Diagnostic, said: str) -> None:
    if one.where.address:
        st.button(
            f"Show {markup.plain(readable(one.where.address), 120)}",
            key=f"problem_show_{one.code}_{number}",
            type="tertiary",
            icon=":material/my_location:",
            on_click=selection.reveal_place,
            args=(one.where.address,),
            help=markup.plain(one.where.address),
        )
    if said:
        markup.show(markup.text(said, 300), "quiet")
