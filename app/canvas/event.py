"""What a person did on the canvas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard, get_args

from engine.view.graph import GraphView, ViewCluster, ViewEdge, ViewNode, without_iterations

EventKind = Literal[
    "select", "clear", "open", "fold", "unroll", "earlier", "later", "fewer", "wider", "key", "too_dense", "untrace", "breakpoint"
]


@dataclass(frozen=True, slots=True)
class CanvasEvent:
    """One act.

    ``select``: a box was clicked; ``clear``: the empty canvas was. ``open``: show this body or control-flow node as a canvas of its own.
    ``fold``: fold it when it is open, open it when it is folded (``engine.view.folding.toggle``). ``key``: ``Backspace`` (go up) or ``?``.
    ``unroll``: draw the loop as copies, or once again; ``earlier`` and ``later``: other iterations of an unrolled loop, ``fewer`` and
    ``wider``: fewer or more of them at a time.
    ``breakpoint``: the dot of a box was clicked, which stands for the breakpoints there.
    ``too_dense``: no layout was found in time: fold more. ``untrace``: show no longer where a value came from.
    """

    kind: EventKind
    address: str = ""
    """Of the box or frame, static but for iterations of unrolled loops; of an ``output`` box its tensor's (``main/loop_7:1``)."""
    root: str = ""
    """For ``open``: static address of the graph to show, such as ``main/loop_7/body``."""
    key: str = ""


def read_event(data: object, view: GraphView) -> CanvasEvent | None:
    """From what the browser sent; None when it does not belong to this view. The browser is not trusted: ids must be the view's."""
    if not isinstance(data, Mapping) or data.get("root") != view.root or data.get("kind") not in get_args(EventKind):
        return None
    kind: EventKind = data["kind"]
    if kind == "key":
        key = data.get("key")
        return CanvasEvent(kind, key=key) if key in ("Backspace", "?") else None
    if kind in ("clear", "too_dense", "untrace"):
        return CanvasEvent(kind)
    part = view.by_id.get(str(data.get("id", "")))
    match part:
        case ViewNode() | ViewCluster():
            # Where there is nothing to open, a double click unfolds.
            return CanvasEvent("fold" if kind == "open" and not part.body else kind, part.address, without_iterations(part.body))
        case ViewEdge() | None:
            return None


@dataclass(frozen=True, slots=True)
class Report:
    """Where the canvas has come to by itself."""

    step: int
    number: int
    """Of the report: later ones have greater numbers."""
    playing: bool
    """It goes on by itself."""


def read_report(data: object, run: str) -> Report | None:
    """From what the browser sent; None when it is of another run."""
    if not isinstance(data, Mapping) or data.get("run") != run:
        return None
    step, number = data.get("step"), data.get("count")
    return Report(step, number, data.get("playing") is True) if is_step(step) and is_step(number) else None


@dataclass(frozen=True, slots=True)
class Move:
    """One of the moves of the transport bar."""

    name: str
    number: int
    """Later ones have greater numbers, as reports have."""
    start: int | None
    """Step that it goes on from; None for where the one before has led."""


MOST_MOVES = 256


def read_moves(data: object, run: str) -> tuple[Move, ...]:
    """Those that the browser has not seen confirmed, in their order, from what it sent; none when they are of another run."""
    moves = data.get("moves") if isinstance(data, Mapping) and data.get("run") == run else None
    if not isinstance(moves, list):
        return ()
    found = [_read_move(one) for one in moves[:MOST_MOVES]]
    return tuple(one for one in found if one is not None)


def _read_move(data: object) -> Move | None:
    if not isinstance(data, Mapping):
        return None
    name, number, start = data.get("name"), data.get("count"), data.get("start")
    return Move(name, number, start if is_step(start) else None) if isinstance(name, str) and is_step(number) else None


def read_ask(data: object, run: str) -> int | None:
    """The first step that should be sent ahead, from what the browser sent; None when it is of another run."""
    step = data.get("step") if isinstance(data, Mapping) and data.get("run") == run else None
    return step if is_step(step) else None


def is_step(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
