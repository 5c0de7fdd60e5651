"""The sample models: small, real, and each with something to learn; one typed way to them for
the app and the tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

_PACKAGE = Path(str(files(__name__)))
FOLDER = _PACKAGE / "models" if (_PACKAGE / "models").is_dir() else _PACKAGE.parent
"""The folder of the models: in the installed package, or beside it in a checkout."""


@dataclass(frozen=True, slots=True)
class InputSet:
    """Values for a sample's inputs, and a sentence saying what they show."""

    name: str
    text: str
    path: Path
    never_ends: bool = False
    """Only a limit stops the run."""
    openvino_differs: bool = False
    """OpenVINO's CPU gives something else; the sample's pitfalls say what."""

    def arrays(self) -> dict[str, np.ndarray]:
        """The inputs, by name."""
        with np.load(self.path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}


@dataclass(frozen=True, slots=True)
class Question:
    """A prediction to make before revealing; a run on ``inputs`` answers it.

    ``asks`` is ``iterations``, ``ended_by`` or ``branch``: that field of the control-flow record at
    ``address``.
    """

    text: str
    inputs: str
    asks: str
    address: str


@dataclass(frozen=True, slots=True)
class Count:
    """How an output tells the number of iterations: its ``length`` along ``axis`` plus
    ``offset``, or its ``value``.
    """

    output: str
    read: str
    offset: int = 0
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers on a sample's card, bodies included. Inputs, outputs and constants are not
    operations.
    """

    operations: int
    loops: int
    ifs: int


SECTIONS = (
    "Start here",
    "Loops",
    "Branches",
    "Sequences and data",
    "From real exporters",
    "Training",
    "Runtimes",
)
"""Headings of the gallery, in order."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One model of the gallery."""

    name: str
    title: str
    card: str
    """One sentence: what a person will see."""
    origin: str
    """The framework, and how the model was made."""
    patterns: tuple[str, ...]
    """Of its control flow, such as ``while``, ``if in a loop``."""
    source: str
    """The framework in one word."""
    teaches: str
    """What it is an example for, in a few words."""
    section: str
    """Its heading in the gallery, one of ``SECTIONS``."""
    counts: Size
    lesson: str
    question: Question
    pitfalls: tuple[str, ...]
    """What runtimes get wrong or do differently here."""
    model: Path
    sets: tuple[InputSet, ...]
    """The first is the one to begin with."""
    address: str
    """The control-flow node that it is about."""
    count: Count | None = None

    @property
    def data(self) -> Path | None:
        """An .npz of many inputs, whose first axis counts them; None where the sample has none."""
        path = self.model.with_name("data.npz")
        return path if path.exists() else None

    def text_of(self, name: str) -> str:
        """The sentence of an input set; empty when there is no set of that name."""
        return next((one.text for one in self.sets if one.name == name), "")

    def picture(self, scheme: str) -> Path | None:
        """The picture of its card in a ``light`` or ``dark`` theme."""
        return _picture(self.name, scheme)


@dataclass(frozen=True, slots=True)
class SampleTrace:
    """A recorded program of the gallery; ``recipes/recorded.py`` wrote it."""

    name: str
    title: str
    card: str
    """A sentence about the content."""
    size: str
    model: Path
    """The file of the trace."""
    other: str
    """Name of the trace to compare with."""

    def picture(self, scheme: str) -> Path | None:
        """Return the picture of the card in a ``light`` or ``dark`` theme."""
        return _picture(self.name, scheme)


@cache
def samples() -> tuple[Sample, ...]:
    """All samples, in the gallery's order."""
    entries = json.loads((_PACKAGE / "catalogue.json").read_text("utf-8"))
    return tuple(_sample(FOLDER / entry["name"], entry) for entry in entries)


def sample(name: str) -> Sample | None:
    return next((one for one in samples() if one.name == name), None)


@cache
def sample_traces() -> tuple[SampleTrace, ...]:
    """Return all traces, in the gallery's order."""
    entries = json.loads((_PACKAGE / "traces.json").read_text("utf-8"))
    return tuple(
        SampleTrace(model=FOLDER / entry.pop("file"), **entry) for entry in map(dict, entries)
    )


def sample_trace(name: str) -> SampleTrace | None:
    return next((trace for trace in sample_traces() if trace.name == name), None)


def _picture(name: str, scheme: str) -> Path | None:
    path = FOLDER / "pictures" / f"{name}-{scheme}.png"
    return path if path.exists() else None


def _sample(folder: Path, entry: Mapping[str, Any]) -> Sample:
    return Sample(
        name=entry["name"],
        title=entry["title"],
        card=entry["card"],
        origin=entry["origin"],
        patterns=tuple(entry["patterns"]),
        source=entry["source"],
        teaches=entry["teaches"],
        section=entry["section"],
        counts=Size(**entry["counts"]),
        lesson=entry["lesson"],
        question=Question(**entry["question"]),
        pitfalls=tuple(entry["pitfalls"]),
        model=folder / "model.xml",
        sets=tuple(
            InputSet(path=folder / "inputs" / f"{one['name']}.npz", **one) for one in entry["sets"]
        ),
        address=entry["address"],
        count=Count(**entry["count"]) if "count" in entry else None,
    )
