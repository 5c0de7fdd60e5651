"""What clicks in Compare do where the other run is of another model, of rounded values, or in
another runtime: drift over iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import loopscope
from loopscope.comparison import COMPARED, Spot, drift
from loopscope.errors import EngineError, InputError, shorten
from loopscope.ops import NARROWER
from loopscope.peers import (
    against_source,
    beside,
    differences,
    drift_beside,
    fates,
    runtime_of,
    source_alone,
    source_of,
)
from loopscope_app.actions import moves, selection
from loopscope_app.actions.memory_budget import with_room
from loopscope_app.actions.report_errors import afresh, told
from loopscope_app.describe.signatures import bindings, bindings_of_other
from loopscope_app.state import open_model as opening
from loopscope_app.state.background_run import Comparing
from loopscope_app.state.compare_choice import (
    CHOICE,
    CODE,
    LOOP,
    MODEL,
    PATTERN,
    ROUNDED,
    RUNTIME,
    TYPE,
    WHERE,
)
from loopscope_app.state.launch import limits, must_be_local
from loopscope_app.state.open_model import Opened
from loopscope_app.state.run_in_view import Drifted
from loopscope_app.state.source_confirmation import confirm
from loopscope_app.state.uploads import Files, has_model
from loopscope_app.state.user_session import PATIENCE, Message, UserSession, current, place, widget
from loopscope_app.state.view_choices import LENS

EVERYTHING = "*"


def compare_with_runtime(session: UserSession, opened: Opened, seconds: float) -> None:
    """Runs the present inputs once more, and in the runtime of the model, which also says what
    it makes of loops and branches.
    """
    inputs = bindings(opened.model, session.model.inputs)
    run = _run(opened.model, inputs, opened, seconds)

    def work(stopped: Callable[[], bool]) -> None:
        session.model.fates = fates(
            opened.model, seconds=seconds, document=opened.document, stopped=stopped
        )
        both = beside(run, inputs, seconds=seconds, document=opened.document, stopped=stopped)
        session.run.other_runtime = differences(both)
        found = drift_beside(both)
        if found.drift.pairs:
            session.run.drifted = Drifted(
                RUNTIME, found.runtime, found.drift, found.sentence, run, None, found.values
            )

    session.run.other_runtime = None
    _begin(
        session,
        [run],
        work,
        f"the run here is done, {runtime_of(opened.model) or 'the runtime'} runs the model too",
    )


def compare_with_source(session: UserSession, opened: Opened, seconds: float) -> None:
    """Runs the present inputs once more, in the program that the file was converted from and in the
    runtime of the model.

    The program is a user's own code, and a module that it names is imported: only a user of this
    machine may name one, and confirms it with a code that the terminal shows.
    """
    must_be_local()
    where = str(widget(WHERE) or "").strip()
    if not where:
        raise InputError(
            "name the source first: a .pt2 file, the folder of a SavedModel, or module:function"
        )
    source = source_of(where)
    confirm(where, str(widget(CODE) or ""))
    inputs = bindings(opened.model, session.model.inputs)
    run = _run(opened.model, inputs, opened, seconds)

    def work(stopped: Callable[[], bool]) -> None:
        compared = against_source if run.state == "finished" else source_alone
        session.run.source = compared(
            run, source, inputs, seconds=seconds, document=opened.document, stopped=stopped
        )

    session.run.source = None
    _begin(session, [run], work, "the run here is done, the source program and the runtime run too")


def compare_with_model(session: UserSession, opened: Opened, seconds: float) -> None:
    """Runs another model on the present inputs."""
    other = session.model.other
    if other is None:
        raise InputError("choose the other model first: a file of this machine, or an upload")
    given = bindings_of_other(opened.model, session.model.inputs, other.model)
    runs = [
        _run(opened.model, bindings(opened.model, session.model.inputs), opened, seconds),
        _run(other.model, given, opened, seconds),
    ]
    _drift(session, MODEL, other.title, runs)


def compare_rounded(session: UserSession, opened: Opened, seconds: float) -> None:
    """Runs the model with what the widgets name rounded, beside the same without; what is set by
    hand is set in both.
    """
    pattern, to = str(widget(PATTERN) or EVERYTHING).strip(), str(widget(TYPE) or NARROWER[0])
    inputs, changes = bindings(opened.model, session.model.inputs), session.run.changes
    runs = [_run(opened.model, inputs, opened, seconds, changes=changes)]
    runs.append(
        _run(opened.model, inputs, opened, seconds, changes=changes, rounding={pattern: to})
    )
    what = "everything" if pattern == EVERYTHING else shorten(pattern, 80)
    _drift(session, ROUNDED, f"{what} rounded to {to}", runs)


def _run(
    model: loopscope.Model,
    inputs: Sequence[object],
    opened: Opened,
    seconds: float,
    *,
    changes: Mapping[str, object] | None = None,
    rounding: Mapping[str, str] | None = None,
) -> loopscope.Debugger:
    bounds = replace(limits(), seconds=seconds)
    return loopscope.Debugger(
        model,
        inputs,
        limits=bounds,
        record=COMPARED,
        seed=opened.seed,
        changes=changes,
        rounding=rounding,
    )


def _drift(session: UserSession, name: str, title: str, runs: list[loopscope.Debugger]) -> None:
    one, other = runs

    def work(stopped: Callable[[], bool]) -> None:
        for run, words in ((one, "this model"), (other, title)):
            if run.state != "finished":
                raise EngineError(
                    f"the run of {words} did not finish: {run.failure or 'it was stopped'}"
                )
        found = drift(one, other, stopped=stopped)
        session.run.drifted = Drifted(name, title, found, found.sentence, one, other)

    _begin(session, runs, work, "both runs are done, their values are being compared")


def _begin(
    session: UserSession,
    runs: list[loopscope.Debugger],
    work: Callable[[Callable[[], bool]], None],
    after: str,
) -> None:
    session.run.drifted = session.run.spot = None
    place(LOOP, None)
    session.run.running = Comparing(runs, work, after=after)
    session.run.running.done(PATIENCE)
    moves.settled(session)


@afresh
def open_path(key: str) -> None:
    """The other model by the path in a text field, where users may name files of this machine."""
    if widget(key):
        must_be_local()
        _choose(with_room(lambda: opening.open_path(str(widget(key)))))


@afresh
def open_upload(key: str) -> None:
    """The other model from the files of an uploader, once a model is among them."""
    files: Files = [(file.name, file.getvalue()) for file in widget(key) or []]
    if has_model(files):
        _choose(with_room(lambda: opening.open_upload(files)))
    elif files:
        current().message = Message(
            f"{files[0][0]} holds weights: add the .xml or .onnx file that they belong to", "info"
        )


def _choose(other: Opened) -> None:
    session = current()
    session.model.other = other
    if session.run.drifted is not None and session.run.drifted.name == MODEL:
        session.run.drifted = session.run.spot = None


@told
def pick(spot: Spot) -> None:
    """One value of one iteration: the run that is stepped through goes there, and both sides are
    shown.
    """
    session = current()
    found = session.run.drifted
    if found is not None:
        session.run.spot = spot
        moment = found.drift.pairs[spot.pair].moment(found.one, spot.row)
        moves.seek(moment.step)
        selection.reveal_place(moment.address)


def show_values_of(loop: str) -> None:
    """Makes the picture show the values of one loop."""
    place(LOOP, loop)


def show_rounded(pattern: str, to: str) -> None:
    """Makes Compare ask for a rounding."""
    place(CHOICE, ROUNDED)
    place(PATTERN, pattern)
    place(TYPE, to)
    LENS.show("Compare")
