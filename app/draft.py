"""Editing the inputs of the next run: the callbacks of the inputs panel."""

from __future__ import annotations

from app import actions
from app.inputs import default_shape, named, parse_scalar, parse_shape, random_input, read_arrays, signatures
from app.session import current, widget
from engine.debug.inputs import convert


@actions.told
def run_draft() -> None:
    """The edited inputs, from the first moment."""
    actions.use_inputs(current().draft)


@actions.told
def make_up(seed_key: str) -> None:
    """Random values for every input, in the shapes that the draft has."""
    session = current()
    if session.opened is None:
        return
    seed = int(widget(seed_key) or 0)
    for position, (key, one) in enumerate(signatures(session.opened.model).items()):
        shape = session.draft[key].shape if key in session.draft else default_shape(one.shape)
        session.draft[key] = random_input(one, shape, seed + position)
    session.generation += 1


@actions.told
def upload_inputs(key: str) -> None:
    """Values of an .npz or .npy file into the draft."""
    session, file = current(), widget(key)
    if session.opened is None or file is None:
        return
    model = session.opened.model
    arrays = read_arrays(file.name, file.getvalue())
    if "" in arrays:
        arrays = {next(iter(signatures(model)), ""): arrays[""]}
    session.draft |= {name: convert(array, signatures(model)[name]) for name, array in named(model, arrays).items()}
    session.generation += 1


@actions.told
def edit_scalar(key: str, name: str) -> None:
    session = current()
    if session.opened:
        session.draft[name] = parse_scalar(widget(key), signatures(session.opened.model)[name])


@actions.told
def edit_table(key: str, name: str) -> None:
    """Takes over the cells that were edited."""
    session = current()
    if session.opened is None:
        return
    array = session.draft[name].copy()
    matrix = array.reshape(1, -1) if array.ndim == 1 else array
    for row, cells in widget(key)["edited_rows"].items():
        for column, cell in cells.items():
            if cell is not None:
                matrix[int(row), int(column)] = parse_scalar(cell, signatures(session.opened.model)[name])
    session.draft[name] = array


@actions.told
def reshape(key: str, name: str) -> None:
    """Another shape for an input of which the model leaves lengths open; it gets random values."""
    session = current()
    if session.opened:
        one = signatures(session.opened.model)[name]
        session.draft[name] = random_input(one, parse_shape(str(widget(key)), one), 0)
        session.generation += 1
