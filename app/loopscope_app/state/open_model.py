"""A model as it was opened: from the gallery, a path or an upload, with what the check says of
it and its named inputs.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import loopscope
from loopscope.checks import Report, check
from loopscope.debug import convert_input
from loopscope.errors import EngineError, ReadError, elided, shorten
from loopscope.ir import ROOT, Model, graphs
from loopscope.ops import CATALOGUE
from loopscope.read import ReadLimits, what_is_at
from loopscope.run_file import SavedRun, is_run_file, read_run
from loopscope_app.describe.backward import Backward
from loopscope_app.describe.input_files import named, read_arrays
from loopscope_app.describe.random_inputs import (
    OPEN_LENGTHS,
    Lengths,
    lengths_by_rules,
    random_inputs,
)
from loopscope_app.describe.signatures import bindings, signatures
from loopscope_app.state.model_cache import KEPT
from loopscope_app.state.uploads import MOST_UNPACKED, Files, model_among
from loopscope_samples import Sample, sample

InputSet = Mapping[str, np.ndarray]
MADE_UP = "random_seed_0"
AS_SAVED = "as_saved"
_LONGEST_NAME = 60
_MANY_NODES = 4000
"""In bodies too: beyond, a check takes longer than a picture."""
_HEAVY = 64 * 2**20
"""Bytes of weights beyond which they are not brought into memory before somebody runs the model."""
_NEEDS_WEIGHTS = "as 'weights'"
"""Part of an engine message that addresses callers from Python."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """What a session looks at; shared by sessions that opened the same file, and never written
    to.
    """

    link: str
    """``sample:NAME``, a path, or empty for an upload, which no link can reopen."""
    title: str
    model: Model
    report: Report
    sets: Mapping[str, InputSet]
    sample: Sample | None = None
    document: bytes = b""
    """What an uploaded ONNX file holds, for who asks ONNX Runtime; empty where a path says it,
    or its weights are elsewhere.
    """
    uploaded_bytes: int = 0
    """Of the files that were uploaded for it."""
    saved: SavedRun | None = None
    """The run that its file holds, where it is one of a saved run."""
    backward: Backward | None = None
    """Of the model that ``link`` names, the gradient that this one is."""
    pending: bool = False
    """It is so large that it is drawn before it is checked: the report is empty yet, and inputs
    are still to be made up.
    """

    @property
    def seed(self) -> int:
        """Of the random operations of its runs."""
        return self.saved.description.seed if self.saved else 0

    def file_name(self, graph: str = ROOT) -> str:
        """What a file is called that is made of one of its graphs, without the ending: the
        model's name first, safe on every disk.
        """
        words = [
            self.sample.name if self.sample else Path(self.title).stem,
            graph.removeprefix(ROOT),
        ]
        return re.sub(r"[\W_]+", "_", "_".join(words)).strip("_")[:80] or "model"


def open_sample(name: str) -> Opened:
    """``ReadError`` when there is no such sample."""
    one = sample(name)
    if one is None:
        raise ReadError(f"there is no sample named {name!r}")
    model, found = KEPT.read(one.model)
    report = found or check(model, CATALOGUE)
    return Opened(
        f"sample:{name}",
        one.title,
        model,
        report,
        {chosen.name: chosen.arrays() for chosen in one.sets},
        one,
    )


def open_path(path: str) -> Opened:
    """``ReadError`` when no model can be made of the file."""
    text = path.strip().strip("'\"").strip()
    if not text:
        raise ReadError("the path of the model is empty: expected that of a file")
    file = Path(text)
    with contextlib.suppress(RuntimeError):  # there is no user of that name, and so no file
        file = file.expanduser()
    if what_is_at(file) is None:
        raise ReadError(f"{elided(str(file), 200)}: there is no such file")
    if is_run_file(file.name):
        return _of_run(read_run(file), str(file.resolve()), file.name)
    model, found = KEPT.read(file)
    report = found or _checked(model)
    if report is not None:
        KEPT.note(model, report)
    return _opened(str(file.resolve()), file.name, model, report)


def _opened(
    link: str,
    title: str,
    model: Model,
    report: Report | None,
    document: bytes = b"",
    uploaded_bytes: int = 0,
) -> Opened:
    """With inputs of the first length that comes to mind, so that nobody waits for a search of
    one that fits.
    """
    if report is None:
        return Opened(
            link,
            title,
            model,
            Report(()),
            {},
            document=document,
            uploaded_bytes=uploaded_bytes,
            pending=True,
        )
    return Opened(
        link,
        title,
        model,
        report,
        _made_up(model),
        document=document,
        uploaded_bytes=uploaded_bytes,
    )


def prepared(opened: Opened, going: Callable[[str], bool]) -> Opened:
    """A pending one with its report and made-up inputs, and with its plan made, so that a run
    begins at once.

    ``going`` hears what comes next; when it says False, the model is given back as it is.
    """
    model = opened.model
    if not going("Checking the model"):
        return opened
    report = check(model, CATALOGUE)
    if not going("Making up inputs"):
        return opened
    sets = {**opened.sets, **_made_up(model, lengths_by_rules(model))}
    if not going("Planning the run"):
        return opened
    inputs = next(iter(sets.values()), {})
    if report.ok and len(inputs) == len(model.inputs):
        with contextlib.suppress(EngineError):  # the run that is begun next says it
            loopscope.Debugger(model, bindings(model, inputs), seed=opened.seed)
    KEPT.note(model, report)
    return replace(opened, report=report, sets=sets, pending=False)


def is_large(model: Model) -> bool:
    """Whether checking it, planning its run or a trial of that may keep somebody waiting."""
    nodes = [node for place in graphs(model) for node in place.graph.nodes]
    return (
        len(nodes) > _MANY_NODES
        or sum(len(node.constant.data) for node in nodes if node.constant is not None) > _HEAVY
    )


def _checked(model: Model) -> Report | None:
    """What the check says; None where that has to wait."""
    return None if is_large(model) else check(model, CATALOGUE)


def _of_run(saved: SavedRun, link: str, name: str, uploaded_bytes: int = 0) -> Opened:
    """The model of a saved run, on its inputs."""
    model = saved.model
    inputs = dict(
        zip(signatures(model), (np.asarray(value) for value in saved.inputs), strict=True)
    )
    sets = {AS_SAVED: inputs, **_made_up(model)}
    report = check(model, CATALOGUE)
    return Opened(
        link,
        name,
        model,
        report,
        sets,
        document=saved.document,
        uploaded_bytes=uploaded_bytes,
        saved=saved,
    )


def with_gradient(
    opened: Opened, backward: Backward, going: Callable[[], bool] = lambda: True
) -> Opened:
    """The model with a gradient as further outputs, on the same inputs; an ``EngineError`` says why
    there is none.

    ``going``: as of ``loopscope.gradients``.
    """
    model = loopscope.gradients(opened.model, backward.of, backward.with_respect_to, going=going)
    report = check(model, CATALOGUE)
    return Opened(
        opened.link, f"Backward of {opened.title}", model, report, opened.sets, backward=backward
    )


def with_inputs(opened: Opened, path: str) -> Opened:
    """The same with the arrays of an .npz file as its first input set; ``InputError`` when they
    are none of the model's inputs.
    """
    file = Path(path)
    given = named(opened.model, read_arrays(file.name, file.read_bytes()))
    there = signatures(opened.model)
    return replace(
        opened,
        sets={
            file.stem: {key: convert_input(array, there[key]) for key, array in given.items()},
            **opened.sets,
        },
    )


def open_upload(files: Files) -> Opened:
    """A model, with its file of weights where it has one; ``ReadError`` when something is
    missing.
    """
    run = next(((name, data) for name, data in files if is_run_file(name)), None)
    if run is not None:
        if len(files) > 1:
            raise ReadError(
                f"{shorten(run[0], _LONGEST_NAME)} is a saved run, which has its model in it: upload it alone"
            )
        return _of_run(
            read_run(run[1], limits=ReadLimits(unpacked_bytes=MOST_UNPACKED)),
            "",
            run[0],
            len(run[1]),
        )
    name, data, weights = model_among(files)
    try:
        model = loopscope.read_model(data, weights=weights)
    except ReadError as error:
        short = shorten(name, _LONGEST_NAME)
        if weights is None and _NEEDS_WEIGHTS in str(error):
            what = (
                shorten(f"{Path(name).stem}.bin", _LONGEST_NAME)
                if name.lower().endswith(".xml")
                else "the file of its data"
            )
            raise ReadError(
                f"{short} keeps its constants in a file of weights: choose it and {what} together"
            ) from error
        raise ReadError(f"{short}{', ' if error.where.line else ': '}{error}") from error
    document = data if model.dialect == "onnx" and weights is None else b""
    size = sum(len(data) for _, data in files)
    return _opened("", name, model, _checked(model), document, size)


def _made_up(model: Model, lengths: Lengths = OPEN_LENGTHS[0]) -> Mapping[str, InputSet]:
    try:
        return {MADE_UP: random_inputs(model, 0, lengths)}
    except (EngineError, ValueError):
        return {}
