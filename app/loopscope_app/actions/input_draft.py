"""Callbacks of the inputs in the tab Setup: edit the inputs of the next run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from loopscope.debug import convert_input
from loopscope.errors import InputError, shorten
from loopscope.ir import Model, Signature
from loopscope_app.actions import models, report_errors
from loopscope_app.describe.input_parsing import named, parse_scalar, parse_shape, read_arrays
from loopscope_app.describe.random_inputs import random_input, regenerate
from loopscope_app.describe.signatures import signatures
from loopscope_app.state.user_session import current, widget

LONGEST_NAME = 40


@report_errors.clear_and_show_errors
def run_draft(name_key: str) -> None:
    """Run the edited inputs from the first step; store them as an input set if a name was typed."""
    session, name = current(), str(widget(name_key) or "").strip()[:LONGEST_NAME]
    if session.model.opened is None:
        return
    if session.model.refused:
        raise InputError(next(iter(session.model.refused.values())))
    if name in session.model.opened.sets:
        raise InputError(
            f"there is an input set named {shorten(repr(name), 60)} already: choose another name"
        )
    if name:
        session.model.opened = replace(
            session.model.opened,
            sets={**session.model.opened.sets, name: dict(session.model.draft)},
        )
    models.use_inputs(session.model.draft, name)


@report_errors.clear_and_show_errors
def make_up(seed_key: str) -> None:
    """Generate random values for every input, in the shapes of the draft."""
    session = current()
    if session.model.opened is None:
        return
    session.model.refused.clear()
    seed = int(widget(seed_key) or 0)
    session.model.draft |= regenerate(session.model.opened.model, session.model.draft, seed)
    session.run.generation += 1


@report_errors.clear_and_show_errors
def upload_inputs(key: str) -> None:
    """Copy the values of an .npz or .npy file into the draft."""
    session, file = current(), widget(key)
    if session.model.opened is None or file is None:
        return
    model = session.model.opened.model
    arrays = read_arrays(file.name, file.getvalue())
    if "" in arrays:
        arrays = {_matching_input(file.name, model): arrays[""]}
    values = {
        name: convert_input(array, signatures(model)[name])
        for name, array in named(model, arrays).items()
    }
    session.model.draft |= values
    for name in values:
        session.model.refused.pop(name, None)
    session.run.generation += 1


def _matching_input(file: str, model: Model) -> str:
    """Return the input that a single array is for: the only input, or the input named like the
    file.
    """
    names = list(signatures(model))
    named_after = next((name for name in names if name == Path(file).stem), "")
    if len(names) == 1 or named_after:
        return named_after or names[0]
    example = shorten(f"{names[0]}.npy", 60)
    raise InputError(
        f"{shorten(file, 60)} is a single array, and the model has {len(names)} inputs: "
        f"name the file after one of them, such as {example}, or save all arrays with numpy.savez"
    )


@report_errors.clear_and_show_errors
def edit_scalar(key: str, name: str) -> None:
    session = current()
    if session.model.opened:
        session.model.draft[name] = _parse_or_refuse(
            name, widget(key), signatures(session.model.opened.model)[name]
        )


@report_errors.clear_and_show_errors
def edit_table(key: str, name: str) -> None:
    """Copy the edited cells into the draft."""
    session = current()
    if session.model.opened is None:
        return
    array = session.model.draft[name].copy()
    matrix = array.reshape(1, -1) if array.ndim == 1 else array
    for row, cells in widget(key)["edited_rows"].items():
        for column, cell in cells.items():
            if cell is not None:
                matrix[int(row), int(column)] = _parse_or_refuse(
                    name, cell, signatures(session.model.opened.model)[name]
                )
    session.model.draft[name] = array


def _parse_or_refuse(name: str, typed: object, signature: Signature) -> np.ndarray:
    """Parse a typed value of an input. While a value is refused, nothing can be run."""
    session = current()
    session.model.refused.pop(name, None)
    try:
        return parse_scalar(typed, signature)
    except InputError as error:
        session.model.refused[name] = str(error)
        raise


@report_errors.clear_and_show_errors
def reshape(key: str, name: str) -> None:
    """Set the shape of an input with open lengths; it gets random values."""
    session = current()
    if session.model.opened:
        signature = signatures(session.model.opened.model)[name]
        session.model.draft[name] = random_input(
            signature, parse_shape(str(widget(key)), signature), 0
        )
        session.model.refused.pop(name, None)
        session.run.generation += 1
