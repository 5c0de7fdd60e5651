"""What a source program is, and what it did in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loopscope.debug.inputs import Inputs, bind
from loopscope.errors import EngineError, InputError, elided
from loopscope.ir.model import Model
from loopscope.native.run_once import CallStopped, run_alone
from loopscope.peers.other_runtimes import Patience

Kind = Literal["pt2", "saved_model", "python"]
PROCESS = Path(__file__).with_name("source_process.py")
_FRAMEWORKS: Mapping[Kind, str] = {"pt2": "torch", "saved_model": "tensorflow"}
_NAMED = re.compile(r"[\w.]+:[\w.]+")
_ABSENT = re.compile(r"No module named '(torch|tensorflow)'")


@dataclass(frozen=True, slots=True)
class Source:
    """The program that a file was converted from."""

    kind: Kind
    """An exported program of torch, a SavedModel of TensorFlow, or a name in a module of Python."""
    where: str


@dataclass(frozen=True, slots=True, eq=False)
class SourceValue:
    """A value that a loop of the program carries, or that its iterations give."""

    name: str
    carried: bool
    starts: np.ndarray | None
    """With a row for each execution of the loop; None of a value that is not carried or not
    kept.
    """
    rows: np.ndarray | None
    """With a row for each iteration of all executions, as far as they were kept; None where
    there is none.
    """
    shape: tuple[int, ...] | None
    """Of one of them, before it was sampled; None where there was none."""
    refused: str
    """Why it is not kept; empty where it is."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceRegion:
    """A loop or branch of the program, and all of its executions in the order in which they ran."""

    name: str
    kind: Literal["while_loop", "scan", "map", "cond"]
    parent: int
    """Number of the region around; -1 outermost."""
    body: str
    """The body of that one that it is in: ``body``, ``condition``, ``then`` or ``else``."""
    counts: tuple[int, ...]
    """Of a loop: how many iterations each execution ran."""
    taken: tuple[bool, ...]
    """Of a branch: whether each execution took the first one."""
    values: tuple[SourceValue, ...]

    @property
    def is_loop(self) -> bool:
        return self.kind != "cond"


@dataclass(frozen=True, slots=True, eq=False)
class SourceRun:
    """What a source program did."""

    framework: str
    """Its name and version."""
    inputs: tuple[tuple[str, int], ...]
    """The program's inputs, each with the number of the file's that it was given."""
    outputs: tuple[tuple[str, np.ndarray | None], ...]
    """By name; None for what is no tensor of numbers."""
    regions: tuple[SourceRegion, ...]
    """Outer ones before inner ones, in the order of the program."""
    unwatched: str
    """Why the loops and branches were not watched; empty where they were."""

    @property
    def called(self) -> str:
        """The framework without its version."""
        return self.framework.partition(" ")[0]

    @staticmethod
    def read(file: Path) -> SourceRun:
        """What a process wrote; ``ValueError`` or ``KeyError`` when it is no such file."""
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        told = json.loads(str(arrays.pop("told")))
        return SourceRun(
            str(told["framework"]),
            tuple((str(name), int(number)) for name, number in told["inputs"]),
            tuple(
                (str(name), arrays.get(f"output/{number}"))
                for number, name in enumerate(told["outputs"])
            ),
            tuple(_region(number, one, arrays) for number, one in enumerate(told["regions"])),
            str(told["unwatched"]),
        )


def _region(number: int, told: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> SourceRegion:
    values = tuple(
        SourceValue(
            str(one["name"]),
            place < int(told["carried"]),
            arrays.get(f"start/{number}/{place}"),
            arrays.get(f"row/{number}/{place}"),
            None if one["shape"] is None else tuple(map(int, one["shape"])),
            str(one["refused"]),
        )
        for place, one in enumerate(told["columns"])
    )
    counts, taken = tuple(map(int, told["counts"])), tuple(map(bool, told["taken"]))
    return SourceRegion(
        str(told["name"]),
        told["kind"],
        int(told["parent"]),
        str(told["body"]),
        counts,
        taken,
        values,
    )


def source_of(text: str) -> Source:
    """What a command line names; ``InputError`` for what is no source program."""
    path = Path(text)
    if path.is_dir() and (path / "saved_model.pb").exists():
        return Source("saved_model", text)
    if path.is_file() and path.suffix == ".pt2":
        return Source("pt2", text)
    if not path.exists() and _NAMED.fullmatch(text):
        return Source("python", text)
    found = "there is no such file" if not path.exists() else "it is none"
    expected = "expected a .pt2 file of torch.export, the folder of a TensorFlow SavedModel, or module:function"
    raise InputError(f"{elided(text)!r} is no source program ({found}): {expected}")


def run_source(source: Source, model: Model, inputs: Inputs, patience: Patience) -> SourceRun:
    """Runs a source program with the inputs of a file that was made from it, in a process of its
    own.

    A name in a module is imported there, which runs that module: only a name that the user of this
    machine gave may come here. ``EngineError`` when the framework is not installed, the program
    does not take the inputs or does not run, or is no longer waited for.
    """
    framework = _FRAMEWORKS.get(source.kind, "")
    if framework and importlib.util.find_spec(framework) is None:
        raise EngineError(_to_install(source, framework))
    given = bind(model, inputs)
    arrays = [_plain(signature.name, given[signature.layer]) for signature in model.inputs]
    names = [[*signature.names, signature.name] for signature in model.inputs]
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        files = [Path(name) / "inputs.npz", Path(name) / "happened.npz"]
        np.savez(
            files[0],
            allow_pickle=False,
            **{str(number): array for number, array in enumerate(arrays)},
        )
        _run_alone(source, json.dumps(names), files, patience)
        return SourceRun.read(files[1])


def _run_alone(source: Source, names: str, files: Sequence[Path], patience: Patience) -> None:
    where = source.where if source.kind == "python" else str(Path(source.where).resolve())
    arguments = [source.kind, where, names, *map(str, files)]
    called = f"the source program {elided(source.where)!r}"
    try:
        ended = run_alone(PROCESS, *arguments, seconds=patience.seconds, stopped=patience.stopped)
    except CallStopped:
        raise EngineError(f"{called} was stopped before it had run") from None
    except TimeoutError:
        raise EngineError(f"{called} did not run within {patience.seconds:g} seconds") from None
    if absent := _ABSENT.search(ended.reason):
        raise EngineError(_to_install(source, absent[1]))
    if ended.code != 0 or not files[1].exists():
        raise EngineError(f"{called} does not run: {ended.reason or 'it crashed'}")


def _to_install(source: Source, framework: str) -> str:
    return f"to run the source program {elided(source.where)!r}, install {framework}: pip install 'loopscope[{framework}]'"


def _plain(name: str, value: Any) -> np.ndarray:
    """An input of a type that numpy has: narrow floats as f32, which holds them."""
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind not in "biufV":
        raise EngineError(
            f"the input {elided(name)!r} is no tensor of numbers, and a source program is only given those"
        )
    array = np.asarray(value)
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
