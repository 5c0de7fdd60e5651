"""Source programs, and their runs in a separate process."""

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
_PYTHON_NAME = re.compile(r"[\w.]+:[\w.]+")
_MISSING_FRAMEWORK = re.compile(r"No module named '(torch|tensorflow)'")


@dataclass(frozen=True, slots=True)
class Source:
    """The program that a file was converted from."""

    kind: Kind
    """Exported torch program, TensorFlow SavedModel, or name in a Python module."""
    where: str


@dataclass(frozen=True, slots=True, eq=False)
class SourceValue:
    """A value that a loop of the program carries, or that its iterations output."""

    name: str
    carried: bool
    starts: np.ndarray | None
    """One row per execution of the loop; None for a value that is not carried or not stored."""
    rows: np.ndarray | None
    """One row per iteration of all executions, as far as stored; None without rows."""
    shape: tuple[int, ...] | None
    """Shape before sampling; None without values."""
    refused: str
    """Reason why the value is not stored; empty if it is."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceRegion:
    """A loop or branch of the program with all its executions in order."""

    name: str
    kind: Literal["while_loop", "scan", "map", "cond"]
    parent: int
    """Number of the enclosing region; -1 for the outermost graph."""
    body: str
    """Body of the enclosing region: ``body``, ``condition``, ``then`` or ``else``."""
    counts: tuple[int, ...]
    """Iteration count of each execution of a loop."""
    taken: tuple[bool, ...]
    """True for each execution of a branch that took then."""
    values: tuple[SourceValue, ...]

    @property
    def is_loop(self) -> bool:
        return self.kind != "cond"


@dataclass(frozen=True, slots=True, eq=False)
class SourceRun:
    """Recorded run of a source program."""

    framework: str
    """Name and version."""
    inputs: tuple[tuple[str, int], ...]
    """Program inputs, each with the number of the file input that it received."""
    outputs: tuple[tuple[str, np.ndarray | None], ...]
    """Outputs by name; None for a value that is not a tensor of numbers."""
    regions: tuple[SourceRegion, ...]
    """Regions in program order, outer before inner."""
    unwatched: str
    """Reason why loops and branches were not recorded; empty if they were."""

    @property
    def called(self) -> str:
        """Name of the framework without its version."""
        return self.framework.partition(" ")[0]

    @staticmethod
    def read(file: Path) -> SourceRun:
        """Return the run that a process wrote; raise ``ValueError`` or ``KeyError`` for another
        file.
        """
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        metadata = json.loads(str(arrays.pop("told")))
        return SourceRun(
            str(metadata["framework"]),
            tuple((str(name), int(number)) for name, number in metadata["inputs"]),
            tuple(
                (str(name), arrays.get(f"output/{number}"))
                for number, name in enumerate(metadata["outputs"])
            ),
            tuple(
                _region(number, region, arrays) for number, region in enumerate(metadata["regions"])
            ),
            str(metadata["unwatched"]),
        )


def _region(
    number: int, metadata: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> SourceRegion:
    values = tuple(
        SourceValue(
            str(column["name"]),
            index < int(metadata["carried"]),
            arrays.get(f"start/{number}/{index}"),
            arrays.get(f"row/{number}/{index}"),
            None if column["shape"] is None else tuple(map(int, column["shape"])),
            str(column["refused"]),
        )
        for index, column in enumerate(metadata["columns"])
    )
    counts, taken = tuple(map(int, metadata["counts"])), tuple(map(bool, metadata["taken"]))
    return SourceRegion(
        str(metadata["name"]),
        metadata["kind"],
        int(metadata["parent"]),
        str(metadata["body"]),
        counts,
        taken,
        values,
    )


def source_of(text: str) -> Source:
    """Return the source that a command line argument names; raise ``InputError`` if it is not a
    source program.
    """
    path = Path(text)
    if path.is_dir() and (path / "saved_model.pb").exists():
        return Source("saved_model", text)
    if path.is_file() and path.suffix == ".pt2":
        return Source("pt2", text)
    if not path.exists() and _PYTHON_NAME.fullmatch(text):
        return Source("python", text)
    problem = "there is no such file" if not path.exists() else "it is not one"
    expected = (
        "expected a .pt2 file of torch.export, the folder of a TensorFlow SavedModel, "
        "or module:function"
    )
    raise InputError(f"{elided(text)!r} is not a source program ({problem}): {expected}")


def run_source(source: Source, model: Model, inputs: Inputs, patience: Patience) -> SourceRun:
    """Run a source program in a separate process with the inputs of a file converted from it.

    A name in a module is imported, which executes the module: only names from the user of this
    machine may be passed. Raise ``EngineError`` if the framework is not installed, or if the
    program rejects the inputs, fails or exceeds the time.
    """
    framework = _FRAMEWORKS.get(source.kind, "")
    if framework and importlib.util.find_spec(framework) is None:
        raise EngineError(_install_message(source, framework))
    bound = bind(model, inputs)
    arrays = [_as_numpy(signature.name, bound[signature.layer]) for signature in model.inputs]
    names = [[*signature.names, signature.name] for signature in model.inputs]
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        files = [Path(name) / "inputs.npz", Path(name) / "happened.npz"]
        np.savez(
            files[0],
            allow_pickle=False,
            **{str(number): array for number, array in enumerate(arrays)},
        )
        _run_process(source, json.dumps(names), files, patience)
        return SourceRun.read(files[1])


def _run_process(source: Source, names: str, files: Sequence[Path], patience: Patience) -> None:
    where = source.where if source.kind == "python" else str(Path(source.where).resolve())
    arguments = [source.kind, where, names, *map(str, files)]
    called = f"the source program {elided(source.where)!r}"
    try:
        ended = run_alone(PROCESS, *arguments, seconds=patience.seconds, stopped=patience.stopped)
    except CallStopped:
        raise EngineError(f"{called} was stopped before it had run") from None
    except TimeoutError:
        raise EngineError(f"{called} did not run within {patience.seconds:g} seconds") from None
    if absent := _MISSING_FRAMEWORK.search(ended.reason):
        raise EngineError(_install_message(source, absent[1]))
    if ended.code != 0 or not files[1].exists():
        raise EngineError(f"{called} does not run: {ended.reason or 'it crashed'}")


def _install_message(source: Source, framework: str) -> str:
    return (
        f"to run the source program {elided(source.where)!r}, "
        f"install {framework}: pip install 'loopscope[{framework}]'"
    )


def _as_numpy(name: str, value: Any) -> np.ndarray:
    """Return an input in a type of numpy; narrow floats become f32, which represents them
    exactly.
    """
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind not in "biufV":
        raise EngineError(
            f"the input {elided(name)!r} is not a tensor of numbers, "
            f"and a source program is only given those"
        )
    array = np.asarray(value)
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
