"""The course: its data fits the samples, its answers come from runs, and the screen takes a
learner through it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

import loopscope
from loopscope.errors import AddressError, InputError
from loopscope.ir.address import decode
from loopscope_app.actions.lesson_actions import changed, typed
from loopscope_app.describe.answers import QuizAnswer, answer, is_right, miss, read_number
from loopscope_app.describe.lessons import (
    Lesson,
    Question,
    Trial,
    beside,
    lesson,
    lessons,
    number,
    topics,
)
from loopscope_app.describe.node_index import places
from loopscope_app.describe.signatures import bindings
from loopscope_samples import Sample, SampleTrace, sample, sample_trace
from tests.app.browsing import CANVAS, LONG
from tests.app.screens.lesson_truth import TRUTH

Visit = Callable[..., AppTest]
NAMES = [one.name for one in lessons()]


def sample_of(one: Lesson) -> Sample | SampleTrace:
    found = sample(one.sample) or sample_trace(one.sample)
    assert found is not None
    return found


def inputs_of(one: Lesson, name: str) -> dict[str, np.ndarray]:
    entry = sample_of(one)
    if isinstance(entry, SampleTrace):
        return {}
    return next(chosen for chosen in entry.sets if chosen.name == name).arrays()


def finished(one: Lesson, inputs: Mapping[str, np.ndarray]) -> loopscope.Debugger:
    model = loopscope.read_model(sample_of(one).model)
    debugger = loopscope.Debugger(model, bindings(model, inputs))
    debugger.run()
    return debugger


def answers(one: Lesson, inputs: Mapping[str, np.ndarray]) -> list[QuizAnswer | None]:
    debugger = finished(one, inputs)
    return [answer(debugger, question, one.address) for question in one.questions]


def get(name: str) -> Lesson:
    found = lesson(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_questions_hold_for_every_trial(name: str) -> None:
    """What is asked names no number that a trial changes, and no length: the questions stay when
    the inputs are others.
    """
    one = get(name)
    for trial in one.trials:
        inputs = inputs_of(one, one.inputs)
        values = [inputs[key] for key in trial.changes]
        told = {f"{value.item():g}" for value in values if value.size == 1} | {
            str(value.size) for value in values if value.ndim
        }
        asked = {
            number
            for question in one.questions
            for number in re.findall(
                r"-?\d+(?:\.\d+)?", re.sub(r"`[^`]*`|[Ii]teration \d+", "", question.text)
            )
        }
        assert not told & asked, f"{name}, {trial.label}: a question tells {sorted(told & asked)}"


@pytest.mark.parametrize("name", NAMES)
def test_a_run_answers_every_question(name: str) -> None:
    one = get(name)
    found = [right.value if right else None for right in answers(one, inputs_of(one, one.inputs))]
    assert len(found) == len(TRUTH[name])
    for right, expected in zip(found, TRUTH[name], strict=True):
        assert right == (
            pytest.approx(expected, rel=1e-4) if isinstance(expected, float) else expected
        )


@pytest.mark.parametrize(
    ("one", "trial"),
    [
        pytest.param(one, trial, id=f"{one.name}-{trial.label}")
        for one in lessons()
        for trial in one.trials
    ],
)
def test_every_experiment_runs_and_is_answered(one: Lesson, trial: Trial) -> None:
    model = loopscope.read_model(sample_of(one).model)
    inputs = changed(model, inputs_of(one, trial.inputs), trial.changes)
    found = answers(one, inputs)
    assert None not in found
    lesson_set = inputs_of(one, one.inputs)
    assert any(not np.array_equal(inputs[key], lesson_set[key]) for key in inputs)


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_speaks_of_its_model(name: str) -> None:
    one = get(name)
    model = loopscope.read_model(sample_of(one).model)
    at = places(model)
    assert one.address in at
    known = {decode(address.rpartition("/")[2]) for address in at} | {
        found for port in model.inputs for found in port.names
    }
    debugger = finished(one, inputs_of(one, one.inputs))
    for text in (*one.text, *(question.text for question in one.questions)):
        for word in re.findall(r"`([^`]+)`", text):
            assert word in known or word == "?" or debugger.record(word) is not None, word
    assert one.pitfalls
    assert one.code == one.code.strip()
    assert max(map(len, one.code.splitlines())) <= 47  # what the column has room for


def test_lessons_have_an_order() -> None:
    assert len(set(NAMES)) == len(NAMES) == 24
    assert [number(name) for name in NAMES] == list(range(1, 25))
    following, none = beside("while", 1), beside("first-wrong-token", 1)
    assert following is not None
    assert following.name == "do-while"
    assert (none, beside("while", -1), lesson("nothing")) == (None, None, None)


def test_lessons_of_a_topic_follow_each_other() -> None:
    assert [one.name for group in topics().values() for one in group] == NAMES
    assert list(topics())[:2] == ["Loops", "Branches"]
    assert all(len(group) > 1 for group in topics().values())


@pytest.mark.browser
def test_the_menu_of_lessons_closes_and_large_stays(page: Page, server: str) -> None:
    page.goto(f"{server}/?lesson=while")
    expect(page.locator(f"{CANVAS} .box").first).to_be_visible(timeout=LONG)
    page.get_by_text("Large", exact=True).click()
    expect(page).to_have_url(re.compile("type=large"), timeout=LONG)
    page.get_by_role("button", name="Lessons").click()
    entry = page.get_by_role("button", name="9. Branches of different rank")
    entry.click()
    expect(page).to_have_url(re.compile("lesson=ranks&type=large"), timeout=LONG)
    expect(entry).to_be_hidden()
    expect(
        page.get_by_role("checkbox", name="Large").or_(page.get_by_role("switch"))
    ).to_be_checked()
    page.go_back()
    expect(page).to_have_url(re.compile("lesson=while&.*type=large"), timeout=LONG)


def test_a_run_that_has_not_ended_answers_nothing() -> None:
    one = get("while")
    model = loopscope.read_model(sample_of(one).model)
    debugger = loopscope.Debugger(model, bindings(model, inputs_of(one, one.inputs)))
    assert answer(debugger, one.questions[0], one.address) is None
    debugger.step()
    debugger.step()
    assert answer(debugger, one.questions[0], one.address) is None


def test_the_proof_leads_to_the_condition() -> None:
    one = get("while")
    (right,) = answers(one, inputs_of(one, one.inputs))
    assert right is not None
    assert [fact.address for fact in right.proof] == ["main/while_below_goal[10]/body/keep_going"]
    assert "`next_balance` < `goal`, and they were 2104.85 and 2000" in right.verdict


def test_a_branch_is_proved_by_its_condition() -> None:
    one = get("if")
    (right,) = answers(one, inputs_of(one, one.inputs))
    assert right is not None
    assert (
        right.verdict
        == "Took the else branch because `is_sure` was false: it tests `confidence_2` > `enough`, and they were 0.994623 and 0.9999."
    )


def test_what_never_ends_has_no_number() -> None:
    one = get("infinite")
    ended, count = answers(one, inputs_of(one, "no_guard"))
    assert ended is not None
    assert count is not None
    assert (ended.value, count.value) == ("limit", None)
    assert is_right("Never", count)
    assert not is_right("67585", count)


def test_what_is_not_there_is_said_to_be_missing() -> None:
    one = get("swap")
    right = answers(one, inputs_of(one, "one_round"))[1]
    assert right is not None
    assert (right.value, right.words) == (None, "there is none")


@pytest.mark.parametrize(
    ("guess", "value", "right"),
    [
        ("11", 11.0, True),
        (" 11 ", 11.0, True),
        ("11.0", 11.0, True),
        ("10", 11.0, False),
        ("", 11.0, False),
        ("many", 11.0, False),
        ("1,001", 1001.0, True),
        ("1/16", 0.0625, True),
        ("1/0", 0.0625, False),
        ("0.063", 0.0625, True),
        ("0.07", 0.0625, False),
        ("nan", 0.0, False),
        ("then", "then", True),
        ("else", "then", False),
        ("never", None, True),
        ("12", None, False),
    ],
)
def test_predictions_are_compared_as_people_mean_them(
    guess: str, value: float | str | None, right: bool
) -> None:
    assert is_right(guess, QuizAnswer(value, "", "")) is right


def test_a_near_miss_is_named() -> None:
    assert miss("10", QuizAnswer(11.0, "", "")) == "Off by one"
    assert miss("5", QuizAnswer(11.0, "", "")) == "Not quite"
    assert miss("else", QuizAnswer("then", "", "")) == "Not quite"
    assert read_number("0x10") is None


@pytest.mark.parametrize(
    ("name", "texts", "expected"),
    [
        ("while", {"growth": "1.2"}, {"growth": np.float32(1.2)}),
        ("zero", {"go": "False", "trips": " 5"}, {"go": np.bool_(False), "trips": np.int64(5)}),
        ("backwards", {"rewards": "[8, 0, 0]"}, {"rewards": np.array([8, 0, 0], np.float32)}),
        ("growing", {"sequence": "2; 1"}, {"sequence": np.array([2, 1])}),
    ],
)
def test_inputs_are_typed_as_people_type_them(
    name: str, texts: dict[str, str], expected: dict[str, np.ndarray]
) -> None:
    one = get(name)
    base = inputs_of(one, one.inputs)
    found = changed(loopscope.read_model(sample_of(one).model), base, texts)
    for key, array in found.items():
        np.testing.assert_array_equal(array, expected.get(key, base[key]))
        assert array.dtype == base[key].dtype


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("while", {"growth": "fast"}),
        ("for", {"years": "2.5"}),
        ("backwards", {"rewards": "1," * 65}),
        ("slices", {"readings": "1, 2"}),
    ],
)
def test_inputs_that_do_not_fit_are_refused(name: str, texts: dict[str, str]) -> None:
    one = get(name)
    with pytest.raises(InputError):
        changed(loopscope.read_model(sample_of(one).model), inputs_of(one, one.inputs), texts)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32(1.07), "1.07"),
        (np.array(3), "3"),
        (np.array(True), "true"),
        (np.array([8, 0.5], np.float32), "8, 0.5"),
        (np.zeros((2, 2)), None),
    ],
)
def test_inputs_are_shown_as_people_type_them(array: np.ndarray, text: str | None) -> None:
    assert typed(np.asarray(array)) == text


# -- the screen
# ---------------------------------------------------------------------------------------------------------


def page_text(app: AppTest) -> str:
    return " ".join(str(one.proto.body) for one in app.get("html"))


def predict(app: AppTest, *guesses: str) -> AppTest:
    """Fills in the questions' fields in order, and checks."""
    fields = sorted(
        (one for one in [*app.text_input, *app.radio] if str(one.key).startswith("prediction_")),
        key=lambda one: str(one.key),
    )
    for field, guess in zip(fields, guesses, strict=True):
        field.set_value(guess)
    button(app, "Run and check").click().run()
    assert not app.exception
    return app


def linked(app: AppTest) -> dict[str, str]:
    """The address that the page has written."""
    messages = [
        json.loads(one.proto.json)
        for one in app.get("bidi_component")
        if '"moment"' in one.proto.json
    ]
    moment: dict[str, str] = messages[-1]["moment"]
    return moment


def button(app: AppTest, label: str) -> Button:
    return next(one for one in app.button if one.label == label)


def test_a_prediction_comes_true_or_not(opened: Visit) -> None:
    text = page_text(predict(opened(lesson="while"), "11"))
    assert "✓ Right" in text
    assert (
        "it tests <code>next_balance</code> &lt; <code>goal</code>, and they were 2104.85 and 2000"
        in text
    )
    text = page_text(predict(opened(lesson="while"), "10"))
    assert "Off by one" in text
    assert "You said 10." in text


def test_several_questions_are_checked_together(opened: Visit) -> None:
    text = page_text(predict(opened(lesson="zero"), "100", "5", "zero_trip_count"))
    assert text.count("✓ Right") == 2
    assert text.count("Not quite") == 1


def test_nothing_is_revealed_without_a_prediction(opened: Visit) -> None:
    app = predict(opened(lesson="why-seven"), "")
    assert "Predict first, even roughly" in page_text(app)
    assert "7 iterations" not in page_text(app)
    button(app, "Just show me").click().run()
    assert "7 iterations" in page_text(app)
    assert 'class="done' not in page_text(app)


def test_another_input_asks_anew(opened: Visit) -> None:
    app = predict(opened(lesson="why-seven"), "7")
    button(app, "17").click().run()
    assert "You said" not in page_text(app)
    assert "✓ Right" not in page_text(app)
    assert "✓ Right" in page_text(predict(app, "12"))


def test_own_inputs_ask_anew_and_must_fit(opened: Visit) -> None:
    app = opened(lesson="for")
    field = next(one for one in app.text_input if str(one.key).startswith("trial_own_2"))
    field.set_value("7")
    button(app, "Use these").click().run()
    assert page_text(predict(app, "trip_count", "7")).count("✓ Right") == 2
    field = next(one for one in app.text_input if str(one.key).startswith("trial_own_2"))
    field.set_value("seven")
    button(app, "Use these").click().run()
    assert not app.exception
    assert "not a value of type i64" in app.error[0].value


def test_progress_is_kept_from_lesson_to_lesson(opened: Visit) -> None:
    app = predict(opened(lesson="while"), "11")
    button(app, "Next: Do-while: act first, ask later").click().run()
    assert app.query_params["lesson"] == "do-while"
    assert '<i class="done "' in page_text(app)
    app.button("course_previous").click().run()
    assert '<i class="done here"' in page_text(app)
    assert app.button("course_previous").disabled
    app.button("course_leave").click().run()
    assert "1 of 24 lessons done" in page_text(app)
    app.button("course_start").click().run()
    assert app.query_params["lesson"] == "do-while"


def test_the_proof_leads_to_the_moment(opened: Visit) -> None:
    app = predict(opened(lesson="while"), "11")
    button(app, "See keep_going decide").click().run()
    assert "keep_going" in page_text(app)
    assert "iteration 10" in page_text(app)


def test_the_run_goes_on_in_the_debugger(opened: Visit) -> None:
    app = predict(opened(lesson="while"), "11")
    button(app, "Open in the debugger").click().run()
    assert app.query_params["model"] == "sample:while_loop"
    assert any(one.key == "header_close" for one in app.button)


def test_large_type_is_part_of_the_link(opened: Visit) -> None:
    app = opened(lesson="if", type="large")
    assert app.toggle("course_large").value
    assert linked(app)["type"] == "large"
    app.toggle("course_large").set_value(False).run()
    assert "type" not in linked(app)


def test_a_link_opens_a_lesson_on_other_inputs(opened: Visit) -> None:
    assert linked(opened(lesson="while", set="already_there"))["set"] == "already_there"
    assert linked(opened(lesson="do-while", set="no_such_set"))["set"] == "already_there"


def test_a_link_to_no_lesson_is_a_sentence(opened: Visit) -> None:
    assert "no lesson named" in opened(lesson="nothing").error[0].value


@pytest.mark.parametrize("name", NAMES)
def test_every_lesson_opens_and_reveals(opened: Visit, name: str) -> None:
    app = opened(lesson=name)
    button(app, "Just show me").click().run()
    assert not app.exception
    assert not app.error
    assert "could tell" not in page_text(app)


def test_an_answer_beside_the_model_is_an_error() -> None:
    one = get("while")
    debugger = finished(one, inputs_of(one, one.inputs))
    right = answer(debugger, Question("?", "value", "main/nowhere"), one.address)
    assert right is not None
    assert right.value is None
    with pytest.raises(AddressError):
        debugger.value("main/nowhere")


@pytest.mark.browser
def test_a_learner_goes_from_prediction_to_proof_to_the_next_lesson(
    page: Page, server: str
) -> None:
    page.goto(f"{server}/?lesson=why-seven")
    canvas = page.locator(CANVAS)
    expect(canvas.locator(".box.current")).to_be_visible(timeout=LONG)
    card = page.locator(".st-key-prediction")
    card.get_by_role("textbox").fill("8")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Off by one")
    expect(card).to_contain_text("7 iterations")
    rows = page.locator(".st-key-loop_table_rows tbody tr")
    expect(rows.filter(has_text="then")).to_have_count(5)
    page.get_by_role("button", name="17", exact=True).click()
    expect(card.get_by_role("textbox")).to_have_value("")
    card.get_by_role("textbox").fill("12")
    page.get_by_role("button", name="Run and check").click()
    expect(card).to_contain_text("Right")
    page.get_by_role("button", name="See keep_going decide").click()
    expect(canvas.locator(".box.current")).to_contain_text("keep_going")
    page.get_by_role("button", name="Previous").click()
    expect(page).to_have_url(re.compile("lesson=swap"))
    expect(canvas.locator(".box", has_text="lefts_part")).to_be_visible(timeout=LONG)
