"""What a run says to a question of a lesson, with the proof; answers are computed, never stored."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import loopscope
from loopscope.errors import EngineError
from loopscope.executor import LoopRegion, LoopTable
from loopscope.explain import Fact, Verdict, region_at, verdict
from loopscope.view import scalar_text
from loopscope_app.describe.lessons import Question
from loopscope_app.describe.wording import name_of, times

NEVER = frozenset({"never", "no", "none", "∞", "inf", "infinity", "infinite", "endless", "-"})
"""What a person may type for a number that does not exist, such as the iterations of an endless
loop.
"""
CLOSE = 0.01
"""A predicted value may be off by so much of itself: the point is not arithmetic."""
_OPEN = (None, "stopped", "error")


@dataclass(frozen=True, slots=True)
class QuizAnswer:
    """What is right, and why."""

    value: float | str | None
    """A number, or the name of an ending or branch; None when there is no such number, as of a
    loop that never ends.
    """
    words: str
    """The answer as a person gives it."""
    because: str
    """A sentence on this value, with names of the model in backticks."""
    verdict: str = ""
    """A sentence on the whole loop, which several questions may share."""
    proof: tuple[Fact, ...] = ()


def answer(debugger: loopscope.Debugger, question: Question, about: str) -> QuizAnswer | None:
    """The answer that the run holds; None while it does not. ``about`` is the loop or If of the
    lesson.
    """
    try:
        match question.asks:
            case "branch":
                return _branch(debugger, question.address)
            case "iterations" | "ended_by":
                found = verdict(debugger, question.address)
                return None if found.record.ended_by in _OPEN else _of_loop(found, question)
            case "iterations_in_all":
                return _in_all(debugger, question.address, about)
            case "value" | "length":
                return _of_tensor(debugger, question, about)
    except EngineError as error:
        if debugger.state not in ("finished", "limit"):
            return None
        why = (
            str(error)
            if debugger.state == "finished"
            else f"The run ended before `{name_of(question.address)}` was computed."
        )
        return QuizAnswer(None, "there is none", why)


def _of_loop(found: Verdict, question: Question) -> QuizAnswer:
    endless = found.record.ended_by == "limit"
    if question.asks == "ended_by":
        return QuizAnswer(str(found.record.ended_by), "", "", found.sentence, found.proof)
    count = found.record.iterations or 0
    return QuizAnswer(
        None if endless else float(count),
        "it never ends by itself" if endless else times(count),
        "",
        found.sentence,
        found.proof,
    )


def _in_all(debugger: loopscope.Debugger, static: str, about: str) -> QuizAnswer | None:
    """The iterations of all executions of a nested loop together."""
    outer = verdict(debugger, about)
    if outer.record.ended_by in _OPEN:
        return None
    region = region_at(debugger.plan, static)[1].region
    table = (
        debugger.machine.recording.tables[region.table] if isinstance(region, LoopRegion) else None
    )
    counts = np.asarray(table.counts if isinstance(table, LoopTable) else [], dtype=np.int64)
    total, never = int(counts.sum()), int((counts == 0).sum())
    runs = f"`{name_of(static)}` began {_runs(len(counts))}" + (
        f", and {never:,} of them had no iteration" if never else ""
    )
    most = f"; the longest took {int(counts.max()):,}" if len(counts) else ""
    return QuizAnswer(float(total), times(total), f"{runs}{most}.")


def _runs(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _of_tensor(debugger: loopscope.Debugger, question: Question, about: str) -> QuizAnswer | None:
    array = np.asarray(debugger.value(question.address))
    name = f"`{name_of(question.address)}`"
    told = verdict(debugger, about).sentence
    if question.asks == "length":
        return QuizAnswer(
            float(array.shape[0]),
            f"{array.shape[0]:,}",
            f"{name} has the shape {list(array.shape)}.",
            told,
        )
    if question.index and any(
        position >= length for position, length in zip(question.index, array.shape, strict=True)
    ):
        return QuizAnswer(None, "there is none", f"{name} has the shape {list(array.shape)}.", told)
    element = array[question.index] if question.index else array.reshape(-1)[0]
    where = f"[{', '.join(map(str, question.index))}]" if question.index else ""
    text = scalar_text(element)
    return QuizAnswer(float(element), text, f"`{name_of(question.address)}{where}` = {text}.", told)


def _branch(debugger: loopscope.Debugger, address: str) -> QuizAnswer | None:
    if debugger.record(address) is None:
        return None
    found = verdict(debugger, address)
    return QuizAnswer(
        found.record.branch, f"the {found.record.branch} branch", "", found.sentence, found.proof
    )


def is_right(guess: str, right: QuizAnswer) -> bool:
    """Whether a prediction, as it was typed or chosen, holds."""
    if isinstance(right.value, str):
        return guess == right.value
    if right.value is None:
        return guess.strip().lower() in NEVER
    number = read_number(guess)
    return number is not None and math.isclose(
        number, right.value, rel_tol=CLOSE if right.value % 1 else 0, abs_tol=1e-9
    )


def is_number(guess: str) -> bool:
    """Whether a guess can be a number's prediction: a number, or a word for that there is none."""
    return read_number(guess) is not None or guess.strip().lower() in NEVER


def read_number(text: str) -> float | None:
    """A number as people type it; None for everything else.

    >>> read_number(" 1,000 "), read_number("0.0625"), read_number("1/16"), read_number("many")
    (1000.0, 0.0625, 0.0625, None)
    """
    above, _, below = text.replace(",", "").partition("/")
    try:
        number = float(above) / (float(below) if below else 1.0)
    except (ValueError, ZeroDivisionError):
        return None
    return number if math.isfinite(number) else None


def miss(guess: str, right: QuizAnswer) -> str:
    """What to say of a wrong prediction."""
    number = read_number(guess)
    if isinstance(right.value, float) and number is not None and abs(number - right.value) == 1:
        return "Off by one"
    return "Not quite"
