"""Actions of the view Many runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from loopscope.debug import convert_input
from loopscope.errors import EngineError, InputError
from loopscope.ir import Model
from loopscope.sweeps import Samples, completed, of_table, samples_of, samples_said
from loopscope_app.actions import models, moves, views
from loopscope_app.actions.report_errors import clear_and_show_errors, show_errors
from loopscope_app.describe.input_parsing import read_arrays
from loopscope_app.describe.input_words import input_words
from loopscope_app.describe.signatures import signatures
from loopscope_app.links.codec import LONGEST_RUNS
from loopscope_app.state.many_runs import THE_DATA, Sweeping, bounds
from loopscope_app.state.open_model import Opened, open_upload
from loopscope_app.state.uploads import has_model
from loopscope_app.state.user_session import PATIENCE, Message, UserSession, current, widget
from loopscope_app.state.view_choices import DEBUG


@show_errors
def begin_default(words: str) -> None:
    """Run the default inputs of the view once, unless inputs were run or stopped before."""
    session = current()
    if session.many.sweeping is None and not session.many.has_begun and words:
        session.many.has_begun = True
        run_described(words)


@clear_and_show_errors
def run_words(key: str) -> None:
    """Run the inputs that a text field describes: a grid, or random inputs."""
    run_described(str(widget(key) or "").strip())


@show_errors
def run_described(words: str) -> None:
    """Run a grid or random inputs, in the syntax of ``loopscope sweep --inputs`` without files."""
    session = current()
    session.many.words = words[:LONGEST_RUNS]
    if session.model.opened is None:
        return
    if len(words) > LONGEST_RUNS:
        raise InputError(
            f"the inputs have {len(words)} characters, expected at most {LONGEST_RUNS}: use a file"
        )
    if not words:
        raise InputError("expected inputs: a range such as number=1..500, or random:1000")
    opened = session.model.opened
    if words == THE_DATA and opened.sample is not None and opened.sample.data is not None:
        _begin(session, opened, samples_of(opened.model, opened.sample.data))
    else:
        _begin(session, opened, samples_said(opened.model, words))


@show_errors
def run_data_set() -> None:
    """Run the data set of the sample, and show the view."""
    views.show("many")
    run_described(THE_DATA)


@clear_and_show_errors
def run_file(key: str) -> None:
    """Run an uploaded file: the rows of the last .npz, .parquet or .csv, or several .npz, one run
    each.
    """
    session, files = current(), widget(key) or []
    if session.model.opened is None or not files:
        return
    model, file, title = session.model.opened.model, files[-1], files[-1].name
    arrays = [upload for upload in files if upload.name.lower().endswith(".npz")]
    if len(arrays) == len(files) > 1:
        in_order = sorted(arrays, key=lambda upload: str(upload.name))
        contents = [read_arrays(upload.name, upload.getvalue()) for upload in in_order]
        samples = samples_of(model, contents)
        title = f"{len(files):,} files, from {in_order[0].name} to {in_order[-1].name}"
    elif file in arrays:
        samples = samples_of(model, read_arrays(file.name, file.getvalue()))
    else:
        samples = of_table(model, file.name.lower(), file.getvalue(), file.name)
    session.many.words = ""
    _begin(session, session.model.opened, samples, title)


def _begin(session: UserSession, opened: Opened, samples: Samples, file: str = "") -> None:
    """Start a sweep. Inputs that the samples omit have the values of the open run.

    ``file`` is the title of an uploaded file; empty for inputs in words.
    """
    if not opened.report.ok:
        raise InputError("the model has errors (see Problems): it cannot run")
    if not samples.count:
        raise InputError("the file or the range is empty: expected at least one input")
    positions = {
        position: session.model.inputs[key]
        for position, key in enumerate(signatures(opened.model))
        if key in session.model.inputs
    }
    for sweep in session.many.sweeps:
        sweep.stop()
    session.many.forget_comparison()
    session.many.sweeping = Sweeping(
        opened.model, completed(opened.model, samples, positions), bounds()
    )
    session.many.file = file
    session.many.generation += 1
    session.many.sweeping.done(PATIENCE)


@clear_and_show_errors
def compare_rounded(to: str) -> None:
    """Compare with a sweep on the same inputs in which every float is rounded to a type."""
    sweeping = current().many.sweeping
    if sweeping is not None:
        _compare(current(), sweeping, sweeping.model, f"floats in {to}", {"*": to})


@clear_and_show_errors
def compare_model(key: str) -> None:
    """Compare with a sweep of an uploaded model on the same inputs."""
    sweeping = current().many.sweeping
    files = [(file.name, file.getvalue()) for file in widget(key) or []]
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
    """Start a second sweep with as many runs as the first one has."""
    session.many.forget_comparison()
    limits = replace(bounds(), rows=len(sweeping.rows))
    session.many.against = Sweeping(model, sweeping.samples, limits, rounding)
    session.many.against_title = title
    session.many.against.done(PATIENCE)


@show_errors
def stop() -> None:
    """Stop the sweeps; finished rows stay."""
    sweeping = current().many.under_way
    if sweeping is not None:
        sweeping.stop()
        sweeping.done(PATIENCE)


def is_over(session: UserSession) -> bool:
    """Return True if no sweep is under way.

    An ``EngineError`` of a sweep becomes the message; any other error is raised.
    """
    if session.many.under_way is not None:
        return False
    for sweep in session.many.sweeps:
        error, sweep.error = sweep.error, None
        if isinstance(error, EngineError):
            session.message = Message(str(error))
        elif error is not None:
            raise error
    return True


@show_errors
def open_sample(number: int) -> None:
    """Open the finished run of one sample in Debug, under the name of its inputs."""
    session, sweeping = current(), current().many.sweeping
    opened = session.model.opened
    if sweeping is None or opened is None or not 0 <= number < sweeping.sweep.count:
        return
    inputs = inputs_of(sweeping, number)
    name = input_words(opened.model, inputs, session.model.inputs) or f"run {number}"
    session.model.opened = replace(opened, sets={**opened.sets, name: inputs})
    views.show(DEBUG)
    models.use_inputs(inputs, name)
    moves.go(lambda debugger: debugger.run())


def inputs_of(sweeping: Sweeping, number: int) -> dict[str, np.ndarray]:
    """Return the inputs of one sample by the session's input names."""
    values = sweeping.samples.batch(number, number + 1).inputs(0)
    return {
        key: convert_input(values[position], signature)
        for position, (key, signature) in enumerate(signatures(sweeping.model).items())
        if position in values
    }
