"""What the Learn screen teaches: the lessons in their order, each with a sample, questions to
predict and things to try.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

FILE = Path(__file__).parents[1] / "assets" / "lessons.toml"

Asks = Literal["iterations", "iterations_in_all", "ended_by", "branch", "value", "length"]


@dataclass(frozen=True, slots=True)
class Question:
    """Something to predict; only a run knows the answer, so the question holds for every input."""

    text: str
    asks: Asks
    address: str
    """The loop or If asked about; for ``value`` and ``length`` the tensor, with iteration
    numbers when it is inside a loop.
    """
    index: tuple[int, ...] = ()
    """Which element of the tensor; empty for one that has a single element."""
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
    """Name of the input set to begin from."""


@dataclass(frozen=True, slots=True)
class Pitfall:
    """What a real runtime does differently."""

    runtime: str
    text: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """A sample, what to see in it, what to predict, what to try."""

    name: str
    """As links have it."""
    title: str
    sample: str
    inputs: str
    """The input set to begin with."""
    address: str
    """The loop or If that it is about."""
    text: tuple[str, ...]
    """Short paragraphs, with names of the model in backticks."""
    code: str
    """The same thing as a programmer would write it."""
    questions: tuple[Question, ...]
    trials: tuple[Trial, ...]
    pitfalls: tuple[Pitfall, ...]


@cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons, in teaching order."""
    return tuple(_lesson(entry) for entry in tomllib.loads(FILE.read_text("utf-8"))["lesson"])


def lesson(name: str) -> Lesson | None:
    return next((one for one in lessons() if one.name == name), None)


def number(name: str) -> int:
    """The place of a lesson in the course, from 1; 0 when there is no such lesson."""
    return next((position for position, one in enumerate(lessons(), 1) if one.name == name), 0)


def beside(name: str, distance: int) -> Lesson | None:
    """The lesson so many places further on; None past either end."""
    position = number(name) - 1 + distance
    return lessons()[position] if 0 <= position < len(lessons()) else None


def _lesson(entry: Mapping[str, Any]) -> Lesson:
    return Lesson(
        name=entry["name"],
        title=entry["title"],
        sample=entry["sample"],
        inputs=entry["inputs"],
        address=entry["address"],
        text=tuple(entry["text"]),
        code=entry["code"],
        questions=tuple(
            Question(
                one["text"],
                one["asks"],
                one["address"],
                tuple(one.get("index", ())),
                tuple(one.get("options", ())),
            )
            for one in entry["questions"]
        ),
        trials=tuple(
            Trial(
                one["label"],
                one["text"],
                one.get("changes", {}),
                one.get("inputs", entry["inputs"]),
            )
            for one in entry["trials"]
        ),
        pitfalls=tuple(Pitfall(**one) for one in entry["pitfalls"]),
    )
