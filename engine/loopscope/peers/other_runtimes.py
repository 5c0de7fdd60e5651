"""Runs of a model in another runtime that return its outputs and inner values."""

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
from loopscope.peers.probe_batches import estimate
from loopscope.peers.probes import Probe
from loopscope.write import write_model

_PREFIX = "loopscope probe "
PACKAGES = {"openvino": "openvino", "onnx": "onnxruntime"}
"""Python package of the runtime, by dialect."""
CALLED = {"openvino": "OpenVINO", "onnx": "ONNX Runtime"}


@dataclass(frozen=True, slots=True)
class RuntimeAnswer:
    """Values from another runtime."""

    runtime: str
    """Name and version."""
    outputs: tuple[Any, ...]
    """Outputs of the unmodified model in order, in the executor's form.

    Each is an array, tuple, mapping, ``NO_VALUE`` or ``Unread``.
    """
    values: Mapping[Probe, np.ndarray]
    """Requested inner values, each with one leading axis per enclosing loop."""
    estimated: Mapping[Probe, Deviations]
    """Deviations of the remaining inner values, estimated from fingerprints."""
    refused: str
    """Reason why the runtime did not return inner values; empty if it did."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits for another runtime."""

    seconds: float
    """Limit per execution."""
    stopped: Callable[[], bool] = never
    """Callback that returns True if the caller no longer waits."""


def runtime_of(model: Model) -> str:
    """Return the name of the runtime for a model; empty if it is not installed."""
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
    """Run the model of a run unmodified, then once per part of the probes with these values as
    outputs.

    Raise ``EngineError`` if the runtime is not installed, cannot run the model, or exceeds the
    time.
    """
    model = run.model
    _expect_installed(model)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        npz_protocol.write(folder / "inputs.npz", inputs)
        plain = document_file(model, folder, document)
        runtime, output_file = run_file(model.dialect, folder, plain, patience)
        outputs = tuple(npz_protocol.read(output_file).values())
        requests = _ProbeRequests(run, folder, plain, patience)
        try:
            for part in parts:
                requests.ask(part)
                del part  # freed before the next part is created
        except EngineError as error:
            if patience.stopped():
                raise
            return RuntimeAnswer(runtime, outputs, {}, {}, str(error))
        return RuntimeAnswer(runtime, outputs, requests.values, requests.estimated, "")


@dataclass(slots=True, eq=False)
class _ProbeRequests:
    """Requests for the inner values of a model, part by part."""

    run: Run
    folder: Path
    plain: Path
    patience: Patience
    values: dict[Probe, np.ndarray] = field(default_factory=dict[Probe, np.ndarray])
    estimated: dict[Probe, Deviations] = field(default_factory=dict[Probe, Deviations])
    _smallest: dict[ProgramIndex, Probe] = field(default_factory=dict[ProgramIndex, Probe])
    """Smallest value of each loop and branch of earlier parts, requested again in each part.

    A runtime does not replace a loop by another operation if a value inside is requested. Later
    values must follow from the original loop.
    """

    def ask(self, part: Sequence[Probe]) -> None:
        """Add the values of a part, one at a time, so that only one fingerprint is in memory."""
        insides = self.folder / f"insides{self.plain.suffix}"
        earlier = [
            probe
            for index, probe in self._smallest.items()
            if index not in {probe.program.index for probe in part}
        ]
        order = _probed(self.run, [*part, *earlier], self.plain, insides)
        named = {f"{_PREFIX}{number}": probe for number, probe in enumerate(order)}
        _, output_file = run_file(self.run.model.dialect, self.folder, insides, self.patience)
        for name, peer in npz_protocol.arrays(output_file):
            probe = named.get(name)
            if probe is None or probe in earlier:
                continue
            if probe.fingerprint is not None:
                self.estimated[probe.compared()] = estimate(probe, peer)
            else:
                self.values[probe] = peer
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
    """Run a model unmodified; return the runtime's name and version, and the outputs in order.

    Raises the errors of ``ask``.
    """
    _expect_installed(model)
    bound = bind(model, inputs)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        npz_protocol.write(
            folder / "inputs.npz", [bound[signature.layer] for signature in model.inputs]
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
    """Return the file of an unmodified model.

    A model that was not read from a file, or was changed since, is written to ``folder``.
    """
    if any(node.constant is not None and not node.constant.is_kept for _, node in nodes(model)):
        raise NotKept("another runtime cannot run this model: the run was saved without weights")
    if model.dialect == "onnx":
        if model.file:
            return Path(model.file).resolve()
        if document:
            (folder / "plain.onnx").write_bytes(document)
        else:
            write_model(model, folder / "plain.onnx")
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
    """Run a model file with ``inputs.npz`` of the folder; return the runtime's name and version and
    the output file.

    ``properties``: additional settings of the runtime, such as ``NUM_STREAMS=1``.
    """
    called, outputs = CALLED[dialect], folder / "outputs.npz"
    outputs.unlink(missing_ok=True)
    process = Path(__file__).with_name(f"{PACKAGES[dialect]}_process.py")
    files = [folder / "inputs.npz", file, outputs]
    return run_runtime_process(
        called, "run", process, *properties, *files, patience=patience
    ), outputs


def run_runtime_process(
    called: str, verb: str, process: Path, *arguments: object, patience: Patience, detail: str = ""
) -> str:
    """Run a runtime's process and return the last line of its output: name and version.

    The last argument is the file that the process writes. Raise ``EngineError`` with the runtime's
    reason if it cannot ``verb`` the model, or exceeds the time; ``of`` adds detail to the message.
    """
    past_verb = {"run": "run", "compile": "compiled"}[verb]
    try:
        ended = run_alone(
            process, *map(str, arguments), seconds=patience.seconds, stopped=patience.stopped
        )
    except CallStopped:
        raise EngineError(f"{called} was stopped before it had {past_verb} the model") from None
    except TimeoutError:
        raise EngineError(
            f"{called} did not {verb} the model within {patience.seconds:g} seconds"
        ) from None
    if ended.code != 0 or not Path(str(arguments[-1])).exists():
        raise EngineError(
            f"{called} does not {verb} the model{detail}: {ended.reason or 'it crashed'}"
        )
    return ended.said.splitlines()[-1]
