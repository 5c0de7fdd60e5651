"""What the screen of many runs does: showing it, running a model on many inputs, and opening one
of them in the debugger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from loopscope.debug import convert_input
from loopscope.errors import EngineError, InputError
from loopscope.ir import Model
from loopscope.sweeps import Samples, completed, of_table, samples_of, samples_said
from loopscope_app.actions import models
from loopscope_app.actions.moves import stop_if_running
from loopscope_app.actions.report_errors import afresh, told
from loopscope_app.describe.input_files import read_arrays
from loopscope_app.describe.signatures import signatures
from loopscope_app.links.codec import LONGEST_RUNS
from loopscope_app.state.background_sweep import Sweeping, bounds
from loopscope_app.state.many_runs import THE_DATA
from loopscope_app.state.open_model import Opened, open_upload
from loopscope_app.state.uploads import has_model
from loopscope_app.state.user_session import PATIENCE, Message, UserSession, current, widget


@told
def show() -> None:
    """The screen, from the debugger; a run under way ends."""
    session = current()
    stop_if_running(session)
    session.canvas.playing, session.message = False, None
    session.many.shown = True


@told
def leave() -> None:
    """Back to one run."""
    current().many.shown, current().message = False, None


@afresh
def run_words(key: str) -> None:
    """Runs what a text field says: a grid, or random inputs."""
    run_said(str(widget(key) or "").strip())


@told
def run_said(words: str) -> None:
    """Runs a grid or random inputs, said as ``loopscope sweep --inputs`` takes them; a file of
    this machine is none of them.
    """
    session = current()
    session.many.words = words[:LONGEST_RUNS]
    if session.model.opened is None:
        return
    if len(words) > LONGEST_RUNS:
        raise InputError(
            f"the inputs are said in {len(words)} characters, at most {LONGEST_RUNS} are expected: use a file"
        )
    if not words:
        raise InputError("no inputs are said: write a range such as number=1..500, or random:1000")
    opened = session.model.opened
    if words == THE_DATA and opened.sample is not None and opened.sample.data is not None:
        _begin(session, opened, samples_of(opened.model, opened.sample.data))
    else:
        _begin(session, opened, samples_said(opened.model, words))


@told
def run_data_set() -> None:
    """Runs the many inputs that lie beside the sample, and shows them."""
    show()
    run_said(THE_DATA)


@afresh
def run_file(key: str) -> None:
    """Runs the rows of an uploaded .npz, .parquet or .csv, of several the last; or several .npz,
    of which each is one run.
    """
    session, files = current(), widget(key) or []
    if session.model.opened is None or not files:
        return
    model, file, called = session.model.opened.model, files[-1], files[-1].name
    arrays = [one for one in files if one.name.lower().endswith(".npz")]
    if len(arrays) == len(files) > 1:
        in_order = sorted(arrays, key=lambda one: str(one.name))
        samples = samples_of(model, [read_arrays(one.name, one.getvalue()) for one in in_order])
        called = f"{len(files):,} files, from {in_order[0].name} to {in_order[-1].name}"
    elif file in arrays:
        samples = samples_of(model, read_arrays(file.name, file.getvalue()))
    else:
        samples = of_table(model, file.name.lower(), file.getvalue(), file.name)
    session.many.words = ""
    _begin(session, session.model.opened, samples, called)


def _begin(session: UserSession, opened: Opened, samples: Samples, file: str = "") -> None:
    """Inputs that the samples leave out have the values of the run that was open."""
    if not opened.report.ok:
        raise InputError("the model has errors, which Problems lists: it cannot run")
    if not samples.count:
        raise InputError("there is no input to run on: the file or the range is empty")
    positions = {
        position: session.model.inputs[key]
        for position, key in enumerate(signatures(opened.model))
        if key in session.model.inputs
    }
    for one in session.many.sweeps:
        one.stop()
    session.many.forget_comparison()
    session.many.sweeping = Sweeping(
        opened.model, completed(opened.model, samples, positions), bounds()
    )
    session.many.file = file
    session.many.generation += 1
    session.many.sweeping.done(PATIENCE)


@afresh
def compare_rounded(to: str) -> None:
    """The same inputs with every float rounded to a type."""
    sweeping = current().many.sweeping
    if sweeping is not None:
        _compare(current(), sweeping, sweeping.model, f"floats in {to}", {"*": to})


@afresh
def compare_model(key: str) -> None:
    """The same inputs in an uploaded model."""
    sweeping, files = (
        current().many.sweeping,
        [(file.name, file.getvalue()) for file in widget(key) or []],
    )
    if sweeping is None or not has_model(files):
        return
    opened = open_upload(files)
    if not opened.report.ok:
        raise InputError(f"{opened.title} has errors: it cannot run")
    _compare(current(), sweeping, opened.model, opened.title)


def _compare(
    session: UserSession,
    sweeping: Sweeping,
    model: Model,
    title: str,
    rounding: Mapping[str, str] | None = None,
) -> None:
    """As many runs as there are of the model that is open."""
    session.many.forget_comparison()
    within = replace(bounds(), rows=len(sweeping.rows))
    session.many.against, session.many.against_title = (
        Sweeping(model, sweeping.samples, within, rounding),
        title,
    )
    session.many.against.done(PATIENCE)


@told
def stop() -> None:
    """Ends the runs; the rows that are there stay."""
    sweeping = current().many.under_way
    if sweeping is not None:
        sweeping.stop()
        sweeping.done(PATIENCE)


def is_over(session: UserSession) -> bool:
    """Whether no runs are under way; why some have failed becomes the message."""
    if session.many.under_way is not None:
        return False
    for one in session.many.sweeps:
        error, one.error = one.error, None
        if isinstance(error, EngineError):
            session.message = Message(str(error))
        elif error is not None:
            raise error
    return True


@told
def open_sample(number: int) -> None:
    """The run on one of the inputs, in the debugger, as an input set of its own."""
    session, sweeping = current(), current().many.sweeping
    opened = session.model.opened
    if sweeping is None or opened is None or not 0 <= number < sweeping.sweep.count:
        return
    inputs = inputs_of(sweeping, number)
    name = f"sample_{number}"
    session.model.opened = replace(opened, sets={**opened.sets, name: inputs})
    session.many.shown = False
    models.use_inputs(inputs, name)


def inputs_of(sweeping: Sweeping, number: int) -> dict[str, np.ndarray]:
    """The inputs of one sample, as sessions name them."""
    given = sweeping.samples.batch(number, number + 1).inputs(0)
    return {
        key: convert_input(given[position], one)
        for position, (key, one) in enumerate(signatures(sweeping.model).items())
        if position in given
    }
