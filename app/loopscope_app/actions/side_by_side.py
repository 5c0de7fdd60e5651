"""Actions of Compare: two runs besides the one that is stepped through, or two structures.

The badge that says what the model's runtime computes leads to the same comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import loopscope
from loopscope.comparison import INSIDE, Spot, StructureDiff, drift, spot_of
from loopscope.errors import EngineError
from loopscope.view import Folding, default_folding, reveal, toggle
from loopscope_app import canvas
from loopscope_app.actions import moves, other_runs, selection, views
from loopscope_app.actions.moves import settled
from loopscope_app.actions.report_errors import clear_and_show_errors, show_errors
from loopscope_app.actions.runs import new_run
from loopscope_app.describe.both_runs import (
    Compared,
    Drifted,
    at_moment,
    counterpart,
    name_here,
    other_model,
)
from loopscope_app.describe.input_words import input_words
from loopscope_app.describe.node_index import moment_of
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.background_run import Comparing
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.model_in_use import Agreement
from loopscope_app.state.open_model import Opened
from loopscope_app.state.run_in_view import ShownDifference, ShownStructure
from loopscope_app.state.user_session import PATIENCE, UserSession, current, place, widget
from loopscope_app.state.view_choices import (
    BEFORE,
    BOTH_CANVASES,
    CANVASES,
    COMPARE_KIND,
    COMPARE_SHOWN,
    COMPARE_WITH,
    DEBUG,
    INPUTS,
    MODEL,
    ROUNDED,
    RUNTIME,
    SOURCE,
    TABLE,
    UNCHANGED,
    VALUES,
)

MOST_SECONDS = 20.0
"""Time limit of each of the two runs."""
_DRIFT_SECONDS = 120.0
"""Time limit of each run if all values are compared, on a user's own machine."""
_KINDS: Mapping[str, Callable[[UserSession, Opened, float], None]] = {
    RUNTIME: other_runs.compare_with_runtime,
    MODEL: other_runs.compare_with_model,
    ROUNDED: other_runs.compare_rounded,
    SOURCE: other_runs.compare_with_source,
}


@clear_and_show_errors
def compare() -> None:
    """Compare the current inputs and changes with the run that the widgets of Compare choose."""
    compare_with(str(widget(COMPARE_KIND)))


@clear_and_show_errors
def choose_kind() -> None:
    """Compare at once with a chosen runtime that has no result yet: it needs no other choice."""
    if widget(COMPARE_KIND) == RUNTIME and current().run.other_runtime is None:
        compare_with(RUNTIME)


@show_errors
def compare_with(kind: str) -> None:
    """Compare with a run of a kind."""
    session = current()
    opened = session.model.opened
    if opened is None or not settled(session):
        return
    if kind in _KINDS:
        _KINDS[kind](session, opened, MOST_SECONDS if LAUNCH.server else _DRIFT_SECONDS)
    else:
        _compare_inputs(session, opened, str(widget(COMPARE_WITH) or ""))


@show_errors
def run_beside(name: str, seconds: float = MOST_SECONDS) -> None:
    """Run the current inputs with and without changes, or other inputs, without comparing values.

    ``name`` is another input set, the previous inputs, or the run without changes.
    """
    session = current()
    if session.model.opened is not None and settled(session):
        runs = _both(session, session.model.opened, name, seconds)

        def work(_: Callable[[], bool]) -> None:
            session.run.compared = Compared(name, *runs)

        session.run.compared = None
        _begin(session, Comparing(list(runs), work))


def _compare_inputs(session: UserSession, opened: Opened, name: str) -> None:
    """Compare every value of two runs exactly, if both finish."""
    runs = _both(session, opened, name, MOST_SECONDS)
    title = words_of(session, opened, name)

    def work(stopped: Callable[[], bool]) -> None:
        session.run.compared = Compared(name, *runs)
        if all(run.state == "finished" for run in runs):
            result = drift(*runs, tolerance=0.0, stopped=stopped)
            session.run.drifted = Drifted(INPUTS, title, result, result.sentence, *runs)

    session.run.compared = session.run.drifted = session.run.difference = None
    session.run.compared_run, session.run.compared_with = runs[0], name
    _begin(
        session,
        Comparing(list(runs), work, after="both runs are done, their values are being compared"),
    )


def _both(
    session: UserSession, opened: Opened, name: str, seconds: float
) -> tuple[loopscope.Debugger, loopscope.Debugger]:
    sets = {**opened.sets, BEFORE: session.model.before, UNCHANGED: session.model.inputs}
    left, right = (
        new_run(opened, bindings(opened.model, inputs), seconds=seconds, changes=changes)
        for inputs, changes in ((session.model.inputs, session.run.changes), (sets[name], None))
    )
    return left, right


def _begin(session: UserSession, comparing: Comparing) -> None:
    session.run.running = comparing
    session.run.running.done(PATIENCE)
    settled(session)


def words_of(session: UserSession, opened: Opened, name: str) -> str:
    """Return the description of other inputs: the numbers that differ from the current inputs, else
    the name of the set.
    """
    if name == UNCHANGED:
        return "without what was set by hand"
    inputs = session.model.before if name == BEFORE else opened.sets.get(name, {})
    words = input_words(opened.model, inputs, session.model.inputs)
    if name == BEFORE:
        return f"{words} (previous inputs)" if words else "previous inputs"
    text = opened.sample.text_of(name) if opened.sample else ""
    title = name.replace("_", " ")
    return (words if text else f"{words} ({title})") if words else text or title


def words_here(session: UserSession, opened: Opened) -> str:
    """Return the description of the current inputs beside the chosen other inputs."""
    if session.run.changes:
        return "with what was set by hand"
    chosen = str(widget(COMPARE_WITH) or "")
    others = session.model.before if chosen == BEFORE else opened.sets.get(chosen, {})
    words = input_words(opened.model, session.model.inputs, others or {})
    name = session.model.input_set
    return words or (name.replace("_", " ") if name in opened.sets else "") or "this run"


@clear_and_show_errors
def round_this(pattern: str, to: str) -> None:
    """Compare the run with itself, with the values that a pattern names rounded."""
    other_runs.show_rounded(pattern, to)
    compare_with(ROUNDED)


def show_difference(address: str, step: int, spot: Spot | None = None) -> None:
    """Show one difference on the canvas of Compare; the run that is stepped through stays."""
    session = current()
    opened = session.model.opened
    if opened is not None and address:
        before = session.run.difference
        folding = before.folding if before else default_folding(opened.model)
        shown = ShownDifference(address, step, spot, reveal(opened.model, folding, address))
        session.run.difference = shown
        shown.beside = _folding_beside(session, shown, before.beside if before else None)


def _folding_beside(
    session: UserSession, shown: ShownDifference, before: Folding | None
) -> Folding | None:
    """Return the folding of another model in which the counterpart is in sight."""
    drifted, opened = session.run.drifted, session.model.opened
    model = other_model(drifted) if drifted is not None else None
    if drifted is None or opened is None or model is None or model is opened.model:
        return None
    address = counterpart(drifted, shown.address, shown.step).address
    folding = before or default_folding(model)
    return reveal(model, folding, address) if address else folding


def select_here(address: str) -> None:
    """Select an operation of the run here at the shown moment, and its counterpart."""
    shown, drifted = current().run.difference, current().run.drifted
    if shown is None or drifted is None:
        return
    moved = at_moment(address, shown.address)
    try:
        step, spot = moment_of(drifted.run, moved), drifted.spot_at(moved)
    except EngineError:
        step, spot = shown.step, None
    show_difference(moved, step, spot)


def select_there(address: str) -> None:
    """Select an operation of the other run, and its counterpart here if it has one."""
    shown, drifted = current().run.difference, current().run.drifted
    if shown is None or drifted is None:
        return
    match = name_here(drifted, address)
    if match:
        select_here(match)
    else:
        shown.only_there = at_moment(address, shown.address)


@show_errors
def on_canvas_there(event: canvas.CanvasEvent) -> None:
    """Carry out an event of the canvas of the other run: select, fold."""
    session = current()
    drifted, shown = session.run.drifted, session.run.difference
    model = other_model(drifted) if drifted is not None else None
    if model is None or shown is None:
        return
    folding = shown.beside or shown.folding
    match event.kind:
        case "fold" | "open":
            folding = toggle(model, folding, event.address)
        case "too_dense":
            folding = default_folding(model, max_boxes=selection.FEWEST_BOXES)
        case "select":
            select_there(event.address)
            return
    if shown.beside is None:
        shown.folding = folding
    else:
        shown.beside = folding


def show_cell(address: str, step: int, spot: Spot) -> None:
    """Show one value of one iteration with both sides."""
    show_difference(address, step, spot)
    place(COMPARE_SHOWN, VALUES)


def show_table() -> None:
    """Show the table of first differences."""
    place(COMPARE_SHOWN, TABLE)


@show_errors
def open_in_debug() -> None:
    """Go to the shown difference in the run that is stepped through."""
    difference = current().run.difference
    if difference is not None:
        views.show(DEBUG)
        moves.seek(difference.step)
        selection.reveal_place(difference.address)


@show_errors
def on_canvas(event: canvas.CanvasEvent) -> None:
    """Carry out an event of the canvas of Compare.

    Bodies fold here. What needs more room opens in Debug.
    """
    session = current()
    opened, difference = session.model.opened, session.run.difference
    if opened is None or difference is None:
        return
    match event.kind:
        case "fold":
            difference.folding = toggle(opened.model, difference.folding, event.address)
        case "too_dense":
            difference.folding = default_folding(opened.model, max_boxes=selection.FEWEST_BOXES)
        case "select":
            if CANVASES.shown() == BOTH_CANVASES:
                select_here(event.address)
            else:
                _show_first_of(session, event.address)
        case "open" | "unroll":
            open_in_debug()
            selection.on_canvas(event)


def _show_first_of(session: UserSession, address: str) -> None:
    """Show the first difference of the value at a static address, if it has one."""
    drifted = session.run.drifted
    for pair in drifted.drift.pairs if drifted is not None else ():
        if drifted is not None and pair.one == address and pair.first is not None:
            spot = spot_of(drifted.drift, pair, pair.first)
            show_difference(pair.first.address, pair.first.step, spot)


def begin_agreement(session: UserSession) -> None:
    """Start the comparison of the open model, once for its inputs, on a user's own machine."""
    opened = session.model.opened
    if opened is None or not LAUNCH.compares or LAUNCH.server:
        return
    if opened.pending or len(session.model.inputs) != len(opened.model.inputs):
        return
    known = session.model.agreement
    if known is not None and known.is_for(opened, session.model.inputs):
        return
    session.model.agreement = Agreement(opened, session.model.inputs)
    session.model.agreement.begin()


@show_errors
def show_comparison() -> None:
    """Show the view Compare with the model's runtime."""
    place(COMPARE_KIND, RUNTIME)
    views.show("compare")
    compare_with(RUNTIME)


def shown_structure(session: UserSession, diff: StructureDiff) -> ShownStructure:
    """Return what the canvas shows of a difference; at first, the first change."""
    shown = session.run.structure
    if shown is None or shown.of is not diff:
        shown = session.run.structure = ShownStructure(diff, default_folding(diff.model))
        own = [change for change in diff.changes if change.words != INSIDE]
        if own:
            show_change(own[0].address)
    return shown


def show_change(address: str) -> None:
    """Select an operation, and open the bodies around it."""
    shown = current().run.structure
    if shown is not None:
        shown.address = address
        shown.folding = reveal(shown.of.model, shown.folding, address)


@show_errors
def on_structure_canvas(event: canvas.CanvasEvent) -> None:
    """Carry out an event of the canvas: select an operation, fold or open a body."""
    shown = current().run.structure
    if shown is None:
        return
    match event.kind:
        case "fold" | "open":
            shown.folding = toggle(shown.of.model, shown.folding, event.address)
        case "too_dense":
            shown.folding = default_folding(shown.of.model, max_boxes=selection.FEWEST_BOXES)
        case "select":
            shown.address = event.address
