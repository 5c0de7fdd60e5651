"""Why the loop in focus ended, or why the If took its branch: the facts, and the chain of values
that proves it, each a place to go to.
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
    """Of the execution of a loop or an If at a concrete address."""
    debugger = session.run.debugger
    if debugger is None or address is None:
        markup.show(
            "Once a loop or an If has run, the values that decided it are shown here as a proof.",
            "quiet",
        )
        return
    try:
        found = verdict(debugger, address)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return
    places = [place for fact in found.proof for place in _places(session, fact)]
    told, proof = st.columns([1, 1.4], gap="medium") if places else (st.container(), None)
    with told:
        markup.show(
            markup.facts(
                _of_loop(found, found.pattern) if found.pattern else _of_if(debugger, found)
            )
        )
        if not places and found.record.ended_by == "trip_count":
            markup.show("No computed value decided: the count alone did.", "quiet")
    if proof is not None:
        with proof:
            chain.show(
                [line for line, _ in places], key=KEY, on_pick=lambda number: _go(places[number][1])
            )


def _of_if(debugger: loopscope.Debugger, found: Verdict) -> list[tuple[str, str]]:
    """What is known of the If, as rows of escaped text."""
    then, otherwise = branch_history(debugger, Address.parse(found.address).static).counts
    return [
        ("took", f"the {found.record.branch} branch"),
        ("condition", "true" if found.record.branch == "then" else "false"),
        ("whole run", f"then {then:,} ×, else {otherwise:,} ×"),
    ]


def _of_loop(found: Verdict, kind: Pattern) -> list[tuple[str, str]]:
    """What is known of the loop, as rows of escaped text."""
    declared = found.declared
    asked = (
        "nothing" if declared is None else "no limit" if is_no_limit(declared) else f"{declared:,}"
    )
    rows = [
        ("pattern", markup.sentence(kind.sentence)),
        ("trip count", asked),
        ("ran", times(found.record.iterations or 0)),
        ("ended", "not yet, and it never will")
        if found.record.endless
        else ("ended because", reason(found.record.ended_by)),
    ]
    if kind.condition is not None:
        rows.insert(2, ("condition", f"always {str(kind.condition).lower()}"))
    return rows


def _places(session: UserSession, fact: Fact) -> list[Place]:
    """A fact, and below it the values that it was decided by."""
    text = fact.text.replace("`", "")
    label = elided(readable_steps(fact.address)[-1])
    found = [
        (
            chain.ChainLine(text, fact.operation, label, "", fact.depth, "bad", fact.address),
            fact.address,
        )
    ]
    for operand in fact.operands:
        value = preview(session.run.debugger, operand) if session.run.debugger else ""
        name, around = elided(readable_steps(operand)[-1]), elided(readable_around(operand), 200)
        found.append(
            (chain.ChainLine(name, "", around, value, fact.depth + 1, "", operand), operand)
        )
    return found


def _go(address: str) -> None:
    debugger = current().run.debugger
    if debugger is not None:
        origin.go_to_value(debugger, address)
