"""Drawers over the dock: problems, exports, the sheet of keys, and facts about the model.

The facts are what its file states, its size, and the lesson of a sample: a text, a prediction
before the answer, and differences of real runtimes.
"""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.errors import EngineError
from loopscope_app.actions import lesson_actions, models, moves
from loopscope_app.describe import lessons
from loopscope_app.describe.controls import CONTROLS
from loopscope_app.describe.wording import ending, reason, times
from loopscope_app.parts.dock import export_drawer, problems_drawer
from loopscope_app.parts.inspector import fact_sections
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import DRAWER, HIDDEN
from loopscope_samples import Question, Sample

_TITLES = {
    "Problems": "Problems",
    "Export": "Export",
    "Keyboard": "Keyboard",
    "About": "About this model",
}


def show(session: UserSession, opened: Opened) -> bool:
    """Draw the open drawer and return True; return False if none is open."""
    name = DRAWER.shown()
    if name == HIDDEN:
        return False
    with st.container(key="drawer"):
        with st.container(key="drawer_head", horizontal=True, vertical_alignment="center"):
            markup.show(f"<h2>{_TITLES[name]}</h2>")
            st.button(
                "Close",
                key="drawer_close",
                icon=":material/close:",
                type="tertiary",
                on_click=DRAWER.show,
                args=(HIDDEN,),
                help=f"Close {_TITLES[name]}",
            )
        match name:
            case "Problems":
                problems_drawer.show(session, opened)
            case "Export":
                export_drawer.show(session)
            case "Keyboard":
                show_keys()
            case _:
                _show_about(session, opened)
    return True


_SHOWN = {"Right": "→", "Left": "←", "Up": "↑", "Down": "↓"}
_OTHER = (  # alternatives are separated by a bar
    ("/|Ctrl+F", "Find a node by name, operation, shape or value"),
    ("W", "What if: set the value of the shown node by hand"),
    ("P", "Play: step automatically, or stop; so does the space bar"),
    ("Backspace", "On the canvas: out of the body that it shows"),
    ("F", "The canvas alone in the window; Esc brings the panels back"),
    (
        "Tab",
        (
            "Into the canvas: arrow keys walk along wires, Enter shows a box or opens it, "
            "Esc steps again"
        ),
    ),
    ("+|−|0", "Zoom in, zoom out, show the whole picture"),
    ("U", "Iterations side by side, or the loop drawn once"),
    ("?|L", "The legend: what colours and lines mean"),
)
_MOUSE = (
    ("Double click", "A body on a canvas of its own"),
    ("Red dot", "A breakpoint: a click switches it off, and on again"),
)


def show_keys() -> None:
    rows = [(_keys(control.shortcut), markup.text(control.meaning)) for control in CONTROLS]
    rows += [
        (" ".join(_keys(key) for key in keys.split("|")), markup.text(meaning))
        for keys, meaning in _OTHER
    ]
    rows += [(markup.text(mouse), markup.text(meaning)) for mouse, meaning in _MOUSE]
    markup.show(markup.facts(rows))


def _keys(shortcut: str) -> str:
    """Return the keys of a shortcut as markup; a plus alone is a key."""
    keys = shortcut.split("+") if len(shortcut) > 1 else [shortcut]
    return " ".join(f"<kbd>{_SHOWN.get(key, key)}</kbd>" for key in keys)


def _show_about(session: UserSession, opened: Opened) -> None:
    if opened.card:
        markup.show(f"<p>{markup.text(opened.card, 600)}</p>")
    fact_sections.show_model(opened)
    _show_lesson(session)


_ENDINGS = ("condition", "trip_count", "initial_condition", "zero_trip_count", "slices_exhausted")


def _show_lesson(session: UserSession) -> None:
    sample = session.model.opened.sample if session.model.opened else None
    if sample is None:
        return
    markup.show(markup.text(sample.lesson, 2000))
    _lesson_link(sample)
    _ask_question(session, sample, sample.question)
    if sample.pitfalls:
        points = "".join(f"<li>{markup.text(pitfall, 600)}</li>" for pitfall in sample.pitfalls)
        markup.show(f"{markup.section('Pitfalls')}<ul>{points}</ul>")
    markup.show(f"{markup.section('Made with')}{markup.text(sample.origin)}", "quiet")


def _lesson_link(sample: Sample) -> None:
    """Show a link to the lesson that is about this sample, if there is one."""
    match = next((lesson for lesson in lessons.lessons() if lesson.sample == sample.name), None)
    if match is not None:
        st.button(
            f"Lesson {lessons.number(match.name)}: {match.title}",
            key="lesson_course",
            icon=":material/school:",
            on_click=lesson_actions.open_lesson,
            args=(match.name,),
        )


def _ask_question(session: UserSession, sample: Sample, question: Question) -> None:
    with st.container(border=True, key="lesson_question"):
        markup.show(f"<b>Predict.</b> {markup.text(question.text, 600)}")
        guess = _guess(question, f"lesson_guess_{sample.name}_{session.run.generation}")
        ready = (
            session.model.input_set == question.inputs
            and session.run.debugger is not None
            and not session.run.changes
        )
        if not ready:
            st.button(
                "Use the inputs of the question",
                key="lesson_inputs",
                on_click=models.choose_set_named,
                args=(question.inputs,),
            )
            return
        st.button(
            "Run and reveal",
            key="lesson_reveal",
            type="primary",
            icon=":material/visibility:",
            on_click=moves.go,
            args=(_to_the_end,),
            disabled=guess is None,
            help="Answer first, if only roughly" if guess is None else None,
        )
        if (
            guess is not None
            and session.run.debugger is not None
            and session.run.debugger.cursor.kind == "finished"
        ):
            _reveal(session.run.debugger, question, guess)


def _to_the_end(debugger: loopscope.Debugger) -> None:
    debugger.run()


def _guess(question: Question, key: str) -> str | None:
    """Return the user's prediction, or None."""
    if question.asks == "iterations":
        number = st.number_input(
            "Iterations", 0, 100_000, None, key=key, width=160, placeholder="how many?"
        )
        return None if number is None else str(int(number))
    options = ("then", "else") if question.asks == "branch" else _ENDINGS
    words = {option: reason(option) for option in _ENDINGS}
    answer = st.radio(
        "Your answer",
        options,
        None,
        key=key,
        format_func=lambda option: words.get(option, option),
        label_visibility="collapsed",
    )
    return None if answer is None else str(answer)


def _reveal(debugger: loopscope.Debugger, question: Question, guess: str) -> None:
    try:
        record = debugger.record(question.address)
    except EngineError:
        record = None
    if record is None:
        return
    right = str(
        {"iterations": record.iterations, "branch": record.branch}.get(
            question.asks, record.ended_by
        )
    )
    words = {
        "iterations": times(record.iterations or 0),
        "branch": f"the {record.branch} branch",
    }.get(question.asks, ending(record))
    markup.show(
        markup.chip(
            "right" if guess == right else "not quite", "good" if guess == right else "warn"
        )
        + f" {markup.text(words)}."
    )
