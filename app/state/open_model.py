"""A model as it was opened: from the gallery, a path or an upload, with what the check says of it and its named inputs."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

import numpy as np

import engine
from app.describe.backward import Backward
from app.describe.input_files import named, read_arrays
from app.describe.random_inputs import random_inputs
from app.describe.signatures import signatures
from app.state.uploads import MOST_UNPACKED, Files, model_among
from engine.check import Report, check
from engine.debug import convert_input
from engine.errors import EngineError, ReadError, shorten
from engine.ir import ROOT, Model
from engine.ops import CATALOGUE
from engine.read import ReadLimits
from engine.run_file import SavedRun, is_run_file, read_run
from sample_models import Sample, sample

InputSet = Mapping[str, np.ndarray]
MADE_UP = "random_seed_0"
AS_SAVED = "as_saved"
_LONGEST_NAME = 60
_NEEDS_WEIGHTS = "as 'weights'"
"""Part of an engine message that addresses callers from Python."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """What a session looks at; shared by sessions that opened the same file, and never written to."""

    link: str
    """``sample:NAME``, a path, or empty for an upload, which no link can reopen."""
    title: str
    model: Model
    report: Report
    sets: Mapping[str, InputSet]
    sample: Sample | None = None
    document: bytes = b""
    """What an uploaded ONNX file holds, for who asks ONNX Runtime; empty where a path says it, or its weights are elsewhere."""
    uploaded_bytes: int = 0
    """Of the files that were uploaded for it."""
    saved: SavedRun | None = None
    """The run that its file holds, where it is one of a saved run."""
    backward: Backward | None = None
    """Of the model that ``link`` names, the gradient that this one is."""

    @property
    def seed(self) -> int:
        """Of the random operations of its runs."""
        return self.saved.description.seed if self.saved else 0

    def file_name(self, graph: str = ROOT) -> str:
        """What a file is called that is made of one of its graphs, without the ending: the model's name first, safe on every disk."""
        words = [self.sample.name if self.sample else Path(self.title).stem, graph.removeprefix(ROOT)]
        return re.sub(r"[\W_]+", "_", "_".join(words)).strip("_")[:80] or "model"


def open_sample(name: str) -> Opened:
    """``ReadError`` when there is no such sample."""
    one = sample(name)
    if one is None:
        raise ReadError(f"there is no sample named {name!r}")
    model, report = KEPT.read(one.model)
    return Opened(f"sample:{name}", one.title, model, report, {chosen.name: chosen.arrays() for chosen in one.sets}, one)


def open_path(path: str) -> Opened:
    """``ReadError`` when no model can be made of the file."""
    file = Path(path.strip().strip("'\"")).expanduser()
    if not file.exists():
        raise ReadError(f"{file}: there is no such file")
    if is_run_file(file.name):
        return _of_run(read_run(file), str(file.resolve()), file.name)
    model, report = KEPT.read(file)
    return Opened(str(file.resolve()), file.name, model, report, _made_up(model))


def _of_run(saved: SavedRun, link: str, name: str, uploaded_bytes: int = 0) -> Opened:
    """The model of a saved run, on its inputs."""
    model = saved.model
    inputs = dict(zip(signatures(model), (np.asarray(value) for value in saved.inputs), strict=True))
    sets = {AS_SAVED: inputs, **_made_up(model)}
    report = check(model, CATALOGUE)
    return Opened(link, name, model, report, sets, document=saved.document, uploaded_bytes=uploaded_bytes, saved=saved)


def with_gradient(opened: Opened, backward: Backward) -> Opened:
    """The model with a gradient as further outputs, on the same inputs; an ``EngineError`` says why there is none."""
    model = engine.gradients(opened.model, backward.of, backward.with_respect_to)
    report = check(model, CATALOGUE)
    return Opened(opened.link, f"Backward of {opened.title}", model, report, opened.sets, backward=backward)


def with_inputs(opened: Opened, path: str) -> Opened:
    """The same with the arrays of an .npz file as its first input set; ``InputError`` when they are none of the model's inputs."""
    file = Path(path)
    given = named(opened.model, read_arrays(file.name, file.read_bytes()))
    there = signatures(opened.model)
    return replace(opened, sets={file.stem: {key: convert_input(array, there[key]) for key, array in given.items()}, **opened.sets})


def open_upload(files: Files) -> Opened:
    """A model, with its file of weights where it has one; ``ReadError`` when something is missing."""
    run = next(((name, data) for name, data in files if is_run_file(name)), None)
    if run is not None:
        if len(files) > 1:
            raise ReadError(f"{shorten(run[0], _LONGEST_NAME)} is a saved run, which has its model in it: upload it alone")
        return _of_run(read_run(run[1], limits=ReadLimits(unpacked_bytes=MOST_UNPACKED)), "", run[0], len(run[1]))
    name, data, weights = model_among(files)
    try:
        model = engine.read_model(data, weights=weights)
    except ReadError as error:
        short = shorten(name, _LONGEST_NAME)
        if weights is None and _NEEDS_WEIGHTS in str(error):
            what = shorten(f"{Path(name).stem}.bin", _LONGEST_NAME) if name.lower().endswith(".xml") else "the file of its data"
            raise ReadError(f"{short} keeps its constants in a file of weights: choose it and {what} together") from error
        raise ReadError(f"{short}{', ' if error.where.line else ': '}{error}") from error
    document = data if model.dialect == "onnx" and weights is None else b""
    size = sum(len(data) for _, data in files)
    return Opened("", name, model, check(model, CATALOGUE), _made_up(model), document=document, uploaded_bytes=size)


def _beside(file: Path) -> list[Path]:
    """The files that a model is read from."""
    return [one for one in (file, file.with_suffix(".bin"), file.with_suffix(".index"), file / "saved_model.pb") if one.exists()]


@dataclass(eq=False)
class Kept:
    """Models that were read from files, the latest ones, as long as their files have no more bytes together than allowed."""

    most_bytes: int
    _found: OrderedDict[str, tuple[tuple[int, ...], int, Model, Report]] = field(
        default_factory=OrderedDict[str, tuple[tuple[int, ...], int, Model, Report]]
    )
    """By path: when its files were changed, their bytes, and what was made of them."""
    _lock: Lock = field(default_factory=Lock)

    def read(self, file: Path) -> tuple[Model, Report]:
        """The model of a file and what the check says of it; read again when the file or its weights have changed on disk."""
        stats = [one.stat() for one in _beside(file)]
        age = tuple(one.st_mtime_ns for one in stats)
        with self._lock:
            kept = self._found.get(str(file))
            if kept is not None and kept[0] == age:
                self._found.move_to_end(str(file))
                return kept[2:]
        model = engine.read_model(str(file))
        report = check(model, CATALOGUE)
        with self._lock:
            self._found[str(file)] = age, sum(one.st_size for one in stats), model, report
            self._found.move_to_end(str(file))
            while sum(size for _, size, _, _ in self._found.values()) > self.most_bytes:
                self._found.popitem(last=False)
        return model, report


KEPT = Kept(256 * 2**20)


def _made_up(model: Model) -> Mapping[str, InputSet]:
    try:
        return {MADE_UP: random_inputs(model, 0)}
    except (EngineError, ValueError):
        return {}
