"""Actions of the course and of the first steps: the only code that changes their progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import loopscope
from loopscope.errors import InputError, ReadError, shorten
from loopscope.ir import Model, Signature, significant
from loopscope_app.actions import models, moves, report_errors, side_by_side, views, what_if_changes
from loopscope_app.actions.side_by_side import compare_with
from loopscope_app.describe import lessons
from loopscope_app.describe.answers import is_number
from loopscope_app.describe.input_parsing import parse_scalar
from loopscope_app.describe.lessons import (
    ALL_STEPS,
    CONDITION,
    FIRST_SET,
    OTHER_SET,
    Lesson,
    Trial,
    steps_done,
)
from loopscope_app.describe.signatures import signatures
from loopscope_app.state import open_model as opening
from loopscope_app.state.user_session import Learning, UserSession, current, place, widget
from loopscope_app.state.view_choices import COMPARE_KIND, COMPARE_WITH, MODEL

LONGEST_LIST = 64
"""Length limit of a typed list of numbers."""


@report_errors.show_errors
def open_lesson(name: str, input_set: str = "") -> None:
    """Open a lesson at its beginning, or on another input set of its sample.

    Raise ``ReadError`` if the lesson does not exist.
    """
    lesson = lessons.lesson(name)
    if lesson is None:
        raise ReadError(f"there is no lesson named {shorten(repr(name), 60)}")
    session, opened = current(), opening.open_sample(lesson.sample)
    models.show_model(opened, input_set if input_set in opened.sets else lesson.inputs)
    session.learning.lesson = lesson.name
    session.learning.restart()


def go_on() -> None:
    """Open the first lesson that is not done."""
    done = current().learning.done
    open_lesson(
        next(
            (lesson.name for lesson in lessons.lessons() if lesson.name not in done),
            lessons.lessons()[0].name,
        )
    )


def leave() -> None:
    """Go back to the gallery."""
    models.close()
    current().learning.lesson = ""


def to_debugger() -> None:
    """Show the whole debugger at the same step of the same run."""
    current().learning.lesson = ""


def compare_recordings() -> None:
    """Show the debugger's comparison of a trace with the other trace of its lesson."""
    to_debugger()
    place(COMPARE_KIND, MODEL)
    views.show("compare")
    side_by_side.compare_with(MODEL)


def enlarge(key: str) -> None:
    current().learning.large = bool(widget(key))


def check(keys: Sequence[str]) -> None:
    """Run to the end and compare the result with the predictions in the widgets."""
    learning = current().learning
    learning.guesses = tuple(str(widget(key) or "").strip() for key in keys)
    learning.hint = _refusal(learning)
    if learning.hint:
        return
    learning.done.add(learning.lesson)
    _reveal()


def _refusal(learning: Learning) -> str:
    """Return the reason why the predictions cannot be checked, or an empty text."""
    if not all(learning.guesses):
        return "Predict first, even roughly: a wrong guess is easy to remember."
    lesson = lessons.lesson(learning.lesson)
    for question, guess in zip(lesson.questions if lesson else (), learning.guesses, strict=False):
        if not question.options and not is_number(guess):
            return (
                f"{shorten(repr(guess), 40)} is not a number: expected one such as 7 or 0.5, "
                "or 'never' if it does not happen."
            )
    return ""


def show_me() -> None:
    """Reveal the answer without a prediction."""
    current().learning.guesses = ()
    _reveal()


def _reveal() -> None:
    current().learning.revealed = True
    moves.go(_to_the_end)


def _to_the_end(debugger: loopscope.Debugger) -> None:
    debugger.run()


@report_errors.show_errors
def again() -> None:
    """Restart the same inputs from the first step, without predictions."""
    session = current()
    _use(session, session.model.inputs, session.model.input_set)


@report_errors.show_errors
def try_it(trial: Trial) -> None:
    """Open the inputs of an experiment; earlier predictions are dropped."""
    session = current()
    if session.model.opened:
        base = session.model.opened.sets[trial.inputs]
        _use(
            session,
            changed(session.model.opened.model, base, trial.changes),
            "" if trial.changes else trial.inputs,
        )


@report_errors.show_errors
def use_typed(keys: Mapping[str, str]) -> None:
    """Use the inputs that text fields hold; ``keys`` maps input names to widgets."""
    session = current()
    if session.model.opened:
        texts = {name: str(widget(key)) for name, key in keys.items() if widget(key) is not None}
        _use(session, changed(session.model.opened.model, session.model.inputs, texts))


def _use(session: UserSession, inputs: Mapping[str, np.ndarray], name: str = "") -> None:
    models.use_inputs(inputs, name)
    session.learning.restart()


def changed(
    model: Model, base: Mapping[str, np.ndarray], texts: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Return inputs with some of them replaced by typed texts. Raise ``InputError`` for a bad
    text.
    """
    by_name = signatures(model)
    return {**base, **{name: _parse(text, by_name[name]) for name, text in texts.items()}}


def _parse(text: str, signature: Signature) -> np.ndarray:
    if signature.shape.rank == 0:
        return parse_scalar(
            text.strip().lower() if text.strip().lower() in ("true", "false") else text.strip(),
            signature,
        )
    items = [item for item in text.replace(";", ",").strip("[] ").split(",") if item.strip()]
    if len(items) > LONGEST_LIST or not signature.shape.contains((len(items),)):
        raise InputError(
            f"input '{signature.name}': expected a list of shape {signature.shape}, "
            f"at most {LONGEST_LIST} numbers separated by commas"
        )
    return np.array(
        [parse_scalar(item.strip(), signature) for item in items],
        (signature.element_type and signature.element_type.dtype) or np.float32,
    )


def typed(array: np.ndarray) -> str | None:
    """Return an input as a user would type it, or None if it is too large for a text field."""
    if array.ndim > 1 or array.size > LONGEST_LIST or array.dtype.names:
        return None
    items = [
        str(item).lower() if isinstance(item, bool) else _number_text(item)
        for item in array.reshape(-1).tolist()
    ]
    return ", ".join(items)


def _number_text(item: object) -> str:
    return f"{significant(item, 6)}" if isinstance(item, float) else str(item)


def opened_lesson(session: UserSession) -> Lesson | None:
    """Return the lesson on the screen."""
    return lessons.lesson(session.learning.lesson)


def dismiss() -> None:
    """Remove the card for the rest of the session."""
    learning = current().learning
    learning.first_run, learning.first_steps = False, ALL_STEPS


def note_progress(session: UserSession) -> None:
    """Count the steps that the run shows as done. A step that was done stays done."""
    debugger = session.run.at_rest
    if debugger is not None and session.learning.first_steps < ALL_STEPS:
        done = steps_done(debugger, by_hand=bool(session.run.changes))
        session.learning.first_steps = max(session.learning.first_steps, done)


@report_errors.show_errors
def make_false() -> None:
    """Run with the condition of iteration 3 set to false, and select it."""
    session = current()
    what_if_changes.restore(session, {CONDITION: np.bool_(False)})
    moves.go(_to_the_end)
    session.canvas.selected = CONDITION


@report_errors.show_errors
def compare_inputs() -> None:
    """Run the first inputs again without changes, and compare them with the other ones."""
    session = current()
    models.choose_set_named(FIRST_SET)
    moves.go(_to_the_end)
    session.canvas.selected = ""
    session.learning.first_steps = ALL_STEPS
    place(COMPARE_WITH, OTHER_SET)
    views.show("compare")
    compare_with(OTHER_SET)
