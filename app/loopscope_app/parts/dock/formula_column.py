"""A formula over the iterations of the loop in focus: a column of the table, and a plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import ExpressionResult, ask
from loopscope.ir import decode
from loopscope.view import COLOURS, value_preview
from loopscope_app.actions import moves, selection
from loopscope_app.describe import input_parsing
from loopscope_app.describe.iteration_table import loop_columns
from loopscope_app.parts.widgets import markup
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession, current, widget
from loopscope_app.state.user_session import place as put
from loopscope_app.state.view_choices import FORMULA, HIDDEN

KEY, PLOT = "ask", "ask_plot"
COUNT = "i"


@dataclass(frozen=True, slots=True)
class FormulaCells:
    """The column that a formula computes."""

    title: str
    texts: Mapping[int, str]
    """Text of each computed iteration, by iteration number."""


def cells(
    session: UserSession, debugger: loopscope.Debugger, loop: LoopInFocus
) -> FormulaCells | None:
    """Return the column of the formula; None if there is none or it has an error."""
    try:
        answer = _answered(session, debugger, loop)
    except EngineError:
        return None
    if answer is None:
        return None
    texts = dict(zip(answer.iterations, map(shown, answer.values), strict=True))
    return FormulaCells(session.run.asked, texts)


def show(session: UserSession, debugger: loopscope.Debugger, loop: LoopInFocus) -> None:
    """Show the field of the formula, and its numbers over the iterations."""
    examples = suggestions(loop)
    field, menu, close = st.columns([5, 2, 0.8], vertical_alignment="bottom", gap="small")
    if widget(KEY) is None:
        put(KEY, session.run.asked)
    field.text_input(
        "Formula",
        key=KEY,
        placeholder=examples[0],
        label_visibility="collapsed",
        on_change=_remember,
    )
    with menu.popover("Examples", key="ask_examples", width="stretch"):
        markup.show(
            "A name is its value in iteration <b>i</b>; <b>name[i-1]</b> is its value in the "
            "previous iteration. Other indices take elements. Names that are not identifiers go in "
            "`backticks`. The end of a name is enough where only one node has it.",
            "quiet",
        )
        for number, example in enumerate(examples):
            st.button(
                example,
                key=f"ask_example_{number}",
                type="tertiary",
                on_click=_try,
                args=(example,),
            )
    close.button(
        "Remove the column",
        key="formula_close",
        icon=":material/close:",
        type="tertiary",
        on_click=FORMULA.show,
        args=(HIDDEN,),
        help="Remove the column",
    )
    try:
        answer = _answered(session, debugger, loop)
    except EngineError as error:
        markup.show(f"{markup.chip('no answer', 'warn')} {markup.sentence(error)}")
        return
    if answer is None:
        markup.show("For example a difference, a norm or a comparison, per iteration.", "quiet")
    else:
        _answer(answer, loop.current)


def _answered(
    session: UserSession, debugger: loopscope.Debugger, loop: LoopInFocus
) -> ExpressionResult | None:
    """Return the values of the formula; None for an empty one. Raise ``EngineError`` for another
    that has no value.
    """
    formula = session.run.asked.strip()
    if not formula:
        return None
    return ask(debugger, loop.address, input_parsing.typed_expression(debugger.model, formula))


def _remember() -> None:
    selection.store_question(str(widget(KEY) or ""))


def _try(example: str) -> None:
    selection.store_question(example)
    put(KEY, example)


def suggestions(loop: LoopInFocus) -> list[str]:
    """Return formulas that this loop can answer."""
    carried = [_quoted(column.label) for column in loop_columns(loop.place).carried][:2] or [COUNT]
    formulas: list[str] = []
    for name in carried:
        formulas += [f"{name}[i] - {name}[i-1]", f"max(abs({name}))", f"any(isnan({name}))"]
    return [*dict.fromkeys(formulas), COUNT] if carried != [COUNT] else [COUNT]


def _quoted(label: str) -> str:
    """Return a name in the syntax of formulas.

    >>> _quoted("total"), _quoted("while%2FAdd"), _quoted("i")
    ('total', '`while/Add`', '`i`')
    """
    return (
        label
        if label.isidentifier() and not label.startswith("_") and label != COUNT
        else f"`{decode(label)}`"
    )


def _answer(answer: ExpressionResult, now: int | None) -> None:
    if sum(number is not None for number in answer.numbers) > 1:
        st.vega_lite_chart(
            plot(answer, now),
            height=150,
            width="stretch",
            key=PLOT,
            on_select=lambda: _picked_point(answer),
        )
    text = (
        [f"{len(answer.iterations):,} of {answer.total:,} iterations, evenly chosen"]
        if answer.total > len(answer.iterations)
        else []
    )
    if answer.reason:
        text.append(f"– where {markup.sentence(answer.reason)}")
    if text:
        markup.show(" · ".join(text), "quiet")


def shown(value: object) -> str:
    """Return a value as the text of a table cell.

    >>> shown(None), shown(7)
    ('–', '7')
    """
    return "–" if value is None else value_preview(value)


def plot(answer: ExpressionResult, now: int | None) -> dict[str, object]:
    """Return the numbers over the iterations, with the iteration of the cursor as a line."""
    points = [
        {"iteration": iteration, "value": number}
        for iteration, number in zip(answer.iterations, answer.numbers, strict=True)
        if number is not None
    ]
    ends = [answer.iterations[0] - 0.3, answer.iterations[-1] + 0.3]
    scale = {"domain": ends, "nice": False}
    x = {
        "field": "iteration",
        "type": "quantitative",
        "title": None,
        "scale": scale,
        "axis": {"tickMinStep": 1, "grid": False},
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "title": None,
        "scale": {"zero": False, "padding": 10},
    }
    layers: list[dict[str, object]] = [
        {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {"x": x, "y": y}},
        {
            "mark": {
                "type": "point",
                "filled": True,
                "size": 46 if len(points) <= 80 else 14,
                "tooltip": True,
                "cursor": "pointer",
            },
            "params": [
                {
                    "name": "at",
                    "select": {"type": "point", "fields": ["iteration"], "nearest": True},
                }
            ],
            "encoding": {"x": x, "y": y},
        },
    ]
    if now is not None:
        rule = {
            "mark": {"type": "rule", "strokeWidth": 2, "color": COLOURS["now"].light},
            "encoding": {"x": {"datum": now}},
        }
        layers.insert(0, rule)
    return {"data": {"values": points}, "layer": layers}


def _picked_point(answer: ExpressionResult) -> None:
    chosen = (widget(PLOT) or {}).get("selection", {}).get("at") or []
    if chosen and isinstance(chosen[0], dict):
        _go(answer, chosen[0].get("iteration"))


def _go(answer: ExpressionResult, number: object) -> None:
    """Go to the end of an iteration, where all of its values are computed."""
    debugger = current().run.debugger
    if debugger is None or not isinstance(number, int) or not 0 <= number < answer.total:
        return
    row = answer.first_row + number
    frame = debugger.timeline.executions.open.get(answer.program.index)
    last = frame is not None and row == debugger.timeline.executions.rows[answer.program.index] - 1
    moves.seek(
        debugger.steps
        if last
        else debugger.timeline.step_at(answer.program, row, len(answer.program.instructions))
    )
