"""The questions of a lesson: first a prediction, then the answer of the run with its proof."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from loopscope.explain import Fact
from loopscope.view import value_preview
from loopscope_app.actions import lesson_actions, moves
from loopscope_app.describe import lessons
from loopscope_app.describe.answers import QuizAnswer, answer, is_right, miss
from loopscope_app.describe.lessons import Lesson, Question
from loopscope_app.describe.wording import name_of, reason
from loopscope_app.parts.inspector import origin
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession, current

STANDING = frozenset({"Parameter", "Constant"})
"""Types of nodes that decide without running: their values exist when their graph begins."""
_WORDS = {
    "then": "the then branch",
    "else": "the else branch",
    "limit": "nothing in the model: only a limit from outside",
}


def show(session: UserSession, lesson: Lesson) -> None:
    learning = session.learning
    with st.container(border=True, key="prediction", gap="small"):
        markup.show(f"{markup.section('Predict')}{_inputs(session)}")
        if not learning.revealed:
            _ask(session, lesson)
            return
        answers = (
            [answer(session.run.at_rest, question, lesson.address) for question in lesson.questions]
            if session.run.at_rest
            else []
        )
        if session.run.running is not None:
            markup.show("The run is on its way …", "quiet")
        elif not answers or None in answers:
            markup.show("The run ended before this was decided.", "quiet")
        else:
            _compare(
                lesson.questions,
                [question for question in answers if question is not None],
                learning.guesses,
            )
        _onward(lesson)


def _inputs(session: UserSession) -> str:
    """Return the inputs of this run as markup."""
    texts = {
        name: lesson_actions.typed(array) or value_preview(array)
        for name, array in session.model.inputs.items()
    }
    parts = [
        f'<span class="quiet">{markup.text(name, 40)}</span> <b>{markup.text(words, 60)}</b>'
        for name, words in texts.items()
    ]
    return f'<div class="givens">{"".join(f"<span>{part}</span>" for part in parts)}</div>'


def _ask(session: UserSession, lesson: Lesson) -> None:
    keys = [
        f"prediction_{lesson.name}_{position}_{session.run.generation}"
        for position in range(len(lesson.questions))
    ]
    with st.form(f"prediction_form_{session.run.generation}", border=False):
        for question, key in zip(lesson.questions, keys, strict=True):
            markup.show(markup.prose(question.text), "question")
            _field(question, key)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.form_submit_button(
                "Run and check",
                type="primary",
                icon=":material/play_arrow:",
                on_click=lesson_actions.check,
                args=(keys,),
                key="prediction_check",
            )
            st.form_submit_button(
                "Just show me",
                type="tertiary",
                on_click=lesson_actions.show_me,
                key="prediction_show",
            )
    if session.learning.hint:
        markup.show(markup.text(session.learning.hint), "hint")


def _field(question: Question, key: str) -> None:
    if question.options:
        st.radio(
            question.text,
            question.options,
            index=None,
            key=key,
            format_func=_option,
            horizontal=question.asks == "branch",
            label_visibility="collapsed",
        )
    else:
        placeholder = "a number, or: never" if question.asks == "iterations" else "a number"
        st.text_input(
            question.text,
            key=key,
            placeholder=placeholder,
            label_visibility="collapsed",
            max_chars=24,
            width=280,
        )


def _option(name: str) -> str:
    return _WORDS.get(name, reason(name))


def _words(right: QuizAnswer) -> str:
    return right.words or _option(str(right.value))


def _compare(
    questions: Sequence[Question], answers: Sequence[QuizAnswer], guesses: Sequence[str]
) -> None:
    """Show every question with its answer. The verdict of the loop and its proof appear once."""
    explained: set[str] = set()
    proved: set[str] = set()
    for position, (question, right) in enumerate(zip(questions, answers, strict=True)):
        why = f"{right.because} {'' if right.verdict in explained else right.verdict}".strip()
        _tell(question, right, guesses[position] if guesses else "", why)
        if right.proof and right.verdict not in proved:
            proved.add(right.verdict)
            with st.container(key=f"proof_{position}", gap="xsmall"):
                for link, fact in enumerate(right.proof):
                    _fact(position, link, fact)
        explained.add(right.verdict)


def _tell(question: Question, right: QuizAnswer, guess: str, why: str) -> None:
    good = is_right(guess, right)
    guess_text = _option(guess) if question.options and guess else guess
    mark = ""
    if guess:
        mark = (
            markup.chip("✓ Right", "good")
            if good
            else markup.chip(f"✗ {miss(guess, right)}", "bad")
        )
    missed = (
        f' <span class="quiet">You said {markup.text(guess_text, 80)}.</span>'
        if guess and not good
        else ""
    )
    markup.show(
        f'<div class="asked quiet">{markup.prose(question.text)}</div>'
        f'<div class="answer">{mark} <b>{markup.text(_words(right))}</b>{missed}</div>'
        f'<div class="because">{markup.prose(why)}</div>',
        f"told {'' if not guess else 'good' if good else 'bad'}",
    )


def _fact(position: int, link: int, fact: Fact) -> None:
    name, runs = name_of(fact.address), fact.operation not in STANDING
    st.button(
        f"and {name} before it" if link else f"See {name} decide" if runs else f"Show {name}",
        key=f"proof_{position}_{link}",
        type="tertiary",
        icon=":material/my_location:",
        help=fact.text.replace("`", "") if link else None,  # the first one has just been told
        on_click=moves.seek if runs else _show,
        args=(fact.address,),
    )


def _show(address: str) -> None:
    """Go to a value that no operation computes, at the moment from which it is available."""
    debugger = current().run.debugger
    if debugger is not None:
        origin.go_to_value(debugger, address)


def _onward(lesson: Lesson) -> None:
    following = lessons.beside(lesson.name, 1)
    with st.container(horizontal=True, vertical_alignment="center", key="onward"):
        if following is not None:
            st.button(
                f"Next: {following.title}",
                key="onward_next",
                type="primary",
                icon=":material/arrow_forward:",
                on_click=lesson_actions.open_lesson,
                args=(following.name,),
            )
        else:
            st.button(
                "To models of your own",
                key="onward_leave",
                type="primary",
                icon=":material/upload:",
                on_click=lesson_actions.leave,
            )
        st.button(
            "Predict again",
            key="onward_again",
            icon=":material/replay:",
            on_click=lesson_actions.again,
        )
        st.button(
            "Open in the debugger",
            key="onward_debugger",
            icon=":material/bug_report:",
            type="tertiary",
            on_click=lesson_actions.to_debugger,
        )
