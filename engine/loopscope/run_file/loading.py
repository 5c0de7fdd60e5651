"""Opening of a saved run.

The file is read as untrusted, then the run is restored from its recording or recomputed.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from loopscope.debug.debugger import Debugger
from loopscope.errors import (
    MOST_OF_A_SENTENCE,
    EngineError,
    InputError,
    ReadError,
    Where,
    elided,
    shorten,
)
from loopscope.executor.machine.limits import Limits
from loopscope.ops.stored import FORMS, unpacked
from loopscope.read import ReadLimits, is_trace_content, read_model
from loopscope.run_file.read_recording import put_back
from loopscope.run_file.run_archive import RECORDING, array_of, digest, read_archive
from loopscope.run_file.saved_run import Description, SavedRun, difference_from, of_json
from loopscope.run_file.weightless import without_data

_BOUNDS = ReadLimits()
_STEPS_ONE_BY_ONE = 20_000
"""Number of steps above which a paused run is computed to its end, with faster generated code."""


def load(path: str | os.PathLike[str], *, limits: Limits | None = None) -> Debugger:
    """Return the Debugger of a saved run at the moment of saving, or of a trace at its end.

    Breakpoints, watches and changes are restored. Nothing runs: recorded values are restored, and
    others are computed on request. A file without a recording, or with a recording that does not
    match this version, is computed again. Its own limits and ``limits`` (default:
    ``loopscope.Limits()``) both apply. If outputs or control flow then differ from the file, such
    as on a machine that rounds differently, a warning describes the first difference. ``ReadError``
    says why a file does not open. In a file without weights, values that depend on them and were
    not recorded raise ``NotKept``.
    """
    if is_trace_content(path):
        debugger = Debugger(read_model(path), limits=limits)
        debugger.run()
        return debugger
    saved = read_run(path)
    try:
        debugger = resume(saved, limits=limits)
    except ReadError:
        raise
    except EngineError as error:
        raise ReadError(f"the run in it cannot be opened: {error}", Where(str(path))) from None
    if sentence := difference_from(saved, debugger):
        warnings.warn(sentence, stacklevel=2)
    return debugger


def read_run(source: str | os.PathLike[str] | bytes, *, limits: ReadLimits = _BOUNDS) -> SavedRun:
    """Return the checked content of a saved run without running it.

    ``ReadError`` has one sentence about the first problem.
    """
    location = Where("" if isinstance(source, bytes) else str(source))
    try:
        with io.BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb") as file:
            document, entries = read_archive(file, limits.unpacked_bytes)
        return _saved_run(of_json(document), entries, limits)
    except OSError as error:
        raise ReadError(f"the file cannot be opened: {error.strerror or error}", location) from None
    except (ValueError, InputError) as error:
        raise ReadError(
            f"it cannot be opened as a saved run: {elided(str(error), MOST_OF_A_SENTENCE)}",
            location,
        ) from None


def resume(saved: SavedRun, *, limits: Limits | None = None) -> Debugger:
    """Return a debugger of the run at the moment of saving, restored or recomputed."""
    description = saved.description
    debugger = as_recorded(saved, limits=limits)
    if debugger is None:
        debugger = _new_debugger(saved, limits)
        if description.state != "paused" or description.steps > _STEPS_ONE_BY_ONE:
            debugger.run()
        debugger.seek(description.steps)
    debugger.seek(description.step)
    for breakpoint in description.breakpoints:
        debugger.breakpoints.restore(breakpoint)
    for expression in description.watches:
        debugger.watches.add(expression)
    return debugger


def as_recorded(saved: SavedRun, *, limits: Limits | None = None) -> Debugger | None:
    """Return a debugger of the recorded run at its newest step; None if the run must be recomputed.

    ``ReadError`` if the weights for recomputing are missing.
    """
    debugger = _new_debugger(saved, limits)
    try:
        if not saved.recording:
            raise ValueError("it does not have a recording")
        put_back(debugger, saved.recording, saved.recorded)
        if debugger.state != saved.description.state or debugger.steps != saved.description.steps:
            raise ValueError(
                "its recording and its run.json differ in the state or the number of steps"
            )
    except ValueError as error:
        if saved.description.weights_kept:
            return None
        maker = shorten(saved.description.made_by, 40)
        raise ReadError(
            f"the run was saved without weights by Loopscope {maker}, "
            f"and cannot be opened here: {error}"
        ) from None
    return debugger


def _new_debugger(saved: SavedRun, limits: Limits | None) -> Debugger:
    description = saved.description
    return Debugger(
        saved.model,
        dict(enumerate(saved.inputs)),
        limits=_within(description.limits, limits or Limits()),
        record=description.record,
        seed=description.seed,
        changes=saved.changes,
        optimise=description.optimise,
    )


def _saved_run(
    description: Description, entries: Mapping[str, bytes], limits: ReadLimits
) -> SavedRun:
    if entries.keys() != description.files.keys():
        raise ValueError("its run.json lists other files than it contains")
    damaged = next(
        (name for name, data in entries.items() if digest(data) != description.files[name]), None
    )
    if damaged is not None:
        raise ValueError(
            f"{damaged} in it is not what its run.json says: the file is damaged, or was changed"
        )
    model = _model(entries, limits)
    if description.opened:
        # Imported here because the builder takes longer to import than most runs take to open.
        from loopscope.transform.open_as_loop import open_as_loop

        model = open_as_loop(model, description.opened)
    if not description.weights_kept:
        model = without_data(model)
    inputs, changes, outputs = (
        _values(entries, folder) for folder in ("inputs", "changes", "outputs")
    )
    positions = [str(position) for position in range(len(model.inputs))]
    if sorted(unpacked(inputs)) != sorted(positions):
        raise ValueError(
            f"it has {len(unpacked(inputs))} inputs, and its model has {len(positions)}"
        )
    values = unpacked(inputs)
    set_by_hand = unpacked(changes)
    if sorted(set_by_hand) != sorted(str(number) for number in range(len(description.changes))):
        raise ValueError("its changed values do not match the addresses in its run.json")
    return SavedRun(
        description=description,
        model=model,
        document=entries.get("model/model.onnx", b""),
        inputs=tuple(values[name] for name in positions),
        changes={
            address: set_by_hand[str(number)] for number, address in enumerate(description.changes)
        },
        outputs=outputs if description.outputs_kept else None,
        recording=entries.get(RECORDING, b""),
        recorded=unpacked(_values(entries, "recording")),
    )


def _model(entries: Mapping[str, bytes], limits: ReadLimits) -> Any:
    files = sorted(name for name in entries if name.startswith("model/"))
    if files == ["model/model.onnx"]:
        return read_model(entries["model/model.onnx"], limits=limits)
    if files == ["model/model.bin", "model/model.xml"]:
        return read_model(
            entries["model/model.xml"], weights=entries["model/model.bin"], limits=limits
        )
    raise ValueError("it does not have a model: expected model.onnx, or model.xml with model.bin")


def _values(entries: Mapping[str, bytes], folder: str) -> dict[str, np.ndarray]:
    arrays = {
        name[len(folder) + 1 : -4]: array_of(data)
        for name, data in entries.items()
        if name.startswith(f"{folder}/")
    }
    if FORMS in arrays and arrays[FORMS].ndim:
        raise ValueError(f"its entry {folder}/{FORMS} is not a text")
    return arrays


def _within(saved: Limits, allowed: Limits) -> Limits:
    """Return the stricter of each pair of limits.

    A file from an untrusted source must not run longer than its reader allows.
    """

    def lower(left: Any, right: Any) -> Any:
        return right if left is None else left if right is None else min(left, right)

    return Limits(
        iterations=lower(saved.iterations, allowed.iterations),
        seconds=lower(saved.seconds, allowed.seconds),
        memory_bytes=lower(saved.memory_bytes, allowed.memory_bytes),
    )
