"""An opened model: from the gallery, a path or an upload, with its check report and input sets."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
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
from loopscope_app.describe.gradients import Backward
from loopscope_app.describe.input_parsing import named, read_arrays
from loopscope_app.describe.random_inputs import (
    OPEN_LENGTHS,
    Lengths,
    lengths_by_rules,
    random_inputs,
)
from loopscope_app.describe.signatures import bindings, signatures
from loopscope_app.state.model_cache import MODEL_CACHE
from loopscope_app.state.uploads import MOST_UNPACKED, Files, model_among
from loopscope_samples import Sample, SampleTrace, sample, sample_trace

InputSet = Mapping[str, np.ndarray]
MADE_UP = "random_seed_0"
AS_SAVED = "as_saved"
_LONGEST_NAME = 60
_MANY_NODES = 4000
"""Number of nodes, with bodies, above which a check takes longer than a picture."""
_HEAVY = 64 * 2**20
"""Size of weights in bytes above which they are loaded only for a run."""
_NEEDS_WEIGHTS = "as 'weights'"
"""Part of an engine message that addresses callers from Python."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """An opened model. Sessions that opened the same file share it, and none changes it."""

    link: str
    """``sample:NAME``, a path, or empty for an upload, which no link can reopen."""
    title: str
    model: Model
    report: Report
    sets: Mapping[str, InputSet]
    sample: Sample | None = None
    trace: SampleTrace | None = None
    document: bytes = b""
    """Bytes of an uploaded ONNX model, needed to run it in ONNX Runtime; empty if the model has a
    path or external weights.
    """
    uploaded_bytes: int = 0
    """Size of the uploaded files."""
    saved: SavedRun | None = None
    """The saved run in the file; None for a model."""
    backward: Backward | None = None
    """The gradient of the model at ``link`` that this model is; None for the model itself."""
    operators: tuple[str, ...] = ()
    """Addresses of operators of the model at ``link`` that this model has as loops."""
    forward: Opened | None = None
    """The model that this gradient is of; None for the model itself."""
    pending: bool = False
    """True for a large model that is drawn before it is checked: it has an empty report and no
    generated inputs yet.
    """

    @property
    def seed(self) -> int:
        """Seed of the random operations."""
        return self.saved.description.seed if self.saved else 0

    @property
    def card(self) -> str:
        """A sentence about the model; empty for a file without one."""
        if self.sample is not None:
            return self.sample.card
        if self.trace is not None:
            return self.trace.card
        return self.backward.words if self.backward else self.model.converted_from

    def file_name(self, graph: str = ROOT) -> str:
        """Return a file name without ending for one of the model's graphs, valid on every file
        system.
        """
        words = [
            self.sample.name if self.sample else Path(self.title).stem,
            graph.removeprefix(ROOT),
        ]
        return re.sub(r"[\W_]+", "_", "_".join(words)).strip("_")[:80] or "model"


def open_sample(name: str) -> Opened:
    """Open a sample, which may be a trace. Raise ``ReadError`` if it does not exist."""
    trace = sample_trace(name)
    if trace is not None:
        return _opened_trace(trace)
    entry = sample(name)
    if entry is None:
        raise ReadError(f"there is no sample named {name!r}")
    model, noted = MODEL_CACHE.read(entry.model)
    report = noted or check(model, CATALOGUE)
    return Opened(
        f"sample:{name}",
        entry.title,
        model,
        report,
        {input_set.name: input_set.arrays() for input_set in entry.sets},
        entry,
    )


def _opened_trace(trace: SampleTrace) -> Opened:
    model, noted = MODEL_CACHE.read(trace.model)
    report = noted or check(model, CATALOGUE)
    return Opened(f"sample:{trace.name}", trace.title, model, report, {"": {}}, trace=trace)


def open_path(path: str) -> Opened:
    """Open a file. Raise ``ReadError`` if it is not a model."""
    text = path.strip().strip("'\"").strip()
    if not text:
        raise ReadError("the path of the model is empty: expected the path of a file")
    file = Path(text)
    with contextlib.suppress(RuntimeError):  # no user has that name, so no file exists
        file = file.expanduser()
    if what_is_at(file) is None:
        raise ReadError(f"{elided(str(file), 200)}: there is no such file")
    if is_run_file(str(file)):
        return _opened_run(read_run(file), str(file.resolve()), file.name)
    model, noted = MODEL_CACHE.read(file)
    report = noted or _checked(model)
    if report is not None:
        MODEL_CACHE.note(model, report)
    return _opened(str(file.resolve()), file.name, model, report)


def _opened(
    link: str,
    title: str,
    model: Model,
    report: Report | None,
    document: bytes = b"",
    uploaded_bytes: int = 0,
) -> Opened:
    """Return an opened model with generated inputs of a default length, without searching for a
    fitting one.
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
        _generated_inputs(model),
        document=document,
        uploaded_bytes=uploaded_bytes,
    )


def prepared(opened: Opened, going: Callable[[str], bool]) -> Opened:
    """Return a pending model with its report, generated inputs and plan, so that a run begins at
    once.

    ``going`` receives the next phase. If it returns False, the model is returned unchanged.
    """
    model = opened.model
    if not going("Checking the model"):
        return opened
    report = check(model, CATALOGUE)
    if not going("Generating inputs"):
        return opened
    sets = {**opened.sets, **_generated_inputs(model, lengths_by_rules(model))}
    if not going("Planning the run"):
        return opened
    inputs = next(iter(sets.values()), {})
    if report.ok and len(inputs) == len(model.inputs):
        with contextlib.suppress(EngineError):  # the next run reports the error
            loopscope.Debugger(model, bindings(model, inputs), seed=opened.seed)
    MODEL_CACHE.note(model, report)
    return replace(opened, report=report, sets=sets, pending=False)


def is_large(model: Model) -> bool:
    """Return True if checking a model, planning its run or a trial run may take long."""
    nodes = [node for place in graphs(model) for node in place.graph.nodes]
    return (
        len(nodes) > _MANY_NODES
        or sum(len(node.constant.data) for node in nodes if node.constant is not None) > _HEAVY
    )


def _checked(model: Model) -> Report | None:
    """Return the check report, or None if the check takes long."""
    return None if is_large(model) else check(model, CATALOGUE)


def _opened_run(saved: SavedRun, link: str, name: str, uploaded_bytes: int = 0) -> Opened:
    """Return the model of a saved run with the inputs of the run."""
    model = saved.model
    inputs = dict(
        zip(signatures(model), (np.asarray(value) for value in saved.inputs), strict=True)
    )
    sets = {AS_SAVED: inputs, **_generated_inputs(model)}
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
    """Return the model with its gradient as further outputs, on the same inputs.

    Raise ``EngineError`` if the model cannot be differentiated. ``going`` is passed to
    ``loopscope.gradients``.
    """
    model = loopscope.gradients(opened.model, backward.of, backward.with_respect_to, going=going)
    report = check(model, CATALOGUE)
    title = f"Gradients of {opened.title}"
    return Opened(opened.link, title, model, report, opened.sets, backward=backward, forward=opened)


def with_loops(opened: Opened, operators: Sequence[str]) -> Opened:
    """Return the model with these operators as loops, and all other operators closed.

    Raise ``EngineError`` if an address is not that of an operator that can be opened.
    """
    closed = opened.model.unopened or opened.model
    model = loopscope.open_as_loop(closed, operators) if operators else closed
    return replace(opened, model=model, report=check(model, CATALOGUE), operators=tuple(operators))


def with_inputs(opened: Opened, path: str) -> Opened:
    """Return the model with the arrays of an .npz file as its first input set.

    Raise ``InputError`` if they are not inputs of the model.
    """
    file = Path(path)
    arrays = named(opened.model, read_arrays(file.name, file.read_bytes()))
    by_name = signatures(opened.model)
    return replace(
        opened,
        sets={
            file.stem: {key: convert_input(array, by_name[key]) for key, array in arrays.items()},
            **opened.sets,
        },
    )


def open_upload(files: Files) -> Opened:
    """Open uploaded files: a model, with its weights if it has any.

    Raise ``ReadError`` if a file is missing.
    """
    run = next(((name, data) for name, data in files if is_run_file(name, data)), None)
    if run is not None:
        if len(files) > 1:
            name = shorten(run[0], _LONGEST_NAME)
            raise ReadError(f"{name} is a saved run, which contains its model: upload it alone")
        return _opened_run(
            read_run(run[1], limits=ReadLimits(unpacked_bytes=MOST_UNPACKED)),
            "",
            run[0],
            len(run[1]),
        )
    name, data, weights = model_among(files)
    try:
        model = loopscope.read_model(data, weights=weights)
    except ReadError as error:
        short_name = shorten(name, _LONGEST_NAME)
        if weights is None and _NEEDS_WEIGHTS in str(error):
            missing = (
                shorten(f"{Path(name).stem}.bin", _LONGEST_NAME)
                if name.lower().endswith(".xml")
                else "the file of its data"
            )
            raise ReadError(
                f"{short_name} stores its constants in a file of weights: "
                f"upload it and {missing} together"
            ) from error
        raise ReadError(f"{short_name}{', ' if error.where.line else ': '}{error}") from error
    document = data if model.dialect == "onnx" and weights is None else b""
    size = sum(len(data) for _, data in files)
    return _opened("", name, model, _checked(model), document, size)


def _generated_inputs(model: Model, lengths: Lengths = OPEN_LENGTHS[0]) -> Mapping[str, InputSet]:
    try:
        return {MADE_UP: random_inputs(model, 0, lengths)}
    except (EngineError, ValueError):
        return {}
