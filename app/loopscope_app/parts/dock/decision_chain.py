"""Why the loop in focus ended or the If took its branch: facts, and the chain of values that proves
them.
"""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.errors import EngineError, elided
from loopscope.explain import Fact, Pattern, Verdict, branch_history, is_no_limit, verdict
from loopscope.ir import Address, readable_around, readable_steps
from loopscope_app.describe.iteration_table import preview
from loopscope_app.describe.wording import reason, times
from loopscope_app.parts.inspector import origin
from loopscope_app.parts.widgets import chain, markup
from loopscope_app.state.user_session import UserSession, current

KEY = "proof"

Place = tuple[chain.ChainLine, str]


def show(session: UserSession, address: str | None) -> None:
    """Show the proof of one execution of a loop or an If, given its concrete address."""
    debugger = session.run.debugger
    if debugger is None or address is None:
        markup.show(
            "Once a loop or an If has run, the values that decided it are shown here as a proof.",
            "quiet",
        )
        return
    try:
        result = verdict(debugger, address)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return
    places = [place for fact in result.proof for place in _places(session, fact)]
    with st.container(key="decision_chain"):
        if places:
            chain.show(
                [line for line, _ in places], key=KEY, on_pick=lambda number: _go(places[number][1])
            )
        elif result.record.ended_by == "trip_count":
            markup.show("No computed value decided: the count alone did.", "quiet")
        rows = _of_loop(result, result.pattern) if result.pattern else _of_if(debugger, result)
        markup.show(markup.facts(rows))


def _of_if(debugger: loopscope.Debugger, result: Verdict) -> list[tuple[str, str]]:
    """Return the facts about an If as rows of escaped text."""
    then, otherwise = branch_history(debugger, Address.parse(result.address).static).counts
    return [
        ("took", f"the {result.record.branch} branch"),
        ("condition", "true" if result.record.branch == "then" else "false"),
        ("whole run", f"then {then:,} ×, else {otherwise:,} ×"),
    ]


def _of_loop(result: Verdict, kind: Pattern) -> list[tuple[str, str]]:
    """Return the facts about a loop as rows of escaped text."""
    declared = result.declared
    condition_text = (
        "nothing" if declared is None else "no limit" if is_no_limit(declared) else f"{declared:,}"
    )
    rows = [
        ("pattern", markup.sentence(kind.sentence)),
        ("trip count", condition_text),
        ("ran", times(result.record.iterations or 0)),
        ("ended", "not yet, and it never will")
        if result.record.endless
        else ("ended because", reason(result.record.ended_by)),
    ]
    if kind.condition is not None:
        rows.insert(2, ("condition", f"always {str(kind.condition).lower()}"))
    return rows


def _places(session: UserSession, fact: Fact) -> list[Place]:
    """Return a fact, and below it the values that decided it."""
    text = fact.text.replace("`", "")
    label = elided(readable_steps(fact.address)[-1])
    lines = [
        (
            chain.ChainLine(text, fact.operation, label, "", fact.depth, "bad", fact.address),
            fact.address,
        )
    ]
    for operand in fact.operands:
        value = preview(session.run.debugger, operand) if session.run.debugger else ""
        name, around = elided(readable_steps(operand)[-1]), elided(readable_around(operand), 200)
        lines.append(
            (chain.ChainLine(name, "", around, value, fact.depth + 1, "", operand), operand)
        )
    return lines


def _go(address: str) -> None:
    debugger = current().run.debugger
    if debugger is not None:
        origin.go_to_value(debugger, address)
