"""Predictions in a lesson: every answer can be given, what is no prediction is told, and the
proof leads to a place.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope_app.actions.lesson_actions import changed
from loopscope_app.describe.lessons import Lesson, Trial, lessons
from tests.app.screens.test_lessons import (
    answers,
    button,
    get,
    inputs_of,
    page_text,
    predict,
    sample_of,
)

Visit = Callable[..., AppTest]


@pytest.mark.parametrize(
    ("one", "trial"),
    [
        pytest.param(one, trial, id=f"{one.name}-{trial.label}")
        for one in lessons()
        for trial in one.trials
    ],
)
def test_what_is_right_can_be_chosen(one: Lesson, trial: Trial) -> None:
    inputs = changed(
        loopscope.read_model(sample_of(one).model), inputs_of(one, trial.inputs), trial.changes
    )
    for question, right in zip(one.questions, answers(one, inputs), strict=True):
        assert right is not None
        assert not question.options or right.value in question.options


@pytest.mark.parametrize("guess", ["many", "11 times", "?"])
def test_what_is_no_number_is_asked_for_again(opened: Visit, guess: str) -> None:
    app = predict(opened(lesson="while"), guess)
    assert "is not a number" in page_text(app)
    assert "Not quite" not in page_text(app)
    text = page_text(predict(app, "11"))
    assert "is not a number" not in text
    assert "✓ Right" in text


def test_the_trip_count_that_decided_is_shown_where_it_stands(opened: Visit) -> None:
    app = predict(opened(lesson="for"), "trip_count", "3")
    button(app, "Show years").click().run()
    assert not app.error
    session = app.session_state["loopscope"]
    assert (session.canvas.selected, session.run.debugger.cursor.step) == ("main/years", 0)


def test_the_proof_is_given_also_where_another_question_has_told_the_end(opened: Visit) -> None:
    app = predict(opened(lesson="zero"), "100", "0", "zero_trip_count")
    assert button(app, "Show trips")


def test_what_a_loop_without_end_never_computes_is_told_in_a_sentence() -> None:
    one = get("do-while")
    shrinking = changed(
        loopscope.read_model(sample_of(one).model), inputs_of(one, one.inputs), {"growth": "0.5"}
    )
    balance = answers(one, shrinking)[1]
    assert balance is not None
    assert balance.because == "The run ended before `final_balance` was computed."


def test_the_last_lesson_leads_out_of_the_course(opened: Visit) -> None:
    app = predict(opened(lesson="first-wrong-token"), "64", "64")
    button(app, "To models of your own").click().run()
    assert app.file_uploader("opener_upload") is not None
