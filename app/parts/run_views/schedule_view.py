"""The loop in focus as it could run in parallel: a lane for each operation, a colour for each iteration; a click goes there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import engine
from app.actions import moves, selection
from app.describe.schedule_words import cut, sentences
from app.parts.run_views import until_a_loop_runs
from app.parts.widgets import lanes, markup
from app.state.focus import LoopInFocus
from app.state.user_session import Session, current
from engine.errors import EngineError
from engine.explain import Dependences, Schedule, dependences, schedule
from engine.ir import decode
from engine.run import Program

KEY = "schedule"
MOST_NODES = 10_000
MOST_LANES = 40
MOST_WORKERS, USUAL_WORKERS = 16, 2
_LEAST_TOP, _MOST_TOP = 20, 200
"""Bounds of the last window that can be chosen."""
_HOW = (
    "Number and colour of a block are its iteration; a click goes there. Every operation takes one tick, once its operands and the "
    "condition of its iteration are there. Of those that are ready, the one with the longest chain of others behind it runs first."
)
_PLAIN, _PART, _MOST_PARTS = 18, 12, 4
"""Heights of a lane, and of one of several blocks at a tick; more than so many share the height of so many, and have no number."""

Place = tuple[int, int, int]
"""Program number, row and number of an instruction."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The picture of a schedule, and what is where in it."""

    chart: lanes.Chart
    words: tuple[str, ...]
    cells: Sequence[Mapping[int, Sequence[tuple[Program, int, int]]]]
    """By lane and tick: program, row and number of what runs there, from the top down."""
    ticks: Mapping[Place, int]
    hidden: int
    """Operations without a lane."""


_found: WeakKeyDictionary[engine.Debugger, tuple[object, Dependences]] = WeakKeyDictionary()
_drawn: WeakKeyDictionary[Dependences, tuple[object, Drawn]] = WeakKeyDictionary()


def show(session: Session, loop: LoopInFocus | None, bar: DeltaGenerator) -> None:
    """``bar``: where the sliders go."""
    debugger = session.run.debugger
    if debugger is None or loop is None or not loop.iterations:
        until_a_loop_runs.show(session, "it is shown here how its iterations could overlap.")
        return
    try:
        found = _dependences(debugger, loop)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return
    with bar:
        window, workers = _chosen(found)
    drawn = _picture(found, window, workers)
    markup.show(markup.prose(" ".join(drawn.words)), "quiet")
    lanes.show(drawn.chart, key=KEY, cursor=_tick_of(debugger, drawn), wide=1, on_pick=lambda pick: _go(drawn, pick))
    more = f" {drawn.hidden:,} more operations are scheduled, and not drawn." if drawn.hidden else ""
    markup.show(f"{_HOW}{more}", "quiet")


def _chosen(found: Dependences) -> tuple[int, int]:
    """The window and the number of workers; a model's own window is where its slider begins."""
    first, second = st.columns(2, gap="medium")
    top = min(max(_LEAST_TOP, 2 * found.window), _MOST_TOP)
    usual = min(found.window, top)
    window = first.slider("Window (parallel_iterations)", 1, top, usual, key=f"schedule_window_{usual}")
    return window, second.slider("Workers", 1, MOST_WORKERS, USUAL_WORKERS, key="schedule_workers")


def _dependences(debugger: engine.Debugger, loop: LoopInFocus) -> Dependences:
    state = (debugger.steps, debugger.state, loop.address)
    kept = _found.get(debugger)
    if kept is None or kept[0] != state:
        kept = _found[debugger] = (state, dependences(debugger, loop.address, MOST_NODES))
    return kept[1]


def _picture(found: Dependences, window: int, workers: int) -> Drawn:
    kept = _drawn.get(found)
    if kept is None or kept[0] != (window, workers):
        made = schedule(found, window, workers)
        words = (*sentences(found, made, window, workers), cut(found))
        kept = _drawn[found] = ((window, workers), picture_of(found, made, tuple(filter(None, words))))
    return kept[1]


def picture_of(found: Dependences, made: Schedule, words: tuple[str, ...]) -> Drawn:
    """Lanes in the order of the body; what runs at one tick of a lane shares its height."""
    cells: defaultdict[tuple[Program, int], defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    ticks: dict[Place, int] = {}
    for node, one in enumerate(found.operations):
        if one is not None:
            cells[one.program, one.number][made.ticks[node]].append(node)
            ticks[one.program.index, one.row, one.number] = made.ticks[node]
    order = sorted(cells, key=lambda one: _order(*one))
    bodies = min((len(program.address) for program, _ in order), default=0)
    drawn = [_lane(found, program, number, cells[program, number], bodies) for program, number in order[:MOST_LANES]]
    label = f"{len(ticks):,} operations over {made.length:,} ticks"
    places = [{tick: [_place(found, node) for node in nodes] for tick, nodes in cells[key].items()} for key in order[:MOST_LANES]]
    hidden = len(order) - len(drawn)
    return Drawn(lanes.Chart(label, "tick", max(made.length, 1), drawn), words, places, ticks, hidden)


def _place(found: Dependences, node: int) -> tuple[Program, int, int]:
    one = found.operations[node]
    assert one is not None
    return one.program, one.row, one.number


def _order(program: Program, number: int) -> tuple[int, ...]:
    """Where an operation stands in the body, whatever branches and loops it lies in."""
    around = list(program.around())
    return (*(part for one in reversed(around[:-1]) for part in (one.owner, one.index)), number)


def _lane(found: Dependences, program: Program, number: int, at: Mapping[int, Sequence[int]], bodies: int) -> lanes.Lane:
    most = max(len(nodes) for nodes in at.values())
    blocks = [_block(found, tick, node, part, len(nodes)) for tick, nodes in sorted(at.items()) for part, node in enumerate(nodes)]
    instruction = program.instructions[number]
    inside = program.address[bodies + 1 :]
    name = decode(f"{inside}/{instruction.label}" if inside else instruction.label)
    return lanes.Lane(name, blocks, height=max(_PLAIN, _PART * min(most, _MOST_PARTS)), note=instruction.title, pick=True)


def _block(found: Dependences, tick: int, node: int, part: int, parts: int) -> lanes.Block:
    one = found.operations[node]
    iteration = one.iteration if one is not None else 0
    words = f"iteration {iteration:,} · tick {tick:,}"
    return (float(tick), float(tick + 1), "shape", iteration, f"{iteration:,}" if parts <= _MOST_PARTS else "", words, part, parts)


def _tick_of(debugger: engine.Debugger, drawn: Drawn) -> float | None:
    """The tick of the operation that the cursor stands before; None when it is none of the loop's."""
    level = debugger.moment[-1]
    return drawn.ticks.get((level.program.index, level.row, level.position))


def _go(drawn: Drawn, pick: lanes.Pick) -> None:
    """To the moment when an operation has just run, which is pinned; from a name only the pin."""
    debugger = current().run.debugger
    if debugger is None or pick.lane < 0:
        return
    cells = drawn.cells[pick.lane]
    here = cells.get(int(pick.at), ())
    program, row, number = here[min(int(pick.down * len(here)), len(here) - 1)] if here else next(iter(cells.values()))[0]
    if here and not pick.on_name:
        moves.seek(debugger.timeline.step_at(program, row, number + 1))
    if here or pick.on_name:
        selection.select(f"{program.address}/{program.instructions[number].label}")
