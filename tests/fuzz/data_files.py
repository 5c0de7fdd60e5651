"""Files of data and addresses of the page, damaged and read as the app and the commands read
them: nothing but ``EngineError``.
"""

from __future__ import annotations

import io
import json
import random
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from onnx.parser import parse_model

import loopscope
from loopscope.debug import Pause
from loopscope.errors import EngineError
from loopscope.explain.ask import ask
from loopscope.ir import ElementType
from loopscope.ops.stored import packed
from loopscope.run_file import read_run, resume
from loopscope.sweeps import Samples, Sweep, completed, of_table, samples_of, samples_said, sweep
from loopscope.view import Folding
from loopscope.view.build import graph_view
from loopscope.view.node_data import node_colours, read_node_data
from loopscope.view.overlay import overlay_at
from loopscope.view.overlay_data import Marks
from loopscope_app.command.given_inputs import read_inputs
from loopscope_app.describe.canvas_boxes import at_window
from loopscope_app.describe.gradients import Backward
from loopscope_app.describe.input_parsing import named, read_arrays
from loopscope_app.describe.signatures import bindings, signatures
from loopscope_app.links.codec import Link, Window, read, written
from loopscope_samples import samples
from tests.engine.run_file.test_hostile_runs import questions
from tests.engine.run_file.test_stored_files import STORED
from tests.fuzz.data_damage import archived

LIMITS = loopscope.Limits(iterations=2_000, seconds=1, memory_bytes=2**26)
_ROWS = 3
_FORMS = """<ir_version: 9, opset_import: ["" : 20]>
main (bfloat16[2] narrow, string[2] texts, seq(float[n]) rows, optional(float[2]) maybe) => (bfloat16[2] a, string[2] b, int64 c, bool d) {
    a = Add (narrow, narrow)
    b = StringConcat (texts, texts)
    c = SequenceLength (rows)
    d = OptionalHasElement (maybe)
}"""


@dataclass(frozen=True, slots=True)
class DataKind:
    """Files of one kind: sound ones, and what reads them."""

    name: str
    sound: Callable[[], tuple[bytes, ...]]
    use: Callable[[bytes, random.Random], bool]
    """Whether anything could be read in the file."""


# -- what they are read for
# -----------------------------------------------------------------------------------------------


@cache
def _model(name: str) -> loopscope.Model:
    return loopscope.read_model(next(one.model for one in samples() if one.name == name))


@cache
def _document_of_forms() -> bytes:
    return bytes(parse_model(_FORMS).SerializeToString())


@cache
def _model_of_forms() -> loopscope.Model:
    return loopscope.read_model(_document_of_forms())


@cache
def _ended(name: str) -> loopscope.Debugger:
    debugger = loopscope.Debugger(_model(name), _given(name), limits=LIMITS)
    debugger.run()
    return debugger


@cache
def _given(name: str) -> Mapping[str, np.ndarray]:
    return next(one for one in samples() if one.name == name).sets[0].arrays()


def _npz(**arrays: Any) -> bytes:
    stored = io.BytesIO()
    np.savez(stored, **arrays)
    return stored.getvalue()


# -- inputs of one run
# ----------------------------------------------------------------------------------------------------


@cache
def _input_files() -> tuple[bytes, ...]:
    forms = {
        "narrow": np.ones(2, ElementType.BF16.dtype),
        "texts": np.array(["a", "b\0"], object),
        "rows": (np.ones(2, np.float32), np.zeros(0, np.float32)),
        "maybe": None,
    }
    entries = {f"{name}.npy": _npy(array) for name, array in packed(forms).items()}
    return (
        _npz(**_given("collatz")),
        _npz(**_given("truncated_training")),
        _npy(np.array(3)),
        archived(entries),
        archived(entries),
    )


def _npy(array: np.ndarray) -> bytes:
    stored = io.BytesIO()
    np.save(stored, array, allow_pickle=False)
    return stored.getvalue()


def _read_inputs(data: bytes, dice: random.Random) -> bool:
    finished = False
    for model in (_model("collatz"), _model("truncated_training"), _model_of_forms()):
        with suppress(EngineError):
            arrays = read_arrays("inputs.npz", data)
            given = named(
                model, {next(iter(signatures(model))): arrays[""]} if "" in arrays else arrays
            )
            if given.keys() == signatures(model).keys():
                finished |= loopscope.run(model, bindings(model, given), limits=LIMITS).finished
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.npz"
        path.write_bytes(data)
        with suppress(EngineError):
            loopscope.run(
                _model_of_forms(), read_inputs(str(path), _model_of_forms()), limits=LIMITS
            )
        with suppress(EngineError):
            loopscope.Session(_model("collatz")).load(path)
    return finished


# -- inputs of many runs
# --------------------------------------------------------------------------------------------------


@cache
def _data_sets() -> tuple[bytes, ...]:
    training = {
        name: np.stack([value] * _ROWS) for name, value in _given("truncated_training").items()
    }
    return (_npz(number=np.array([1, 27, 6])), _npz(number=np.array([[1], [2]])), _npz(**training))


def _read_data_set(data: bytes, dice: random.Random) -> bool:
    rows = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.npz"
        path.write_bytes(data)
        for name in ("collatz", "truncated_training"):
            given = [
                lambda model: samples_of(model, str(path)),
                lambda model: samples_of(model, read_arrays("inputs.npz", data)),
            ]
            rows += _swept(name, dice.choice(given))
            rows += _swept(name, lambda model: samples_of(model, folder))
    return rows > 0


@cache
def _tables() -> tuple[bytes, ...]:
    frames = [
        pd.DataFrame({"number": [1, 27, 6]}),
        pd.DataFrame({"target": [0.5, 1.5], "weight": [1.0, -1.0], "window": [1, 2]}),
        pd.DataFrame({"number": ["1", "x"]}),
    ]
    return tuple(
        made
        for frame in frames
        for made in (frame.to_csv(index=False).encode(), frame.to_parquet(index=False))
    )


def _read_table(data: bytes, dice: random.Random) -> bool:
    ending = "parquet" if data.startswith(b"PAR1") else "csv"
    names = ("collatz", "truncated_training")
    return (
        sum(
            _swept(name, lambda model: of_table(model, f"inputs.{ending}", data, "a table"))
            for name in names
        )
        > 0
    )


def _swept(name: str, given: Callable[[loopscope.Model], Samples]) -> int:
    """A few rows, as the app and the command make them; what a sample leaves out has the value
    of the run that is open.
    """
    with suppress(EngineError):
        model = _model(name)
        found = sweep(
            model,
            completed(model, given(model), _given(name)),
            limit=_ROWS,
            workers=1,
            limits=LIMITS,
        )
        rows = list(found)
        found.summary.plain()
        return len(rows)
    return 0


@cache
def _stopped() -> tuple[bytes, ...]:
    """What a sweep leaves beside its file when it is stopped."""
    with tempfile.TemporaryDirectory() as folder:
        going = _onwards(Path(folder), resume=False)
        for _ in going.batches():
            going.stop()
        return ((Path(folder) / "rows.parquet.part").read_bytes(),)


def _read_rows(data: bytes, dice: random.Random) -> bool:
    """Goes on with a sweep whose stream was damaged on the disk."""
    with tempfile.TemporaryDirectory() as folder, suppress(EngineError):
        (Path(folder) / "rows.parquet.part").write_bytes(data)
        rows = list(_onwards(Path(folder), resume=True))
        return [row["number"] for row in rows] == list(range(1, 21))
    return False


def _onwards(folder: Path, *, resume: bool) -> Sweep:
    out = folder / "rows.parquet"
    return sweep(
        _model("collatz"),
        "number=1..20",
        out=out,
        resume=resume,
        workers=1,
        limits=LIMITS,
        seconds=False,
        lanes=False,
    )


# -- numbers and texts of nodes, runs, addresses of the page
# --------------------------------------------------------------


@cache
def _overlays() -> tuple[bytes, ...]:
    plain = {"number": 1, "main/while_not_one": 0.5, "while_not_one": -1.0}
    of_iterations = {f"main/while_not_one[{number}]/body": number for number in range(3)}
    results = {key: {"value": value, "bgColor": "red"} for key, value in plain.items()}
    whole = {
        "main": {"results": results, "gradient": [{"stop": 0, "bgColor": "white"}]},
        "other": {"results": {"number": {"value": "x"}}},
    }
    texts = dict.fromkeys(plain, "a") | {"number": "b"}
    return tuple(
        json.dumps(one).encode()
        for one in (plain, plain | of_iterations, {"results": results}, whole, texts)
    )


def _read_overlay(data: bytes, dice: random.Random) -> bool:
    debugger = _ended("collatz")
    try:
        found = read_node_data(data, debugger.model, dice.choice(("a file", "\u202e<b>", "")))
    except EngineError:
        return False
    debugger.seek(dice.randrange(debugger.steps + 1))
    view = graph_view(debugger.model)
    node_colours(view, debugger, found)
    _ = found.scale, found.unmatched_words("it")
    overlay_at(debugger, view, Marks(node_data=found)).as_data()
    return True


@cache
def _runs() -> tuple[bytes, ...]:
    made = [path.read_bytes() for path in sorted(STORED.iterdir())]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.loopscope"
        for debugger, document in (
            (_paused("collatz"), b""),
            (_paused("beam_search"), b""),
            (_of_forms(), _document_of_forms()),
        ):
            loopscope.save(debugger, path, document=document)
            made.append(path.read_bytes())
    return tuple(made)


def _paused(name: str) -> loopscope.Debugger:
    debugger = loopscope.Debugger(_model(name), _given(name), limits=LIMITS)
    debugger.step_into()
    debugger.step()
    debugger.watches.add("i")
    return debugger


def _of_forms() -> loopscope.Debugger:
    narrow = np.ones(2, ElementType.BF16.dtype)
    debugger = loopscope.Debugger(
        _model_of_forms(),
        [narrow, np.array(["a", "b"], object), (np.ones(2, np.float32),), None],
        limits=LIMITS,
    )
    debugger.run()
    return debugger


@cache
def _links() -> tuple[bytes, ...]:
    moment = _moment(
        "collatz", "main/while_not_one", {"main/while_not_one[1]/body/if_even": 4}, "number=1..9"
    )
    training = _moment(
        "truncated_training",
        "main/for_each_sound",
        {"main/for_each_sound[1]/body/used_weight": 0.5},
        "random:3 seed=2 signal[4]=0",
    )
    training = replace(training, backward=Backward(("loss",), ("weight",)))
    return tuple(json.dumps(written(one)).encode() for one in (moment, training))


def _moment(sample: str, loop: str, changes: Mapping[str, Any], runs: str) -> Link:
    return Link(
        model=f"sample:{sample}",
        changes=changes,
        step=f"{next(iter(changes))}",
        node=f"{loop}/body",
        body=f"{loop}/body",
        unrolled=(Window(loop, 1, 3),),
        breakpoints=(Pause(loop, "i > 2", "address", True), Pause("main/*", "", "nan", False)),
        watches=("i", "i + 1"),
        question="i > 1",
        view="many",
        runs=runs,
    )


def _read_link(data: bytes, dice: random.Random) -> bool:
    """What a link brings about in a session, without the session."""
    try:
        parameters = json.loads(data)
    except (ValueError, RecursionError):
        return False
    if not isinstance(parameters, dict):
        return False
    texts = {key: str(value) for key, value in parameters.items()}
    link = read(texts)
    written(link)
    name = "truncated_training" if "truncated" in link.model else "collatz"
    debugger, folding = loopscope.Debugger(_model(name), _given(name), limits=LIMITS), Folding()
    if isinstance(link.changes, Mapping):
        with suppress(EngineError):
            debugger = loopscope.Debugger(
                _model(name), _given(name), limits=LIMITS, changes=link.changes
            )
    for pause in link.breakpoints:
        if isinstance(pause, Pause):
            with suppress(EngineError):
                debugger.breakpoints.restore(pause)
    for watch in link.watches:
        if isinstance(watch, str):
            with suppress(EngineError):
                debugger.watches.add(watch)
    with suppress(EngineError):
        debugger.seek(
            int(link.step) if link.step.isdecimal() and len(link.step) < 16 else link.step
        )
    with suppress(EngineError):
        debugger.run()
    for window in link.unrolled:
        if isinstance(window, Window):
            folding = at_window(
                debugger,
                debugger.model,
                folding,
                "main",
                (window.address, window.first, window.count),
            )
    overlay_at(debugger, graph_view(debugger.model, folding), Marks(selected=link.node)).as_data()
    debugger.watches.values()
    with suppress(EngineError):
        ask(debugger, "main/while_not_one", link.question, limit=50)
    if link.runs:
        _swept(name, lambda model: samples_said(model, link.runs))
    if isinstance(link.backward, Backward) and dice.random() < 0.1:
        with suppress(EngineError):
            loopscope.gradients(debugger.model, link.backward.of, link.backward.with_respect_to)
    return debugger.steps > 0 and bool(debugger.changes) and bool(folding.unrolled)


def _read_run(data: bytes, dice: random.Random) -> bool:
    """Opened, and looked around in, as the app does."""
    try:
        debugger = resume(read_run(data), limits=LIMITS)
    except EngineError:
        return False
    for ask_of_it in questions(debugger):
        with suppress(EngineError):
            ask_of_it()
    return True


DATA: Mapping[str, DataKind] = {
    one.name: one
    for one in (
        DataKind("inputs", _input_files, _read_inputs),
        DataKind("samples", _data_sets, _read_data_set),
        DataKind("rows", _stopped, _read_rows),
        DataKind("tables", _tables, _read_table),
        DataKind("overlays", _overlays, _read_overlay),
        DataKind("runs", _runs, _read_run),
        DataKind("links", _links, _read_link),
    )
}
"""By the name that ``python -m tests.fuzz --data`` takes."""
