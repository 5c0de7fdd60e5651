"""The lessons of the course in order, with questions to predict, and the first steps of a user."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import loopscope

FILE = Path(__file__).parents[1] / "assets" / "lessons.toml"

Asks = Literal[
    "iterations", "iterations_in_all", "ended_by", "branch", "value", "length", "first_difference"
]


@dataclass(frozen=True, slots=True)
class Question:
    """A prediction. Only a run knows the answer, so the question is valid for every input."""

    text: str
    asks: Asks
    address: str
    """The loop or If of the question; for ``value`` and ``length`` the tensor, with iteration
    numbers if it is inside a loop; for ``first_difference`` the value in all iterations.
    """
    index: tuple[int, ...] = ()
    """Position of the element; empty for a tensor with a single element."""
    options: tuple[str, ...] = ()
    """The endings or branches to choose from."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An experiment: other inputs, and why they are worth a prediction."""

    label: str
    text: str
    changes: Mapping[str, str]
    """New values by input, as a user would type them."""
    inputs: str
    """Name of the input set to start from."""


@dataclass(frozen=True, slots=True)
class Pitfall:
    """A different behaviour of a real runtime."""

    runtime: str
    text: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """A sample with explanations, questions and experiments."""

    name: str
    """Name in links."""
    title: str
    topic: str
    """Heading of the list of lessons; lessons of a topic follow each other."""
    sample: str
    """Name of a sample or of a sample trace."""
    inputs: str
    """The first input set; empty for a trace."""
    address: str
    """The loop or If of the lesson."""
    text: tuple[str, ...]
    """Short paragraphs, with names of the model in backticks."""
    code: str
    """The same program as a programmer would write it."""
    questions: tuple[Question, ...]
    trials: tuple[Trial, ...]
    pitfalls: tuple[Pitfall, ...]


@cache
def lessons() -> tuple[Lesson, ...]:
    """Return all lessons in teaching order."""
    return tuple(_lesson(entry) for entry in tomllib.loads(FILE.read_text("utf-8"))["lesson"])


def topics() -> dict[str, tuple[Lesson, ...]]:
    """Return the lessons by topic, in teaching order."""
    return {
        topic: tuple(group) for topic, group in groupby(lessons(), key=lambda entry: entry.topic)
    }


def lesson(name: str) -> Lesson | None:
    return next((candidate for candidate in lessons() if candidate.name == name), None)


def number(name: str) -> int:
    """Return the position of a lesson in the course, from 1; 0 if the lesson does not exist."""
    return next(
        (position for position, candidate in enumerate(lessons(), 1) if candidate.name == name), 0
    )


def beside(name: str, distance: int) -> Lesson | None:
    """Return the lesson at a distance from another one, or None outside of the course."""
    position = number(name) - 1 + distance
    return lessons()[position] if 0 <= position < len(lessons()) else None


def _lesson(entry: Mapping[str, Any]) -> Lesson:
    return Lesson(
        name=entry["name"],
        title=entry["title"],
        topic=entry["topic"],
        sample=entry["sample"],
        inputs=entry.get("inputs", ""),
        address=entry["address"],
        text=tuple(entry["text"]),
        code=entry["code"],
        questions=tuple(
            Question(
                item["text"],
                item["asks"],
                item["address"],
                tuple(item.get("index", ())),
                tuple(item.get("options", ())),
            )
            for item in entry["questions"]
        ),
        trials=tuple(
            Trial(
                item["label"],
                item["text"],
                item.get("changes", {}),
                item.get("inputs", entry.get("inputs", "")),
            )
            for item in entry.get("trials", ())
        ),
        pitfalls=tuple(Pitfall(**item) for item in entry["pitfalls"]),
    )


FIRST_SAMPLE = "collatz"
FIRST_SET, OTHER_SET = "three", "seventeen"
CONDITION = "main/while_not_one[3]/body/keep_going"
"""The value that the third step sets to false."""
LOOP = "main/while_not_one"
ALL_STEPS = 4
PRESSES = 3
"""Number of operations to run in the first step."""


def steps_done(debugger: loopscope.Debugger, *, by_hand: bool) -> int:
    """Return how many first steps a run shows as done; ``by_hand`` if a value was set."""
    cursor = debugger.cursor
    if cursor.kind == "finished":
        return 3 if by_hand else 2
    return int(cursor.step >= PRESSES)
