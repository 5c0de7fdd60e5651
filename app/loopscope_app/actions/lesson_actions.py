"""What clicks on the Learn screen do: the only writers of the session's course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import loopscope
from loopscope.errors import InputError, ReadError, shorten
from loopscope.ir import Model, Signature
from loopscope_app.actions import models, moves, report_errors
from loopscope_app.describe import lessons
from loopscope_app.describe.answers import is_number
from loopscope_app.describe.input_text import parse_scalar
from loopscope_app.describe.lessons import Lesson, Trial
from loopscope_app.describe.signatures import signatures
from loopscope_app.state import open_model as opening
from loopscope_app.state.lesson_progress import Learning
from loopscope_app.state.user_session import UserSession, current, widget

LONGEST_LIST = 64
"""Numbers of a list that may be typed."""


@report_errors.told
def open_lesson(name: str, input_set: str = "") -> None:
    """A lesson at its beginning, or on another input set of its sample; ``ReadError`` when there
    is no such lesson.
    """
    found = lessons.lesson(name)
    if found is None:
        raise ReadError(f"there is no lesson named {shorten(repr(name), 60)}")
    session, opened = current(), opening.open_sample(found.sample)
    models.show_model(opened, input_set if input_set in opened.sets else found.inputs)
    session.learning.lesson = found.name
    session.learning.restart()


def go_on() -> None:
    """The course where it was left: at its first lesson that is not done."""
    done = current().learning.done
    open_lesson(
        next(
            (one.name for one in lessons.lessons() if one.name not in done),
            lessons.lessons()[0].name,
        )
    )


def leave() -> None:
    """Back to the gallery."""
    models.close()
    current().learning.lesson = ""


def to_debugger() -> None:
    """The whole debugger, at the same moment of the same run."""
    current().learning.lesson = ""


def enlarge(key: str) -> None:
    current().learning.large = bool(widget(key))


def check(keys: Sequence[str]) -> None:
    """Runs to the end and compares with what the widgets hold."""
    learning = current().learning
    learning.guesses = tuple(str(widget(key) or "").strip() for key in keys)
    learning.hint = _missing(learning)
    if learning.hint:
        return
    learning.done.add(learning.lesson)
    _reveal()


def _missing(learning: Learning) -> str:
    """What keeps the predictions from being checked; empty when they can be."""
    if not all(learning.guesses):
        return "Predict first, even roughly: a wrong guess is easy to remember."
    found = lessons.lesson(learning.lesson)
    for question, guess in zip(found.questions if found else (), learning.guesses, strict=False):
        if not question.options and not is_number(guess):
            return f"{shorten(repr(guess), 40)} is not a number: write one such as 7 or 0.5, or 'never' for what does not come."
    return ""


def show_me() -> None:
    """Reveals without a prediction."""
    current().learning.guesses = ()
    _reveal()


def _reveal() -> None:
    current().learning.revealed = True
    moves.go(_to_the_end)


def _to_the_end(debugger: loopscope.Debugger) -> None:
    debugger.run()


@report_errors.told
def again() -> None:
    """The same inputs from the first moment, with nothing predicted."""
    session = current()
    _use(session, session.model.inputs, session.model.input_set)


@report_errors.told
def try_it(trial: Trial) -> None:
    """The inputs of an experiment; what was predicted before does not count for them."""
    session = current()
    if session.model.opened:
        base = session.model.opened.sets[trial.inputs]
        _use(
            session,
            changed(session.model.opened.model, base, trial.changes),
            "" if trial.changes else trial.inputs,
        )


@report_errors.told
def use_typed(keys: Mapping[str, str]) -> None:
    """The inputs that text fields hold, by input name."""
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
    """Inputs with some of them replaced by what was typed; ``InputError`` says what is wrong
    with it.
    """
    found = signatures(model)
    return {**base, **{name: _parse(text, found[name]) for name, text in texts.items()}}


def _parse(text: str, one: Signature) -> np.ndarray:
    if one.shape.rank == 0:
        return parse_scalar(
            text.strip().lower() if text.strip().lower() in ("true", "false") else text.strip(), one
        )
    items = [item for item in text.replace(";", ",").strip("[] ").split(",") if item.strip()]
    if len(items) > LONGEST_LIST or not one.shape.contains((len(items),)):
        raise InputError(
            f"input '{one.name}' takes a list of shape {one.shape}: numbers with commas between them, at most {LONGEST_LIST}"
        )
    return np.array(
        [parse_scalar(item.strip(), one) for item in items],
        (one.element_type and one.element_type.dtype) or np.float32,
    )


def typed(array: np.ndarray) -> str | None:
    """An input as a user would type it; None for what is too large for a text field."""
    if array.ndim > 1 or array.size > LONGEST_LIST or array.dtype.names:
        return None
    items = [
        str(item).lower() if isinstance(item, bool) else _short(item)
        for item in array.reshape(-1).tolist()
    ]
    return ", ".join(items)


def _short(item: object) -> str:
    return f"{item:.6g}" if isinstance(item, float) else str(item)


def opened_lesson(session: UserSession) -> Lesson | None:
    """The lesson on the screen."""
    return lessons.lesson(session.learning.lesson)
