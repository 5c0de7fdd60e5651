"""A moment as parameters of the page's address, and back: what each is called, how it is
written, and how much of it has room.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.debug import Pause
from loopscope.ir import ROOT
from loopscope_app.describe.backward import Backward

SAMPLE = "sample:"
"""The prefix of a sample's name, in the field that otherwise holds the path of a model."""
_LARGE = "large"
_MANY = "runs"
_LONGEST = 1200
"""Characters of a parameter that holds a list or a table."""
LONGEST_QUESTION = 400
"""Characters of a question to the trace that an address holds."""
LONGEST_RUNS = 400
"""Characters that say what many runs are on."""
MOST = 20
"""Breakpoints, and watches, that an address holds."""


@dataclass(frozen=True, slots=True)
class Window:
    """A loop that is unrolled: iterations side by side."""

    address: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Parameters of a link that have an unexpected value."""

    expected: str
    """A sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What an address says; everything may come from a stranger."""

    model: str = ""
    """``sample:NAME`` or a path."""
    lesson: str = ""
    large: bool = False
    """Type for the last row of a lecture hall."""
    backward: Backward | Unreadable | None = None
    """The gradient of that model that is looked at in its place."""
    input_set: str = ""
    changes: Mapping[str, Any] | Unreadable = field(default_factory=dict[str, Any])
    """Values that are set by hand, by address: numbers, or nested lists of them."""
    step: str = ""
    """A number, or the address of a moment."""
    node: str = ""
    """What the inspector is pinned to."""
    body: str = ""
    """The graph that the canvas shows; empty for the outermost."""
    unrolled: tuple[Window | Unreadable, ...] = ()
    breakpoints: tuple[Pause | Unreadable, ...] = ()
    watches: tuple[str | Unreadable, ...] = ()
    looks: Mapping[str, str] = field(default_factory=dict[str, str])
    """The ways to look that are not the usual ones. Read from an address: all of its parameters,
    of which the looks know theirs.
    """
    question: str = ""
    """To the trace."""
    many: bool = False
    """The screen of many runs is shown."""
    runs: str = ""
    """What the many runs are on, in words."""


def written(link: Link) -> dict[str, str]:
    """The parameters of a link; what is empty, or has no room, is left out."""
    lesson = link.lesson
    windows = [
        [one.address, one.first, one.count] for one in link.unrolled if isinstance(one, Window)
    ]
    parameters = {
        "lesson": lesson,
        "type": _LARGE if lesson and link.large else "",
        "model": "" if lesson else link.model,
        "backward": _packed(_gradient(link.backward)),
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
        "screen": _MANY if link.many else "",
        "runs": link.runs if len(link.runs) <= LONGEST_RUNS else "",
    }
    return {name: text for name, text in parameters.items() if text}


def read(parameters: Mapping[str, str]) -> Link:
    """The link that query parameters describe; they may be written by anybody and are checked."""

    def text(name: str) -> str:
        return parameters.get(name, "")

    return Link(
        model=text("model"),
        lesson=text("lesson"),
        large=text("type") == _LARGE,
        backward=_backward(text("backward")),
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
        many=text("screen") == _MANY,
        runs=text("runs")[:LONGEST_RUNS],
    )


def has_room_for(backward: Backward) -> bool:
    """Whether an address holds what is differentiated by what."""
    return bool(_packed(_gradient(backward)))


def has_room(changes: Mapping[str, Any]) -> bool:
    """Whether an address holds these values that are set by hand."""
    return bool(_packed(_plain(changes)))


def beyond(items: Sequence[Pause] | Sequence[str], what: str) -> str:
    """What is to be said of breakpoints or watches that an address has no room for; empty where it
    holds all.

    >>> beyond(["a"] * 21, "watches")
    "The page's link has room for the first 20 of these 21 watches: the link leaves the others out."
    """
    all_of_them = [*_pauses(items), *_texts(items)]
    kept = len(_with_room(all_of_them))
    if kept == len(all_of_them):
        return ""
    room = f"the first {kept}" if kept else "none"
    return f"The page's link has room for {room} of these {len(all_of_them):,} {what}: the link leaves the others out."


def _pauses(items: Sequence[object]) -> list[object]:
    return [
        [one.pattern, one.condition, one.kind, one.on] for one in items if isinstance(one, Pause)
    ]


def _texts(items: Sequence[object]) -> list[object]:
    return [one for one in items if isinstance(one, str)]


def _with_room(items: list[object]) -> list[object]:
    """As many of them as fit."""
    kept = items[:MOST]
    while kept and not _packed(kept):
        kept.pop()
    return kept


def _plain(changes: Mapping[str, Any]) -> dict[str, object]:
    return {
        place: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for place, value in changes.items()
    }


def _packed(data: object) -> str:
    """Plain data as text; empty where there is nothing, or too much for an address."""
    text = json.dumps(data, separators=(",", ":")) if data else ""
    return text if len(text) <= _LONGEST else ""


def _unpacked(text: str) -> object:
    """The data again; None for what is none, or too long."""
    try:
        return json.loads(text) if len(text) <= _LONGEST else None
    except (ValueError, RecursionError):
        return None


def _listed(text: str) -> list[object]:
    found = _unpacked(text) if text else []
    return found if isinstance(found, list) else [found]


def _changes(text: str) -> Mapping[str, Any] | Unreadable:
    found = _unpacked(text) if text else {}
    return (
        found
        if isinstance(found, dict)
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
        case [list(of), list(by)] if of and by and all(isinstance(one, str) for one in (*of, *by)):
            return Backward(tuple(map(str, of)), tuple(map(str, by)))
    return Unreadable(
        "a gradient in a link is two lists of names: what is differentiated, and by what"
    )


def _window(one: object) -> Window | Unreadable:
    match one:
        case [str(address), int(first), int(count)]:
            return Window(address, first, count)
    return Unreadable(
        "an unrolled loop in a link is a list of its address, its first iteration and how many are side by side"
    )


def _pause(one: object) -> Pause | Unreadable:
    match one:
        case [
            str(pattern),
            str(condition),
            "address" | "nan" | "infinity" | "shape" as kind,
            bool(on),
        ]:
            return Pause(pattern, condition, kind, on)
    return Unreadable(
        "a breakpoint in a link is a list of its place, its condition, address, nan, infinity or shape, and whether it is on"
    )


def _watch(one: object) -> str | Unreadable:
    return (
        one
        if isinstance(one, str)
        else Unreadable("a watch in a link is the text of an expression")
    )
