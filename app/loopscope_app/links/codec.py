"""Conversion of a moment to the parameters of the page's address, and back, within length limits.

Parameters that earlier versions wrote are read in the words of this version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.debug import Pause
from loopscope.ir import ROOT
from loopscope_app.describe.gradients import Backward

SAMPLE = "sample:"
"""Prefix of a sample's name, in the field that otherwise is the path of a model."""
_LARGE_TYPE = "large"
_MAX_LENGTH = 1200
"""Length limit of a parameter with a list or a table."""
LONGEST_QUESTION = 400
"""Length limit of a formula for the trace in an address."""
LONGEST_RUNS = 400
"""Length limit of the description of the inputs of many runs."""
MOST = 20
"""Limit of breakpoints, and of watches, in an address."""


@dataclass(frozen=True, slots=True)
class Window:
    """An unrolled loop: iterations side by side."""

    address: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Parameters of a link that have an unexpected value."""

    expected: str
    """Description of the expected value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Content of an address. It is untrusted."""

    model: str = ""
    """``sample:NAME`` or a path."""
    lesson: str = ""
    large: bool = False
    """True for text that is readable from the last row of a lecture hall."""
    backward: Backward | Unreadable | None = None
    """The gradient of the model that is shown instead of the model."""
    opened: tuple[str | Unreadable, ...] = ()
    """Addresses of operators that are opened as loops."""
    input_set: str = ""
    changes: Mapping[str, Any] | Unreadable = field(default_factory=dict[str, Any])
    """Values set by hand, by address: numbers, or nested lists of numbers."""
    step: str = ""
    """A step number, or the address of a moment."""
    node: str = ""
    """Address that the inspector is pinned to."""
    body: str = ""
    """The drawn graph; empty for the main graph."""
    unrolled: tuple[Window | Unreadable, ...] = ()
    breakpoints: tuple[Pause | Unreadable, ...] = ()
    watches: tuple[str | Unreadable, ...] = ()
    looks: Mapping[str, str] = field(default_factory=dict[str, str])
    """Views that are not the defaults. After reading, all parameters of the address; a view ignores
    unknown ones.
    """
    question: str = ""
    """Formula for the trace."""
    view: str = ""
    """Word of the shown view; empty for the default. After reading, any text."""
    runs: str = ""
    """Description of the inputs of many runs."""
    other_set: str = ""
    """Input set of the other run in Compare."""


def written(link: Link) -> dict[str, str]:
    """Return the parameters of a link without empty and too long ones."""
    lesson = link.lesson
    windows = [
        [window.address, window.first, window.count]
        for window in link.unrolled
        if isinstance(window, Window)
    ]
    parameters = {
        "lesson": lesson,
        "type": _LARGE_TYPE if lesson and link.large else "",
        "model": "" if lesson else link.model,
        "backward": _packed(_gradient(link.backward)),
        "open": _packed(_with_room(_texts(link.opened))),
        "set": link.input_set,
        "whatif": "" if isinstance(link.changes, Unreadable) else _packed(_plain(link.changes)),
        "step": link.step,
        "node": link.node,
        "body": link.body if link.body != ROOT else "",
        "unroll": _packed(windows),
        "breakpoints": _packed(_with_room(_pauses(link.breakpoints))),
        "watches": _packed(_with_room(_texts(link.watches))),
        **link.looks,
        "ask": link.question if len(link.question) <= LONGEST_QUESTION else "",
        "view": link.view,
        "other": link.other_set if len(link.other_set) <= LONGEST_RUNS else "",
        "runs": link.runs if len(link.runs) <= LONGEST_RUNS else "",
    }
    return {name: text for name, text in parameters.items() if text}


def read(parameters: Mapping[str, str]) -> Link:
    """Return the link that query parameters describe. They are untrusted and checked."""
    parameters = in_current_words(parameters)

    def text(name: str) -> str:
        return parameters.get(name, "")

    return Link(
        model=text("model"),
        lesson=text("lesson"),
        large=text("type") == _LARGE_TYPE,
        backward=_backward(text("backward")),
        opened=tuple(map(_operator, _listed(text("open")))),
        input_set=text("set"),
        changes=_changes(text("whatif")),
        step=text("step"),
        node=text("node"),
        body=text("body"),
        unrolled=tuple(map(_window, _listed(text("unroll")))),
        breakpoints=tuple(map(_pause, _listed(text("breakpoints")))),
        watches=tuple(map(_watch, _listed(text("watches")))),
        looks=parameters,
        question=text("ask")[:LONGEST_QUESTION],
        view=text("view"),
        runs=text("runs")[:LONGEST_RUNS],
        other_set=text("other")[:LONGEST_RUNS],
    )


def has_room_for(backward: Backward) -> bool:
    """Return True if an address has room for the names of a gradient."""
    return bool(_packed(_gradient(backward)))


def has_room(changes: Mapping[str, Any]) -> bool:
    """Return True if an address has room for these changes."""
    return bool(_packed(_plain(changes)))


def beyond(items: Sequence[Pause] | Sequence[str], what: str) -> str:
    """Return a note about breakpoints or watches that an address has no room for, or an empty text.

    >>> beyond(["a"] * 21, "watches")
    "The page's link has room for the first 20 of these 21 watches: the link leaves the others out."
    """
    everything = [*_pauses(items), *_texts(items)]
    count = len(_with_room(everything))
    if count == len(everything):
        return ""
    room = f"the first {count}" if count else "none"
    return (
        f"The page's link has room for {room} of these {len(everything):,} {what}: "
        "the link leaves the others out."
    )


def _pauses(items: Sequence[object]) -> list[object]:
    return [
        [item.pattern, item.condition, item.kind, item.on]
        for item in items
        if isinstance(item, Pause)
    ]


def _texts(items: Sequence[object]) -> list[object]:
    return [item for item in items if isinstance(item, str)]


def _with_room(items: list[object]) -> list[object]:
    """Return the first items that fit."""
    fitting = items[:MOST]
    while fitting and not _packed(fitting):
        fitting.pop()
    return fitting


def _plain(changes: Mapping[str, Any]) -> dict[str, object]:
    return {
        place: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for place, value in changes.items()
    }


def _packed(data: object) -> str:
    """Return plain data as text; empty for no data, or for too much data for an address."""
    text = json.dumps(data, separators=(",", ":")) if data else ""
    return text if len(text) <= _MAX_LENGTH else ""


def _unpacked(text: str) -> object:
    """Return the data of a text; None if it is invalid or too long."""
    try:
        return json.loads(text) if len(text) <= _MAX_LENGTH else None
    except (ValueError, RecursionError):
        return None


def _listed(text: str) -> list[object]:
    data = _unpacked(text) if text else []
    return data if isinstance(data, list) else [data]


def _changes(text: str) -> Mapping[str, Any] | Unreadable:
    data = _unpacked(text) if text else {}
    return (
        data
        if isinstance(data, dict)
        else Unreadable("a what-if in a link is a table of values by address")
    )


def _gradient(backward: Backward | Unreadable | None) -> object:
    return (
        [list(backward.of), list(backward.with_respect_to)]
        if isinstance(backward, Backward)
        else None
    )


def _backward(text: str) -> Backward | Unreadable | None:
    if not text:
        return None
    match _unpacked(text):
        case [list(of), list(by)] if (
            of and by and all(isinstance(name, str) for name in (*of, *by))
        ):
            return Backward(tuple(map(str, of)), tuple(map(str, by)))
    return Unreadable(
        "a gradient in a link is two lists of names: what is differentiated, and by what"
    )


def _window(item: object) -> Window | Unreadable:
    match item:
        case [str(address), int(first), int(count)]:
            return Window(address, first, count)
    return Unreadable(
        "an unrolled loop in a link is a list of its address, its first iteration and the number "
        "of iterations side by side"
    )


def _pause(item: object) -> Pause | Unreadable:
    match item:
        case [
            str(pattern),
            str(condition),
            "address" | "nan" | "infinity" | "shape" as kind,
            bool(on),
        ]:
            return Pause(pattern, condition, kind, on)
    return Unreadable(
        "a breakpoint in a link is a list of its place, its condition, its kind (address, nan, "
        "infinity or shape) and whether it is on"
    )


def _operator(item: object) -> str | Unreadable:
    return (
        item
        if isinstance(item, str)
        else Unreadable("an operator in a link that is opened as a loop is the text of an address")
    )


def _watch(item: object) -> str | Unreadable:
    return (
        item
        if isinstance(item, str)
        else Unreadable("a watch in a link is the text of an expression")
    )


_CURRENT: Mapping[tuple[str, str], tuple[str, str]] = {
    ("screen", "runs"): ("view", "many"),
    ("lens", "compare"): ("view", "compare"),
    ("lens", "timeline"): ("view", "performance"),
    ("lens", "matrix"): ("strip", "matrix"),
    ("lens", "why"): ("chain", "shown"),
    ("lens", "ask"): ("formula", "shown"),
    ("lens", "export"): ("drawer", "export"),
    ("panel", "inspect"): ("tab", "node"),
    ("panel", "code"): ("tab", "code"),
    ("panel", "inputs"): ("tab", "setup"),
    ("panel", "breakpoints"): ("tab", "setup"),
    ("panel", "problems"): ("drawer", "problems"),
    ("panel", "lesson"): ("drawer", "about"),
    ("view", "value"): ("tab", "node"),
    ("view", "origin"): ("origin", "shown"),
    ("view", "ports"): ("tab", "node"),
    ("view", "attributes"): ("tab", "node"),
}
"""The present name and word of each earlier name and word."""


def in_current_words(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return parameters of an address with earlier names and words replaced.

    >>> in_current_words({"model": "sample:collatz", "screen": "runs"})
    {'model': 'sample:collatz', 'view': 'many'}
    """
    replaced = {name: word for name, word in parameters.items() if (name, word) not in _CURRENT}
    for pair in parameters.items():
        if pair in _CURRENT:
            name, word = _CURRENT[pair]
            replaced.setdefault(name, word)
    return replaced
