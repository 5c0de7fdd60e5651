"""Answers to the questions of a lesson, computed from a run, with the proof."""

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
from loopscope_samples import sample_traces

NEVER = frozenset({"never", "no", "none", "∞", "inf", "infinity", "infinite", "endless", "-"})
"""Words that a user may type for a number that does not exist, such as the iterations of an endless
loop.
"""
CLOSE = 0.01
"""Accepted relative error of a predicted value: the question is not about arithmetic."""
_NOT_ENDED = (None, "stopped", "error")


@dataclass(frozen=True, slots=True)
class QuizAnswer:
    """The right answer and its reason."""

    value: float | str | None
    """A number, or the name of an ending or branch; None if the number does not exist, as for a
    loop that never ends.
    """
    words: str
    """The answer as a person writes it."""
    because: str
    """A sentence about this value, with names of the model in backticks."""
    verdict: str = ""
    """A sentence about the whole loop, which several questions may share."""
    proof: tuple[Fact, ...] = ()


def answer(debugger: loopscope.Debugger, question: Question, about: str) -> QuizAnswer | None:
    """Return the answer that the run provides, or None if the run did not reach it yet.

    ``about`` is the address of the loop or If of the lesson.
    """
    try:
        match question.asks:
            case "branch":
                return _branch_answer(debugger, question.address)
            case "iterations" | "ended_by":
                result = verdict(debugger, question.address)
                return (
                    None if result.record.ended_by in _NOT_ENDED else _loop_answer(result, question)
                )
            case "iterations_in_all":
                return _total_answer(debugger, question.address, about)
            case "value" | "length":
                return _tensor_answer(debugger, question, about)
            case "first_difference":
                return _difference_answer(debugger, question)
    except EngineError as error:
        if debugger.state not in ("finished", "limit"):
            return None
        reason = (
            str(error)
            if debugger.state == "finished"
            else f"The run ended before `{name_of(question.address)}` was computed."
        )
        return QuizAnswer(None, "there is none", reason)


def _loop_answer(result: Verdict, question: Question) -> QuizAnswer:
    endless = result.record.ended_by == "limit"
    if question.asks == "ended_by":
        return QuizAnswer(str(result.record.ended_by), "", "", result.sentence, result.proof)
    count = result.record.iterations or 0
    return QuizAnswer(
        None if endless else float(count),
        "it never ends" if endless else times(count),
        "",
        result.sentence,
        result.proof,
    )


def _total_answer(debugger: loopscope.Debugger, static: str, about: str) -> QuizAnswer | None:
    """Return the total number of iterations of all executions of a nested loop."""
    outer = verdict(debugger, about)
    if outer.record.ended_by in _NOT_ENDED:
        return None
    region = region_at(debugger.plan, static)[1].region
    table = (
        debugger.machine.recording.tables[region.table] if isinstance(region, LoopRegion) else None
    )
    counts = np.asarray(table.counts if isinstance(table, LoopTable) else [], dtype=np.int64)
    total, never = int(counts.sum()), int((counts == 0).sum())
    runs = f"`{name_of(static)}` started {_times_text(len(counts))}" + (
        f", {never:,} without an iteration" if never else ""
    )
    longest = f"; the longest took {int(counts.max()):,}" if len(counts) else ""
    return QuizAnswer(float(total), times(total), f"{runs}{longest}.")


def _times_text(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _tensor_answer(
    debugger: loopscope.Debugger, question: Question, about: str
) -> QuizAnswer | None:
    array = np.asarray(debugger.value(question.address))
    name = f"`{name_of(question.address)}`"
    sentence = verdict(debugger, about).sentence
    if question.asks == "length":
        return QuizAnswer(
            float(array.shape[0]),
            f"{array.shape[0]:,}",
            f"{name} has the shape {list(array.shape)}.",
            sentence,
        )
    if question.index and any(
        position >= length for position, length in zip(question.index, array.shape, strict=True)
    ):
        return QuizAnswer(
            None, "there is none", f"{name} has the shape {list(array.shape)}.", sentence
        )
    element = array[question.index] if question.index else array.reshape(-1)[0]
    index = f"[{', '.join(map(str, question.index))}]" if question.index else ""
    text = scalar_text(element)
    return QuizAnswer(
        float(element), text, f"`{name_of(question.address)}{index}` = {text}.", sentence
    )


def _difference_answer(debugger: loopscope.Debugger, question: Question) -> QuizAnswer | None:
    """Return the first iteration in which a value of a sample trace differs from the other trace.

    The traces are small, so the answer is computed while the screen is drawn.
    """
    other = next(
        trace.other for trace in sample_traces() if trace.model.samefile(debugger.model.file)
    )
    reference = next(trace.model for trace in sample_traces() if trace.name == other)
    result = loopscope.drift(debugger, loopscope.load(reference))
    first = next((pair.first for pair in result.pairs if pair.one == question.address), None)
    if first is None or first.iteration is None:
        return QuizAnswer(None, "it never differs", "", result.sentence)
    return QuizAnswer(float(first.iteration), f"at token {first.iteration:,}", "", result.sentence)


def _branch_answer(debugger: loopscope.Debugger, address: str) -> QuizAnswer | None:
    if debugger.record(address) is None:
        return None
    result = verdict(debugger, address)
    return QuizAnswer(
        result.record.branch,
        f"the {result.record.branch} branch",
        "",
        result.sentence,
        result.proof,
    )


def is_right(guess: str, right: QuizAnswer) -> bool:
    """Return True if a prediction, as it was typed or chosen, is right."""
    if isinstance(right.value, str):
        return guess == right.value
    if right.value is None:
        return guess.strip().lower() in NEVER
    number = read_number(guess)
    return number is not None and math.isclose(
        number, right.value, rel_tol=CLOSE if right.value % 1 else 0, abs_tol=1e-9
    )


def is_number(guess: str) -> bool:
    """Return True if a guess is a number, or a word for a number that does not exist."""
    return read_number(guess) is not None or guess.strip().lower() in NEVER


def read_number(text: str) -> float | None:
    """Return a typed number; None for any other text.

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
    """Return the comment on a wrong prediction."""
    number = read_number(guess)
    if isinstance(right.value, float) and number is not None and abs(number - right.value) == 1:
        return "Off by one"
    return "Not quite"
