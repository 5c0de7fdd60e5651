"""Events of the canvas, read from untrusted messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard, get_args

from loopscope.view import GraphView, ViewCluster, ViewEdge, ViewNode, without_iterations

EventKind = Literal[
    "select",
    "clear",
    "open",
    "fold",
    "unroll",
    "earlier",
    "later",
    "fewer",
    "wider",
    "key",
    "too_dense",
    "untrace",
    "breakpoint",
    "look",
]


@dataclass(frozen=True, slots=True)
class CanvasEvent:
    """One act.

    ``select``: a box was clicked; ``clear``: the empty canvas was. ``open``: show this body or
    control-flow node as a canvas of its own. ``fold``: fold it when it is open, open it when it is
    folded (``loopscope.view.folding.toggle``). ``key``: ``Backspace`` (go up) or ``?``. ``unroll``:
    draw the loop as copies, or once again; ``earlier`` and ``later``: other iterations of an
    unrolled loop, ``fewer`` and ``wider``: fewer or more of them at a time. ``breakpoint``: the dot
    of a box was clicked, which stands for the breakpoints there. ``too_dense``: no layout was found
    in time: fold more. ``untrace``: show no longer where a value came from. ``look``: nothing was
    done; the moment is to be shown anew.
    """

    kind: EventKind
    address: str = ""
    """Address of the box or frame, static except for iterations of unrolled loops; for an
    ``output`` box, its tensor.
    """
    root: str = ""
    """Static address of the graph to show, such as ``main/loop_7/body``, for ``open``."""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Act:
    """An event and its number."""

    number: int
    """Later acts have greater numbers."""
    event: CanvasEvent | None
    """None if the event does not belong to the shown view."""


MOST_WORDS = 256


def read_acts(data: object, view: GraphView) -> tuple[Act, ...]:
    """Return the unconfirmed acts, in order."""
    messages = data[:MOST_WORDS] if isinstance(data, list) else []
    return tuple(
        Act(message["count"], read_event(message, view))
        for message in messages
        if isinstance(message, Mapping) and is_step(message.get("count"))
    )


def read_event(data: object, view: GraphView) -> CanvasEvent | None:
    """Return the event that the browser sent; None if it does not belong to this view.

    The message is not trusted: its ids must be those of the view.
    """
    if (
        not isinstance(data, Mapping)
        or data.get("root") != view.root
        or data.get("kind") not in get_args(EventKind)
    ):
        return None
    kind: EventKind = data["kind"]
    if kind == "key":
        key = data.get("key")
        return CanvasEvent(kind, key=key) if key == "Backspace" else None
    if kind in ("clear", "too_dense", "untrace", "look"):
        return CanvasEvent(kind)
    part = _part(view, str(data.get("id", "")), data.get("address"))
    match part:
        case ViewNode() | ViewCluster():
            # Where there is nothing to open, a double click unfolds.
            return CanvasEvent(
                "fold" if kind == "open" and not part.body else kind,
                part.address,
                without_iterations(part.body),
            )
        case ViewEdge() | None:
            return None


def _part(view: GraphView, id: str, address: object) -> ViewNode | ViewCluster | ViewEdge | None:
    """Return the part that an id names. If the id now belongs to another part, return what shows
    the same address.
    """
    part = view.by_id.get(id)
    if isinstance(address, str) and (
        part is None or isinstance(part, ViewEdge) or part.address != address
    ):
        return view.node_of.get(address)
    return part


@dataclass(frozen=True, slots=True)
class StepReport:
    """The step that the canvas has reached while playing."""

    step: int
    number: int
    """Number of the report; later reports have greater numbers."""
    playing: bool
    """True if the canvas continues to play."""


def read_report(data: object, run: str) -> StepReport | None:
    """Return the report that the browser sent; None if it is about another run."""
    if not isinstance(data, Mapping) or data.get("run") != run:
        return None
    step, number = data.get("step"), data.get("count")
    return (
        StepReport(step, number, data.get("playing") is True)
        if is_step(step) and is_step(number)
        else None
    )


@dataclass(frozen=True, slots=True)
class Move:
    """One of the moves of the transport bar."""

    name: str
    number: int
    """Later moves have greater numbers, as reports have."""
    start: int | None
    """The step that the move starts at; None for the step that the previous move led to."""


def read_moves(data: object, run: str) -> tuple[Move, ...]:
    """Return the unconfirmed moves, in order; none if they are of another run."""
    moves = data.get("moves") if isinstance(data, Mapping) and data.get("run") == run else None
    if not isinstance(moves, list):
        return ()
    read = [_read_move(item) for item in moves[:MOST_WORDS]]
    return tuple(item for item in read if item is not None)


def _read_move(data: object) -> Move | None:
    if not isinstance(data, Mapping):
        return None
    name, number, start = data.get("name"), data.get("count"), data.get("start")
    return (
        Move(name, number, start if is_step(start) else None)
        if isinstance(name, str) and is_step(number)
        else None
    )


def read_ask(data: object, run: str) -> int | None:
    """Return the first step that should be sent ahead; None if the message is about another run."""
    step = data.get("step") if isinstance(data, Mapping) and data.get("run") == run else None
    return step if is_step(step) else None


def is_step(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
