"""Asks another runtime for the outputs of a model, and for the values inside it."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.debug.inputs import Inputs, bind
from loopscope.debug.run import Run
from loopscope.errors import EngineError, NotKept
from loopscope.executor.plan.numbers import ProgramIndex
from loopscope.ir.model import Model
from loopscope.ir.walk import nodes
from loopscope.native.run_once import CallStopped, never, run_alone
from loopscope.peers import npz_protocol, onnx_model, openvino_model
from loopscope.peers.probes import Probe
from loopscope.peers.row_feeds import estimate
from loopscope.write import write_model

_PREFIX = "loopscope probe "
PACKAGES = {"openvino": "openvino", "onnx": "onnxruntime"}
"""The runtime of each dialect."""
CALLED = {"openvino": "OpenVINO", "onnx": "ONNX Runtime"}


@dataclass(frozen=True, slots=True)
class RuntimeAnswer:
    """What another runtime gave."""

    runtime: str
    """Its name and version."""
    outputs: tuple[Any, ...]
    """Of the model as it is, in its order, as the machine has them: arrays, tuples, mappings,
    ``NO_VALUE``, or ``Unread``.
    """
    values: Mapping[Probe, np.ndarray]
    """Those inside it that were asked for as they are, each with one axis for every loop around."""
    estimated: Mapping[Probe, Deviations]
    """How far the others are apart, by their fingerprints."""
    refused: str
    """Why the runtime does not give those; empty where it does."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long another runtime is waited for."""

    seconds: float
    """Each time that it runs."""
    stopped: Callable[[], bool] = never
    """The caller no longer waits for the result."""


def runtime_of(model: Model) -> str:
    """The name of the runtime that a model belongs to; empty where it is not installed."""
    return (
        CALLED[model.dialect]
        if importlib.util.find_spec(PACKAGES[model.dialect]) is not None
        else ""
    )


def ask(
    run: Run,
    inputs: Sequence[Any],
    parts: Iterable[Sequence[Probe]],
    patience: Patience,
    document: bytes,
) -> RuntimeAnswer:
    """Runs the model of a run as it is, then with its insides as outputs, once for each part of
    them.

    ``EngineError`` when the runtime is not installed, cannot run the model, or is no longer waited
    for.
    """
    model = run.model
    _expect_installed(model)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        npz_protocol.write(folder / "inputs.npz", inputs)
        plain = document_file(model, folder, document)
        runtime, given = run_file(model.dialect, folder, plain, patience)
        named = tuple(npz_protocol.read(given).values())
        asking = _Asking(run, folder, plain, patience)
        try:
            for part in parts:
                asking.ask(part)
                del part  # the next one is made with this one gone
        except EngineError as error:
            if patience.stopped():
                raise
            return RuntimeAnswer(runtime, named, {}, {}, str(error))
        return RuntimeAnswer(runtime, named, asking.values, asking.estimated, "")


@dataclass(slots=True, eq=False)
class _Asking:
    """A model while it is asked for its insides, part by part."""

    run: Run
    folder: Path
    plain: Path
    patience: Patience
    values: dict[Probe, np.ndarray] = field(default_factory=dict[Probe, np.ndarray])
    estimated: dict[Probe, Deviations] = field(default_factory=dict[Probe, Deviations])
    _smallest: dict[ProgramIndex, Probe] = field(default_factory=dict[ProgramIndex, Probe])
    """One value of each loop and branch of earlier parts. It is asked for in each part: a runtime
    that is asked for a value inside does not replace the loop by another operation, and what
    follows has to follow from the loop as it is.
    """

    def ask(self, part: Sequence[Probe]) -> None:
        """Adds what the runtime gives; one value after the other, so that all fingerprints are
        never there at once.
        """
        insides = self.folder / f"insides{self.plain.suffix}"
        earlier = [
            probe
            for index, probe in self._smallest.items()
            if index not in {one.program.index for one in part}
        ]
        order = _probed(self.run, [*part, *earlier], self.plain, insides)
        named = {f"{_PREFIX}{number}": probe for number, probe in enumerate(order)}
        _, given = run_file(self.run.model.dialect, self.folder, insides, self.patience)
        for name, there in npz_protocol.arrays(given):
            probe = named.get(name)
            if probe is None or probe in earlier:
                continue
            if probe.fingerprint is not None:
                self.estimated[probe.compared()] = estimate(probe, there)
            else:
                self.values[probe] = there
        self._remember(part)

    def _remember(self, part: Sequence[Probe]) -> None:
        for probe in part:
            known = self._smallest.get(probe.program.index)
            if probe.program.parent is not None and (
                known is None or probe.expected.nbytes < known.expected.nbytes
            ):
                self._smallest[probe.program.index] = probe


def ask_outputs(
    model: Model, inputs: Inputs, patience: Patience, document: bytes
) -> tuple[str, tuple[Any, ...]]:
    """Runs a model as it is: the runtime's name and version, and the outputs in order. Errors as
    of ``ask``.
    """
    _expect_installed(model)
    given = bind(model, inputs)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        npz_protocol.write(
            folder / "inputs.npz", [given[signature.layer] for signature in model.inputs]
        )
        runtime, outputs = run_file(
            model.dialect, folder, document_file(model, folder, document), patience
        )
        return runtime, tuple(npz_protocol.read(outputs).values())


def _expect_installed(model: Model) -> None:
    if not runtime_of(model):
        package = PACKAGES[model.dialect]
        raise EngineError(
            f"to compare with {CALLED[model.dialect]}, install {package}: pip install {package}"
        )


def document_file(model: Model, folder: Path, document: bytes) -> Path:
    """The file of a model as it is; one that was not read from a file, or is not as it was read,
    is written to ``folder``.
    """
    if any(node.constant is not None and not node.constant.is_kept for _, node in nodes(model)):
        raise NotKept("another runtime cannot run this model: the run was saved without weights")
    if model.dialect == "onnx":
        if model.file:
            return Path(model.file).resolve()
        if not document:
            raise EngineError(
                "an ONNX model is compared by its file, and this one was not read from a single file"
            )
        (folder / "plain.onnx").write_bytes(document)
        return folder / "plain.onnx"
    write_model(model, folder / "plain.xml")
    return folder / "plain.xml"


def _probed(run: Run, probes: Sequence[Probe], plain: Path, target: Path) -> list[Probe]:
    if run.model.dialect == "onnx":
        return onnx_model.probed(run, plain, probes, _PREFIX, target)
    model, order = openvino_model.probed(run, probes, _PREFIX)
    write_model(model, target)
    return order


def run_file(
    dialect: str, folder: Path, file: Path, patience: Patience, properties: Sequence[str] = ()
) -> tuple[str, Path]:
    """Runs a model's file with ``inputs.npz`` of the folder: name and version of the runtime, and
    the file of its outputs.

    ``properties``: what the runtime is told beside, such as ``NUM_STREAMS=1``.
    """
    called, outputs = CALLED[dialect], folder / "outputs.npz"
    outputs.unlink(missing_ok=True)
    process = Path(__file__).with_name(f"{PACKAGES[dialect]}_process.py")
    files = [folder / "inputs.npz", file, outputs]
    return said_alone(called, "run", process, *properties, *files, patience=patience), outputs


def said_alone(
    called: str, verb: str, process: Path, *arguments: object, patience: Patience, of: str = ""
) -> str:
    """The last line that a runtime's process said, its name and version; the last of the arguments
    is the file that it writes.

    ``EngineError`` when it does not ``verb`` the model, with its own reason, or is no longer waited
    for; ``of`` says more of how.
    """
    did = {"run": "run", "compile": "compiled"}[verb]
    try:
        ended = run_alone(
            process, *map(str, arguments), seconds=patience.seconds, stopped=patience.stopped
        )
    except CallStopped:
        raise EngineError(f"{called} was stopped before it had {did} the model") from None
    except TimeoutError:
        raise EngineError(
            f"{called} did not {verb} the model within {patience.seconds:g} seconds"
        ) from None
    if ended.code != 0 or not Path(str(arguments[-1])).exists():
        raise EngineError(f"{called} does not {verb} the model{of}: {ended.reason or 'it crashed'}")
    return ended.said.splitlines()[-1]
