"""Runs of a model in another runtime, and batches of inner values requested from it.

The runtime's process holds all requested values of a batch at once. Its rows are aligned with ours.
"""

from __future__ import annotations

import importlib.util
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.debug.inputs import Inputs, bind
from loopscope.debug.run import Run
from loopscope.errors import EngineError, NotKept
from loopscope.executor.plan.plan import Program
from loopscope.executor.plan.slots import ProgramIndex
from loopscope.ir.address import nodes
from loopscope.ir.model import Model
from loopscope.native.run_once import CallStopped, never, run_alone
from loopscope.peers import npz_protocol, onnx_model, openvino_model
from loopscope.peers.probes import Probe, ProbeCandidate
from loopscope.write import write_model

_PREFIX = "loopscope probe "
PACKAGES: Mapping[str, Literal["onnxruntime", "openvino"]] = {
    "openvino": "openvino",
    "onnx": "onnxruntime",
}
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


_MAX_BATCH_BYTES = 128 * 2**20
"""Maximum memory of a batch in the runtime's process, in bytes."""
_BYTES_PER_VALUE, _BYTES_PER_BYTE = 1 << 17, 3
"""Approximate memory per value (compiled operations) and per byte (a buffer that grows by
doubling).
"""


def batches(candidates: Sequence[ProbeCandidate]) -> Iterator[tuple[ProbeCandidate, ...]]:
    """Yield batches of about equal size in the order of the run; one batch if all values together
    are small.

    The values of one loop or If of the outermost graph are not divided.
    """
    ordered = sorted(candidates, key=_outer_position)
    candidate_groups = [tuple(members) for _, members in groupby(ordered, key=_outer_position)]
    sizes = [
        sum(_BYTES_PER_VALUE + _BYTES_PER_BYTE * candidate.given_bytes for candidate in group)
        for group in candidate_groups
    ]
    target = sum(sizes) / max(1, ceil(sum(sizes) / _MAX_BATCH_BYTES))
    part: list[ProbeCandidate] = []
    filled = 0
    for group, size in zip(candidate_groups, sizes, strict=True):
        if part and filled + size / 2 > target:
            yield tuple(part)
            part, filled = [], 0
        part += group
        filled += size
    if part:
        yield tuple(part)


def _outer_position(candidate: ProbeCandidate) -> int:
    """Return the number of the outermost graph's instruction that computes a value or contains its
    region.
    """
    program: Program = candidate.program
    position = candidate.position
    while program.parent is not None:
        program, position = program.parent, program.owner
    return position


def rows_of(probe: Probe, peer: np.ndarray) -> np.ndarray | None:
    """Return the runtime's rows of a probe that both runs have; None if the shapes differ."""
    lengths = peer.shape[: len(probe.lengths)]
    rows = peer.reshape(math.prod(lengths), *peer.shape[len(lengths) :])
    if rows.shape[1:] != probe.expected.shape[1:] or lengths[1:] != probe.lengths[1:]:
        return None
    count = int(np.searchsorted(probe.places, len(rows)))
    if count and probe.places[count - 1] == count - 1:  # all rows, so that no copy is needed
        return rows[:count]
    return np.asarray(rows[probe.places[:count]])


def estimate(probe: Probe, peer: np.ndarray) -> Deviations:
    """Estimate the deviation of a runtime's values from their fingerprints, in the rows that both
    runs have.
    """
    rows = rows_of(probe, peer)
    if rows is None or probe.fingerprint is None:
        return Deviations.joined([])
    return probe.fingerprint.apart(probe.expected[: len(rows)], rows)
