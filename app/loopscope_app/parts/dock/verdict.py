"""The verdict on a loop or If, with deciding values, and the chain of values that proves it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

import loopscope
from loopscope.errors import AddressError, EngineError, ValueUnavailable, elided
from loopscope.explain import (
    Fact,
    Pattern,
    Verdict,
    branch_history,
    branches_of,
    is_no_limit,
    verdict,
)
from loopscope.ir import Address, is_trace, readable, readable_around, readable_steps
from loopscope.view import short_name, value_preview
from loopscope_app.actions import moves, selection
from loopscope_app.describe.first_nan import SEARCHES, first_odd
from loopscope_app.describe.iteration_table import preview
from loopscope_app.describe.wording import name_of, reason, times
from loopscope_app.parts.inspector import origin
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state.user_session import UserSession, current
from loopscope_app.state.view_choices import CHAIN, HIDDEN, SHOWN

_MOST_VALUES = 12

_KEYS = (
    '<span class="quiet"><kbd>Shift</kbd> <kbd>→</kbd> runs a whole iteration, <kbd>End</kbd> '
    "everything, <kbd>←</kbd> steps back.</span>"
)

_LAST = ("Finished: every operation has run.",)


def show_verdict(session: UserSession, decided: str | None) -> None:
    """Show sentences about the loop or If in focus and about the run; before the first step, how to
    take it.
    """
    if session.run.debugger is None or session.model.opened is None:
        return
    region = _of_region(session.run.debugger, decided) if decided else ""
    lines = (
        [f"<b>Paused:</b> {markup.sentence(notice)}"]
        if (notice := session.run.debugger.notice)
        else []
    )
    lines += [region] if region else []
    lines += _of_gradient(session.run.debugger, decided) if decided else []
    failure = session.run.debugger.endless or session.run.debugger.failure
    if not failure or markup.sentence(failure) not in region:  # else it has been told
        lines += _of_run(session.run.debugger)
    failed = session.run.debugger.state in ("failed", "limit")
    hint = _LAST if session.run.debugger.state == "finished" else _hint(session.run.debugger)
    with st.container(key="verdict"):
        markup.show("<br>".join(lines or hint), "verdict failed" if failed else "verdict")
        with st.container(key="verdict_actions", horizontal=True, vertical_alignment="center"):
            if region and not is_trace(session.model.opened.model):
                _chain_button()
            _to_the_first_odd(session.run.debugger)
    _values(session)


def _hint(debugger: loopscope.Debugger) -> tuple[str, ...]:
    """Return how to take the next step."""
    which = "next" if debugger.cursor.step else "first"
    words = f"Press <kbd>→</kbd> to run the {which} operation: its value appears on its wire."
    return (words, _KEYS)


def _chain_button() -> None:
    """Show the button that opens or closes the proof of the verdict."""
    is_open = CHAIN.shown() == SHOWN
    st.button(
        "Hide the chain" if is_open else "Show the chain",
        key="verdict_chain",
        type="tertiary",
        on_click=CHAIN.show,
        args=(HIDDEN if is_open else SHOWN,),
        width="content",
    )


def _values(session: UserSession) -> None:
    """Show the outputs of a finished run, else the inputs."""
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return
    if debugger.state == "finished":
        outputs = zip(opened.model.outputs, debugger.result.outputs, strict=True)
        named = [
            (short_name(next(iter(signature.names), signature.name)), array)
            for signature, array in outputs
        ]
        _named_values("Outputs", named, "The model has no outputs.")
    else:
        inputs = [(short_name(name), value) for name, value in session.model.inputs.items()]
        _named_values("Inputs", inputs, "The model has no inputs.")


def _named_values(title: str, values: Sequence[tuple[str, object]], none: str) -> None:
    chips = " ".join(
        f'<code title="{markup.text(name)}">{markup.text(f"{name} = {value_preview(value)}", 120)}'
        "</code>"
        for name, value in values[:_MOST_VALUES]
    )
    more = f" and {len(values) - _MOST_VALUES:,} more" if len(values) > _MOST_VALUES else ""
    words = f"{chips}{more}" if values else f'<span class="quiet">{none}</span>'
    markup.show(f'<span class="quiet">{title}</span> {words}', "named_values")


def _to_the_first_odd(debugger: loopscope.Debugger) -> None:
    """Show buttons to the first NaN and the first infinity of a finished run, and one to continue a
    search that took too long.
    """
    if debugger.state == "paused":
        return
    searches = {kind: first_odd(debugger, kind) for kind in SEARCHES}
    for kind, result in searches.items():
        if result.step is not None:
            first, other = f"First {result.noun}", f"Go to {result.noun}"
            what = first if result.is_certain else f"Perhaps not the first {result.noun}"
            st.button(
                first if result.is_certain else other,
                key=f"verdict_{kind}",
                icon=":material/error:" if kind == "nan" else ":material/all_inclusive:",
                help=markup.plain(f"{what}: {readable(result.address)}"),
                on_click=_go,
                args=(result.step, result.address),
                width="content",
            )
    left = [result for result in searches.values() if not result.is_certain]
    if left:
        sentences = " ".join(result.sentence for result in left)
        words = markup.plain(f"{sentences} Search the rest, for up to 20 seconds each.")
        st.button(
            f"Find first {left[0].noun}",
            key="verdict_look",
            icon=":material/search:",
            help=words,
            on_click=_look,
            type="tertiary",
            width="content",
        )


def _look() -> None:
    debugger = current().run.debugger
    if debugger is not None:
        for kind in SEARCHES:
            first_odd(debugger, kind, thoroughly=True)


def _go(step: int, address: str) -> None:
    moves.seek(step)
    selection.select(address)


def _of_gradient(debugger: loopscope.Debugger, address: str) -> list[str]:
    """Return what came back through an If of a forward/backward pair."""
    sentences = [
        entry.sentence
        for entry in branches_of(debugger)
        if address in (entry.forward, entry.backward)
    ]
    return [f"The gradient {markup.prose(entry)}." for entry in sentences[:1]]


def _of_region(debugger: loopscope.Debugger, address: str) -> str:
    """Return the iteration count and the reason, or the branch; for a condition, the operation that
    computed it.
    """
    name = markup.text(name_of(address), 60)
    try:
        sentence = verdict(debugger, address).sentence
    except (AddressError, ValueUnavailable):
        return f"<b>{name}</b> has not begun"
    except EngineError:
        return ""  # a function: it runs once, and there is nothing to decide
    words = markup.sentence(sentence[:1].lower() + sentence[1:]).split("`")
    spans = [
        f'<span class="mono">{word}</span>' if number % 2 else word
        for number, word in enumerate(words)
    ]
    return f"<b>{name}</b> {''.join(spans)}"


def _of_run(debugger: loopscope.Debugger) -> list[str]:
    if debugger.state in ("failed", "limit"):
        place = f" at {readable(debugger.failed_address)}" if debugger.failed_address else ""
        return [f"<b>It stopped{markup.text(place)}:</b> {markup.sentence(debugger.failure)}"]
    return []


KEY = "proof"

Place = tuple[place_lists.ChainLine, str]


def show_chain(session: UserSession, address: str | None) -> None:
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
            place_lists.show_list(
                [line for line, _ in places],
                key=KEY,
                on_pick=lambda number: _go_to_place(places[number][1]),
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
            place_lists.ChainLine(text, fact.operation, label, "", fact.depth, "bad", fact.address),
            fact.address,
        )
    ]
    for operand in fact.operands:
        value = preview(session.run.debugger, operand) if session.run.debugger else ""
        name, around = elided(readable_steps(operand)[-1]), elided(readable_around(operand), 200)
        lines.append(
            (place_lists.ChainLine(name, "", around, value, fact.depth + 1, "", operand), operand)
        )
    return lines


def _go_to_place(address: str) -> None:
    debugger = current().run.debugger
    if debugger is not None:
        origin.go_to_value(debugger, address)
