"""Problems that the check reports: for each rule its places, what to do, and the repair. Also
what a run prunes.
"""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.checks import Diagnostic, Group, Runtime, Severity
from loopscope.executor import Plan, left_out_for_outputs
from loopscope.explain import FragileDecision, fragile
from loopscope.ir import decode, readable, significant
from loopscope.object_cache import cache_by_object
from loopscope.transform import REPAIRABLE, Repair, repair
from loopscope_app.actions import derived_models, moves, report_errors, selection
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, widget

MOST_PLACES = 60
"""Largest number of findings shown for one rule; `loopscope check --each` lists all."""
_FEW = 3
"""Number of places that are buttons at once; the rest is folded."""
_KIND = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: ""}

_fragile = cache_by_object(fragile)
_left_out = cache_by_object(left_out_for_outputs)


def show(session: UserSession, opened: Opened) -> None:
    report = opened.report.about(session.model.checked_for)
    if any(problem.runtimes for problem in opened.report.diagnostics):
        _choose(session)
    markup.show(
        markup.text(report.summary().partition("\n")[0]), "" if report.diagnostics else "quiet"
    )
    for group in report.groups:
        _show_group(group, opened)
    if session.run.debugger is not None:
        _show_fragile(session.run.debugger)
        _show_left_out(session.run.debugger.plan)


def _show_fragile(debugger: loopscope.Debugger) -> None:
    """Show decisions of a finished run that narrower floats would turn, if there are any."""
    if debugger.state != "finished":
        return
    decisions = _fragile(debugger)
    if not decisions:
        return
    narrowest = min(decisions, key=lambda decision: decision.margin.distance)
    with st.container(border=True, key="problem_fragile", gap="xsmall"):
        several = (
            f" {len(decisions)} decisions of this run are narrow, this most of all:"
            if len(decisions) > 1
            else ""
        )
        markup.show(
            f"{markup.chip('note')} <b>fragile</b>{several} {markup.sentence(narrowest.sentence)}"
        )
        markup.show(
            "A device that computes in this type may run another number of iterations or take the "
            "other branch: see Compare.",
            "quiet",
        )
        for number, decision in enumerate(
            sorted(decisions, key=lambda decision: decision.margin.distance)[:_FEW]
        ):
            st.button(
                f"Show {markup.plain(readable(decision.address), 120)}",
                key=f"problem_fragile_{number}",
                type="tertiary",
                icon=":material/my_location:",
                on_click=_go,
                args=(decision,),
                help=f"decided by {significant(decision.margin.distance, 1)}",
            )


@report_errors.show_errors
def _go(decision: FragileDecision) -> None:
    moves.seek(decision.step)
    selection.reveal_place(
        decision.address.rpartition("[")[0] if decision.is_loop else decision.address
    )


def _show_left_out(plan: Plan) -> None:
    """Show what a run for the outputs prunes, if anything."""
    sentences = _left_out(plan).sentences()
    if sentences:
        what = "".join(f"<li>{markup.text(decode(sentence), 600)}</li>" for sentence in sentences)
        markup.show(
            "A run for the outputs (<span class='mono'>loopscope run</span>, "
            "<span class='mono'>loopscope.run</span>) leaves out what makes "
            f"no difference to them; steps show all of it.<ul>{what}</ul>",
            "quiet",
        )


def _choose(session: UserSession) -> None:
    """Show the choice of runtimes whose findings are listed."""
    key = f"problems_for_{session.run.generation}"
    st.pills(
        "Include findings about",
        [runtime.title for runtime in Runtime],
        selection_mode="multi",
        default=[runtime.title for runtime in Runtime if runtime in session.model.checked_for],
        key=key,
        on_change=lambda: selection.set_checked_runtimes(widget(key) or ()),
        help="Models that OpenVINO or ONNX Runtime refuses or runs differently: listed only for "
        "the runtimes chosen here.",
    )


def _show_group(group: Group, opened: Opened) -> None:
    """Show the findings of one rule. An upload has a title instead of a path."""
    first, places = group.first, group.diagnostics
    with st.container(border=True, key=f"problem_{first.code}", gap="xsmall"):
        several = (
            f" <span class='quiet'>at {len(places)} places, the first:</span>"
            if len(places) > 1
            else ""
        )
        chip = markup.chip(first.severity.value, _KIND[first.severity])
        markup.show(
            f"{chip} <b>{markup.text(first.code)}</b>{several} {markup.sentence(first.message)}"
        )
        rows = [
            (name, markup.sentence(words))
            for name, words in (
                ("found", first.found),
                ("expected", first.expected),
                ("what to do", first.advice),
            )
            if words
        ]
        line = (
            f"{first.where.file.rpartition('/')[2] or opened.title}:{first.where.line}"
            if first.where.line
            else ""
        )
        if rows or line:
            markup.show(markup.facts([*rows, *([("in", markup.text(line))] if line else [])]))
        show_repair(opened, first.code)
        buttons = [
            (number, place, "" if place.message == first.message else place.message)
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


def _show_place(number: int, problem: Diagnostic, message: str) -> None:
    if problem.where.address:
        st.button(
            f"Show {markup.plain(readable(problem.where.address), 120)}",
            key=f"problem_show_{problem.code}_{number}",
            type="tertiary",
            icon=":material/my_location:",
            on_click=selection.reveal_place,
            args=(problem.where.address,),
            help=markup.plain(problem.where.address),
        )
    if message:
        markup.show(markup.text(message, 300), "quiet")


def show_repair(opened: Opened, code: str) -> None:
    """Show the repair of one kind of problem, if there is one."""
    if code not in REPAIRABLE:
        return
    with st.popover("Repair", icon=":material/build:", key=f"problem_repair_{code}"):
        _, repairs = repair(opened.model, [code])
        for each in repairs:
            _show_repair_change(each)
        if all(each.refused for each in repairs):
            return
        st.button(
            "Compare before and after",
            icon=":material/compare_arrows:",
            key=f"problem_compare_{code}",
            on_click=derived_models.compare_before_and_after,
            args=(code,),
            help="Runs both models in their runtime with the current inputs",
        )
        st.download_button(
            "Download the repaired model",
            lambda: derived_models.repaired_model(opened.model, code),
            file_name=f"{opened.file_name()}-repaired.zip",
            icon=":material/download:",
            key=f"problem_repaired_{code}",
            on_click="ignore",
            help="The opened model does not change",
        )


def _show_repair_change(each: Repair) -> None:
    place = f"<b>{markup.text(readable(each.address), 120)}</b>"
    if each.refused:
        markup.show(f"{place}: not repaired. {markup.text(each.refused, 300)}", "quiet")
        return
    markup.show(f"{place}: {markup.text(each.change, 300)}")
    markup.show(markup.text(each.reason, 300), "quiet")
