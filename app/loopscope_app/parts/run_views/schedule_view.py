"""The loop in focus as a parallel schedule: a lane per operation, a colour per iteration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import loopscope
from loopscope.errors import EngineError
from loopscope.executor import Program
from loopscope.explain import (
    Dependences,
    OperationExecution,
    Schedule,
    dependences,
    operation_ticks,
    schedule,
)
from loopscope.ir import decode
from loopscope.object_cache import cache_by_object
from loopscope_app.actions import moves, selection
from loopscope_app.describe.schedule_words import cut, sentences
from loopscope_app.parts.widgets import lanes, markup
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession, current

KEY = "schedule"
MOST_NODES = 10_000
MOST_LANES = 40
MOST_WORKERS, USUAL_WORKERS = 16, 2
MOST_TICKS = 100
_LEAST_TOP, _MOST_TOP = 20, 200
"""Bounds of the last window that can be chosen."""
_HOW = (
    "Number and colour of a block are its iteration; a click opens it. An operation begins when "
    "its operands and the condition of its iteration are computed. It takes one tick, or as many "
    "as the model or you choose. Of the operations that are ready, the one with the longest chain "
    "behind it runs first."
)
_WINDOW = "Iterations that may run at the same time (parallel_iterations)"
_HEADER_REM = 30.0
"""Height in rem of header, controls, headline and schedule."""
_PLAIN, _PART, _MOST_PARTS = 18, 12, 4
"""Height of a lane; height of one of several blocks at a tick; largest number of blocks at a tick
that have a number.
"""

Place = tuple[int, int, int]
"""Program number, row and instruction number."""


@dataclass(frozen=True, slots=True)
class Slow:
    """An operation of a loop and the ticks that it takes."""

    program: Program
    number: int
    """Instruction number."""
    ticks: int

    def ticks_of(self, operation: OperationExecution) -> int:
        """Return the ticks of an operation: those chosen for this one, the model's for any
        other.
        """
        is_chosen = operation.program is self.program and operation.number == self.number
        return self.ticks if is_chosen else operation_ticks(operation)


@dataclass(frozen=True, slots=True)
class LanePiece:
    """An operation in its lane: part number ``part`` of the lane's height, from the top, of
    ``parts``.
    """

    node: int
    part: int
    parts: int


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The picture of a schedule, with the operation of each block."""

    chart: lanes.Chart
    words: tuple[str, ...]
    cells: Sequence[Mapping[int, Sequence[tuple[Program, int, int] | None]]]
    """Program, row and instruction number of each block, top down, by lane and tick."""
    ticks: Mapping[Place, int]
    hidden: int
    """Number of operations without a lane."""


def show(session: UserSession, loop: LoopInFocus | None, bar: DeltaGenerator) -> None:
    """Show the schedule. ``bar`` is the container for the sliders."""
    debugger = session.run.debugger
    if debugger is None or loop is None or not loop.iterations:
        lanes.show_before_a_loop_runs(session, "the overlap of its iterations is drawn here.")
        return
    try:
        graph = _dependences(debugger, loop)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return
    with bar:
        window, workers = _chosen(graph)
        slow = _slow_operation(graph)
    drawn = _picture(graph, window, workers, slow)
    markup.show(markup.prose(" ".join(drawn.words)), "headline")
    lanes.leave_room(None, _HEADER_REM)
    with st.container(key="schedule_room"):
        lanes.show(
            drawn.chart,
            key=KEY,
            cursor=_tick_of(debugger, drawn),
            wide=1,
            on_pick=lambda pick: _go(drawn, pick),
        )
    if drawn.hidden:
        markup.show(f"{drawn.hidden:,} more operations are scheduled, and not drawn.", "quiet")


def _chosen(graph: Dependences) -> tuple[int, int]:
    """Return the window and the number of workers. The slider begins at the model's own window."""
    top = min(max(_LEAST_TOP, 2 * graph.window), _MOST_TOP)
    usual = min(graph.window, top)
    window = st.slider(
        "Window", 1, top, usual, key=f"schedule_window_{usual}", width=170, help=_WINDOW
    )
    workers = st.slider(
        "Workers", 1, MOST_WORKERS, USUAL_WORKERS, key="schedule_workers", width=170, help=_HOW
    )
    return window, workers


def _slow_operation(graph: Dependences) -> Slow | None:
    """Return the operation that takes more than one tick: the model's own, or the chosen one."""
    costs: dict[tuple[Program, int], int] = {}
    for operation in graph.operations:
        if operation is not None:
            costs.setdefault((operation.program, operation.number), operation_ticks(operation))
    if not costs:
        return None
    places = list(costs)
    labels = [decode(program.instructions[number].label) for program, number in places]
    slowest = max(range(len(places)), key=lambda index: costs[places[index]])
    chosen = st.selectbox(
        "Slow operation",
        range(len(places)),
        slowest,
        format_func=labels.__getitem__,
        key=f"schedule_slow_{len(places)}",
        width=230,
    )
    usual = min(costs[places[chosen]], MOST_TICKS)
    ticks = st.slider(
        "Its ticks", 1, MOST_TICKS, usual, key=f"schedule_ticks_{chosen}_{usual}", width=170
    )
    return Slow(*places[chosen], ticks)


@cache_by_object(
    key=lambda debugger, loop: (debugger.steps, debugger.state, loop.address), newest_only=True
)
def _dependences(debugger: loopscope.Debugger, loop: LoopInFocus) -> Dependences:
    return dependences(debugger, loop.address, MOST_NODES)


@cache_by_object(newest_only=True)
def _picture(graph: Dependences, window: int, workers: int, slow: Slow | None) -> Drawn:
    ticks_of = slow.ticks_of if slow is not None else operation_ticks
    plan = schedule(graph, window, workers, ticks_of)
    words = (*sentences(graph, plan, window, workers, ticks_of), cut(graph))
    return picture_of(graph, plan, tuple(filter(None, words)))


def picture_of(graph: Dependences, plan: Schedule, words: tuple[str, ...]) -> Drawn:
    """Return the picture: lanes in the order of the body; blocks at the same time share the height
    of a lane.
    """
    nodes: defaultdict[tuple[Program, int], list[int]] = defaultdict(list)
    ticks: dict[Place, int] = {}
    for node, entry in enumerate(graph.operations):
        if entry is not None:
            nodes[entry.program, entry.number].append(node)
            ticks[entry.program.index, entry.row, entry.number] = plan.ticks[node]
    order = sorted(nodes, key=lambda entry: _order(*entry))
    bodies = min((len(program.address) for program, _ in order), default=0)
    pieces = [_pieces(plan, nodes[key]) for key in order[:MOST_LANES]]
    drawn = [
        _lane(graph, plan, key, lane_pieces, bodies)
        for key, lane_pieces in zip(order, pieces, strict=False)
    ]
    label = f"{len(ticks):,} operations over {plan.length:,} ticks"
    hidden = len(order) - len(drawn)
    cells = [_cells(graph, plan, lane_pieces) for lane_pieces in pieces]
    return Drawn(
        lanes.Chart(label, "tick", max(plan.length, 1), drawn), words, cells, ticks, hidden
    )


def _pieces(plan: Schedule, nodes: Sequence[int]) -> list[LanePiece]:
    """Return the operations of a lane. Operations at the same time lie one below the other."""
    pieces: list[LanePiece] = []
    ends: list[int] = []
    group: list[tuple[int, int]] = []
    for node in sorted(nodes, key=lambda node: (plan.ticks[node], node)):
        begin, end = plan.ticks[node], plan.ticks[node] + plan.costs[node]
        if begin >= max(ends, default=0):
            pieces += [LanePiece(member, part, len(ends)) for member, part in group]
            ends, group = [], []
        part = next((part for part, last in enumerate(ends) if last <= begin), len(ends))
        ends[part : part + 1] = [end]
        group.append((node, part))
    return pieces + [LanePiece(member, part, len(ends)) for member, part in group]


def _cells(
    graph: Dependences, plan: Schedule, pieces: Sequence[LanePiece]
) -> dict[int, list[tuple[Program, int, int] | None]]:
    cells: dict[int, list[tuple[Program, int, int] | None]] = {}
    for piece in pieces:
        begin = plan.ticks[piece.node]
        for tick in range(begin, min(begin + plan.costs[piece.node], begin + MOST_TICKS)):
            cells.setdefault(tick, [None] * piece.parts)[piece.part] = _place(graph, piece.node)
    return cells


def _place(graph: Dependences, node: int) -> tuple[Program, int, int]:
    operation = graph.operations[node]
    assert operation is not None
    return operation.program, operation.row, operation.number


def _order(program: Program, number: int) -> tuple[int, ...]:
    """Return the sort key of an operation: its position in the body, including nested branches and
    loops.
    """
    around = list(program.around())
    return (
        *(part for level in reversed(around[:-1]) for part in (level.owner, level.index)),
        number,
    )


def _lane(
    graph: Dependences,
    plan: Schedule,
    key: tuple[Program, int],
    pieces: Sequence[LanePiece],
    bodies: int,
) -> lanes.Lane:
    program, number = key
    parts = max(piece.parts for piece in pieces)
    blocks = [_block(graph, plan, piece) for piece in pieces]
    instruction = program.instructions[number]
    inside = program.address[bodies + 1 :]
    name = decode(f"{inside}/{instruction.label}" if inside else instruction.label)
    return lanes.Lane(
        name,
        blocks,
        height=max(_PLAIN, _PART * min(parts, _MOST_PARTS)),
        note=instruction.title,
        pick=True,
    )


def _block(graph: Dependences, plan: Schedule, piece: LanePiece) -> lanes.Block:
    operation = graph.operations[piece.node]
    iteration = operation.iteration if operation is not None else 0
    tick, cost = plan.ticks[piece.node], plan.costs[piece.node]
    words = f"iteration {iteration:,} · tick {tick:,}" + (
        f" to {tick + cost - 1:,}" if cost > 1 else ""
    )
    shown = f"{iteration:,}" if piece.parts <= _MOST_PARTS else ""
    return (
        float(tick),
        float(tick + cost),
        "shape",
        iteration,
        shown,
        words,
        piece.part,
        piece.parts,
    )


def _tick_of(debugger: loopscope.Debugger, drawn: Drawn) -> float | None:
    """Return the tick of the operation at the cursor; None if it does not belong to the loop."""
    level = debugger.moment[-1]
    return drawn.ticks.get((level.program.index, level.row, level.position))


def _go(drawn: Drawn, pick: lanes.Pick) -> None:
    """Go to the moment after an operation has run and select it; a click on a name selects only."""
    debugger = current().run.debugger
    if debugger is None or pick.lane < 0:
        return
    cells = drawn.cells[pick.lane]
    parts = cells.get(int(pick.at), ())
    block = parts[min(int(pick.down * len(parts)), len(parts) - 1)] if parts else None
    program, row, number = block or next(
        place for places in cells.values() for place in places if place is not None
    )
    if block and not pick.on_name:
        moves.seek(debugger.timeline.step_at(program, row, number + 1))
    if block or pick.on_name:
        selection.select(f"{program.address}/{program.instructions[number].label}")
