"""Actions of Compare with another model, rounded values, another runtime or the source program.

A source program runs code of this machine, so a code that is printed in the terminal has to be
entered in the page. A page of another origin may press the app's buttons where a rule of the server
has a gap, but it cannot read the terminal.
"""

from __future__ import annotations

import hmac
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

import loopscope
from loopscope.comparison import COMPARED, drift, structure_diff
from loopscope.errors import EngineError, InputError, neutral, shorten
from loopscope.ir import is_trace
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
from loopscope_app.actions import moves, views
from loopscope_app.actions.memory_budget import with_room
from loopscope_app.actions.report_errors import clear_and_show_errors
from loopscope_app.actions.runs import new_run
from loopscope_app.describe.both_runs import Drifted
from loopscope_app.describe.signatures import bindings, bindings_of_other
from loopscope_app.state import open_model as opening
from loopscope_app.state.background_run import Comparing
from loopscope_app.state.launch import must_be_local
from loopscope_app.state.open_model import Opened
from loopscope_app.state.uploads import Files, has_model
from loopscope_app.state.user_session import PATIENCE, Message, UserSession, current, place, widget
from loopscope_app.state.view_choices import (
    BY_ITERATION,
    COMPARE_KIND,
    COMPARE_LOOP,
    COMPARE_SHOWN,
    MODEL,
    ROUNDED,
    ROUNDED_PATTERN,
    ROUNDED_TYPE,
    RUNTIME,
    SOURCE_CODE,
    SOURCE_WHERE,
)

EVERYTHING = "*"


def compare_with_runtime(session: UserSession, opened: Opened, seconds: float) -> None:
    """Run the current inputs again, here and in the model's runtime.

    The runtime also reports what it runs in place of loops and branches.
    """
    inputs = bindings(opened.model, session.model.inputs)
    run = _run(opened, inputs, seconds)

    def work(stopped: Callable[[], bool]) -> None:
        session.model.fates = fates(
            opened.model, seconds=seconds, document=opened.document, stopped=stopped
        )
        runs = beside(run, inputs, seconds=seconds, document=opened.document, stopped=stopped)
        session.run.other_runtime = differences(runs)
        result = drift_beside(runs)
        if result.drift.pairs:
            session.run.drifted = Drifted(
                RUNTIME, result.runtime, result.drift, result.sentence, run, None, result.values
            )

    session.run.other_runtime = None
    _begin(
        session,
        [run],
        work,
        f"the run here is done, {runtime_of(opened.model) or 'the runtime'} is running the model",
    )


def compare_with_source(session: UserSession, opened: Opened, seconds: float) -> None:
    """Run the current inputs again, in the source program and in the model's runtime.

    The program is a user's own code, and a module that it names is imported. Only a user of this
    machine may name one, and must confirm it with a code that the terminal shows.
    """
    must_be_local()
    where = str(widget(SOURCE_WHERE) or "").strip()
    if not where:
        raise InputError(
            "expected a source: a .pt2 file, the folder of a SavedModel, or module:function"
        )
    source = source_of(where)
    confirm(where, str(widget(SOURCE_CODE) or ""))
    inputs = bindings(opened.model, session.model.inputs)
    run = _run(opened, inputs, seconds)

    def work(stopped: Callable[[], bool]) -> None:
        compare = against_source if run.state == "finished" else source_alone
        session.run.source = compare(
            run, source, inputs, seconds=seconds, document=opened.document, stopped=stopped
        )

    session.run.source = None
    after = "the run here is done, the source program and the runtime are running"
    _begin(session, [run], work, after)


def compare_with_model(session: UserSession, opened: Opened, seconds: float) -> None:
    """Compare with another model on the current inputs."""
    other = session.model.other
    if other is None:
        raise InputError("expected another model: a path on this computer, or an upload")
    inputs = bindings_of_other(opened.model, session.model.inputs, other.model)
    runs = [
        _run(opened, bindings(opened.model, session.model.inputs), seconds),
        _run(opened, inputs, seconds, model=other.model),
    ]
    _drift(session, MODEL, other.title, runs)


def compare_rounded(session: UserSession, opened: Opened, seconds: float) -> None:
    """Compare the model with itself rounded as the widgets say; values set by hand are set in
    both.
    """
    pattern, to = (
        str(widget(ROUNDED_PATTERN) or EVERYTHING).strip(),
        str(widget(ROUNDED_TYPE) or NARROWER[0]),
    )
    inputs, changes = bindings(opened.model, session.model.inputs), session.run.changes
    runs = [
        _run(opened, inputs, seconds, changes=changes),
        _run(opened, inputs, seconds, changes=changes, rounding={pattern: to}),
    ]
    scope = "everything" if pattern == EVERYTHING else shorten(pattern, 80)
    _drift(session, ROUNDED, f"{scope} rounded to {to}", runs)


def _run(
    opened: Opened,
    inputs: Sequence[object],
    seconds: float,
    *,
    model: loopscope.Model | None = None,
    changes: Mapping[str, object] | None = None,
    rounding: Mapping[str, str] | None = None,
) -> loopscope.Debugger:
    return new_run(
        opened,
        inputs,
        model=model,
        seconds=seconds,
        record=COMPARED,
        changes=changes,
        rounding=rounding,
    )


def _drift(session: UserSession, name: str, title: str, runs: list[loopscope.Debugger]) -> None:
    left, right = runs

    def work(stopped: Callable[[], bool]) -> None:
        for run, words in ((left, "this model"), (right, title)):
            if run.state != "finished":
                raise EngineError(
                    f"the run of {words} did not finish: {run.failure or 'it was stopped'}"
                )
        result = drift(left, right, stopped=stopped)
        has_structure = name == MODEL and not is_trace(left.model) and not is_trace(right.model)
        session.run.drifted = Drifted(
            name,
            title,
            result,
            result.sentence,
            left,
            right,
            structure=structure_diff(left, right) if has_structure else None,
        )

    _begin(session, runs, work, "both runs are done, their values are being compared")


def _begin(
    session: UserSession,
    runs: list[loopscope.Debugger],
    work: Callable[[Callable[[], bool]], None],
    after: str,
) -> None:
    session.run.drifted = session.run.difference = None
    session.run.compared_run, session.run.compared_with = runs[0], None
    place(COMPARE_LOOP, None)
    session.run.running = Comparing(runs, work, after=after)
    session.run.running.done(PATIENCE)
    moves.settled(session)


@clear_and_show_errors
def open_path(key: str) -> None:
    """Open the other model by the path in a text field, if users may name files of this machine."""
    if widget(key):
        must_be_local()
        _choose(with_room(lambda: opening.open_path(str(widget(key)))))


@clear_and_show_errors
def open_upload(key: str) -> None:
    """Open the other model from the uploaded files if a model is among them."""
    files: Files = [(file.name, file.getvalue()) for file in widget(key) or []]
    if has_model(files):
        _choose(with_room(lambda: opening.open_upload(files)))
    elif files:
        current().message = Message(
            f"{files[0][0]} contains weights: add the .xml or .onnx file that they belong to",
            "info",
        )


def _choose(other: Opened) -> None:
    session = current()
    session.model.other = other
    if session.run.drifted is not None and session.run.drifted.name == MODEL:
        session.run.drifted = session.run.difference = None


def show_values_of(loop: str) -> None:
    """Show the errors of the values of one loop by iteration."""
    place(COMPARE_LOOP, loop)
    place(COMPARE_SHOWN, BY_ITERATION)


def show_rounded(pattern: str, to: str) -> None:
    """Set the widgets of Compare to a rounding."""
    place(COMPARE_KIND, ROUNDED)
    place(ROUNDED_PATTERN, pattern)
    place(ROUNDED_TYPE, to)
    views.show("compare")


_codes_lock = Lock()
_codes: dict[str, str] = {}
_confirmed: set[str] = set()


def confirm(program: str, entered: str) -> None:
    """Return if the code of this program was entered; else print a code and raise ``InputError``.

    After a wrong code, the terminal shows another one.
    """
    with _codes_lock:
        if program in _confirmed:
            return
        code = _codes.pop(program, "")
        if code and hmac.compare_digest(code.encode(), entered.strip().lower().encode()):
            _confirmed.add(program)
            return
        keep = bool(code) and not entered.strip()
        new = code if keep else secrets.token_hex(5)
        _codes[program] = new
    name = neutral(program, 200)
    if sys.stdout is not None:
        sys.stdout.write(f"Loopscope: to run the source program {name}, enter {new} in the page\n")
        sys.stdout.flush()
    wrong = "this code does not belong to the program"
    reason = wrong if entered.strip() else "a source program runs code on this computer"
    raise InputError(
        f"{reason}: enter the code that Loopscope's terminal shows for {shorten(program)!r}, "
        "then press Compare again"
    )
