"""Saving of a debugger's run to a file: model, inputs, changes, position and results.

A short run is repeated with every value recorded for a file without weights: without weights,
nothing that was not recorded can be computed later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from loopscope.debug.debugger import Debugger
from loopscope.debug.run import expect_run
from loopscope.errors import WriteError, shorten
from loopscope.executor.record.recording import Record
from loopscope.ir.equal import difference
from loopscope.ir.model import Model
from loopscope.ir.recorded_rows import is_trace
from loopscope.ir.rt_info import opened_operators
from loopscope.ops.stored import packed
from loopscope.read import read_model
from loopscope.replaced_file import replaced_file
from loopscope.run_file.run_archive import (
    ENDING,
    MOST_ENTRIES,
    MOST_OF_A_DESCRIPTION,
    RECORDING,
    array_bytes,
    digest,
    write_archive,
)
from loopscope.run_file.saved_run import (
    MOST_PAUSES,
    Description,
    flow_records,
    output_entries,
    to_json,
)
from loopscope.run_file.weightless import with_zeros, without_data
from loopscope.run_file.write_recording import stored_recording
from loopscope.version import VERSION
from loopscope.write import ir_documents

BUDGET = 64 * 2**20
"""Default limit of bytes for outputs, control flow and recorded values, each."""
_BYTES_PER_RECORD = 64
_MAX_RECORDED = MOST_ENTRIES // 2
"""Maximum number of recording entries; the other entries are inputs, outputs and changes."""


def save(
    debugger: Debugger,
    path: str | os.PathLike[str],
    *,
    budget_bytes: int = BUDGET,
    weights: bool = True,
    look: Mapping[str, str] | None = None,
    document: bytes = b"",
) -> None:
    """Write a run to a file that ``loopscope.load`` and the app open again at the same moment.

    An existing file is replaced. The file contains the model, the inputs, breakpoints, watches and
    changes. Outputs, control flow and recorded values are included up to ``budget_bytes`` each, so
    that it opens without running again.

    With ``weights=False``, Consts of more than 64 elements retain only their type and shape.
    Recorded values can then be inspected, and others cannot be computed. A run of a few seconds is
    therefore repeated once with every value recorded.

    ``look`` are parameters of the app's address. ``document`` is the file content of an ONNX model
    that was read from bytes.

    ``WriteError`` when the path does not end with ``.loopscope``, the run is restricted to some
    tensors (``fetches``), its model cannot be written, or the recording exceeds the budget
    and the weights to recompute it are missing.
    """
    expect_run(debugger, "loopscope.save")
    weights = (
        weights and not debugger.plan.lacks_weights
    )  # the run itself may have been opened from a file without weights
    target = Path(path)
    _expect_savable(debugger, target)
    recorded_flow, outputs = recorded(debugger, budget_bytes)
    changes = {item.address: item.value for item in debugger.changes}
    recorded_run = debugger if weights else record_everything(debugger, budget_bytes)
    entries = {
        **_model(debugger.model, document, weights=weights),
        **_arrays("inputs", _inputs(debugger)),
        **_arrays(
            "changes", packed({str(number): value for number, value in enumerate(changes.values())})
        ),
        **_arrays("outputs", outputs or {}),
        **_recording(recorded_run, budget_bytes, weights=weights),
    }
    description = Description(
        made_by=VERSION,
        numpy=np.__version__,
        model=shorten(debugger.model.name, 1000),
        files={name: digest(data) for name, data in entries.items()},
        seed=index(debugger.beginning.seed),
        limits=debugger.beginning.limits,
        record=recorded_run.beginning.record,
        optimise=debugger.plan.optimise,
        state=debugger.state,
        step=debugger.cursor.step,
        steps=debugger.steps,
        changes=tuple(changes),
        breakpoints=tuple(item.as_set for item in debugger.breakpoints.items()),
        watches=tuple(expression for _, expression in debugger.watches.items()),
        look=look or {},
        control_flow=recorded_flow,
        outputs_kept=outputs is not None,
        weights_kept=weights,
        opened=_opened_in_file(debugger.model),
    )
    _write(target, to_json(description), entries)


def _expect_savable(debugger: Debugger, target: Path) -> None:
    """Raise ``WriteError`` if the run or the path does not allow saving."""
    if target.suffix != ENDING:
        raise WriteError(f"the path is {str(target)!r}, expected one that ends with {ENDING}")
    if is_trace(debugger.model):
        raise WriteError(
            f"the run shows a trace, which is a file already: copy {debugger.model.file!r}"
        )
    if debugger.beginning.part or not debugger.beginning.values.keys() <= set(
        debugger.plan.main.parameter_slots
    ):
        raise WriteError(
            "this run computes some tensors only, or replaces tensors that are not inputs: "
            "only a whole run is saved"
        )
    if len(debugger.breakpoints) > MOST_PAUSES or len(debugger.watches.items()) > MOST_PAUSES:
        raise WriteError(
            f"a saved run keeps at most {MOST_PAUSES:,} breakpoints and {MOST_PAUSES:,} watches"
        )


def recorded(
    debugger: Debugger, budget_bytes: int
) -> tuple[tuple[tuple[str, int | str, str], ...] | None, dict[str, np.ndarray] | None]:
    """Return the control flow and the outputs of a finished run.

    Each is None if it exceeds the budget.
    """
    max_records = budget_bytes // _BYTES_PER_RECORD
    flow = tuple(islice(flow_records(debugger), max_records + 1))
    outputs = output_entries(debugger) if debugger.state == "finished" else None
    if outputs is not None and sum(array.nbytes for array in outputs.values()) > budget_bytes:
        outputs = None
    return flow if len(flow) <= max_records else None, outputs


def _recording(debugger: Debugger, budget_bytes: int, *, weights: bool) -> dict[str, bytes]:
    """Return the entries of the recording; none if they exceed the budget.

    ``WriteError`` if they exceed it and the file has no weights.
    """
    recording = stored_recording(debugger, budget_bytes, weights=weights)
    if recording is not None:
        arrays, document = packed(recording.values), json.dumps(recording.document).encode()
        if len(arrays) <= _MAX_RECORDED and len(document) <= MOST_OF_A_DESCRIPTION:
            return {RECORDING: document, **_arrays("recording", arrays)}
    if not weights:
        raise WriteError(
            f"the recording of this run has more than {budget_bytes:,} bytes, "
            "and without weights it cannot be computed again: "
            "raise the budget, or keep the weights"
        )
    return {}


def _inputs(debugger: Debugger) -> dict[str, np.ndarray]:
    main = debugger.plan.main
    slots = [main.parameters[signature.layer] for signature in debugger.model.inputs]
    # Values of the machine: the caller may have modified its own arrays since.
    return packed(
        {str(position): debugger.machine.values[slot] for position, slot in enumerate(slots)}
    )


def _arrays(folder: str, entries: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    return {f"{folder}/{name}.npy": array_bytes(array) for name, array in entries.items()}


def _opened_in_file(model: Model) -> tuple[str, ...]:
    """Return the operators that are loops in the run and operators in the file of an ONNX model."""
    if model.dialect == "openvino" or model.unopened is None:
        return ()
    return tuple(opened_operators(model))


def _read_as_opened(content: bytes, opened: Sequence[str]) -> Model:
    """Return the model of an ONNX file with operators opened as loops."""
    model = read_model(content)
    if not opened:
        return model
    # Imported here because the builder takes longer to import than most runs take to save.
    from loopscope.transform.open_as_loop import open_as_loop

    return open_as_loop(model, opened)


def _model(model: Model, document: bytes, *, weights: bool) -> dict[str, bytes]:
    """Return the files of a model: IR documents, or the original file of an ONNX model.

    The ONNX file is compared with the model first, because it may have changed since it was read.
    """
    if model.dialect == "openvino":
        document, data = ir_documents(model if weights else with_zeros(model))
        return {"model/model.xml": document, "model/model.bin": data}
    opened = _opened_in_file(model)
    file = (model.unopened or model).file
    if not document and not file:
        raise WriteError(
            "an ONNX model that was read from bytes is saved with its file's content: "
            "give it as document=..., "
            "of a run that was loaded loopscope.run_file.read_run(path).document"
        )
    try:
        content = document or Path(file).read_bytes()
        if not weights:
            from loopscope.run_file.onnx_weightless import onnx_with_zeros

            content = onnx_with_zeros(content)
        sentence = difference(
            model if weights else without_data(model),
            _read_as_opened(content, opened)
            if weights
            else without_data(_read_as_opened(content, opened)),
        )
    except OSError as error:
        raise WriteError(
            f"the file of the model, {shorten(file)}, cannot be read any more: {error.strerror}"
        ) from None
    except Exception as error:  # weights in other files, or a file that was damaged since
        raise WriteError(f"the model cannot be written into the file of the run: {error}") from None
    if sentence:
        raise WriteError(
            f"the file of the model has changed since it was opened ({sentence}): "
            "open it again, then save the run"
        )
    return {"model/model.onnx": content}


def _write(target: Path, description: bytes, entries: Mapping[str, Any]) -> None:
    try:
        with replaced_file(target) as file:
            write_archive(file, description, entries)
    except OSError as error:
        raise WriteError(f"{str(target)!r} cannot be written: {error.strerror}") from None


SHORT_SECONDS = 10.0
"""Duration in seconds above which a run is not repeated but saved as it was recorded."""
_STEPS_ONE_BY_ONE = 20_000


def record_everything(debugger: Debugger, budget_bytes: int) -> Debugger:
    """Return the same run with every value recorded.

    Return the given run if it recorded everything, took too long, or ends differently when
    repeated.
    """
    machine, beginning = debugger.machine, debugger.beginning
    has_everything = beginning.record.everything and not beginning.record.recompute
    too_long = machine.control.used_seconds > SHORT_SECONDS or (
        debugger.state == "paused" and debugger.steps > _STEPS_ONE_BY_ONE
    )
    if has_everything or too_long or debugger.plan.lacks_weights:
        return debugger
    repeated = Debugger(
        debugger.model,
        dict(
            enumerate(
                machine.values[debugger.plan.main.parameters[item.layer]]
                for item in debugger.model.inputs
            )
        ),
        limits=replace(beginning.limits, seconds=2 * SHORT_SECONDS),
        record=Record(everything=True, recompute=False, budget_bytes=budget_bytes),
        seed=beginning.seed,
        changes={item.address: item.value for item in debugger.changes},
        optimise=debugger.plan.optimise,
    )
    if debugger.state == "paused":
        repeated.seek(debugger.steps)
    else:
        repeated.run()
    return (
        repeated
        if (repeated.state, repeated.steps) == (debugger.state, debugger.steps)
        else debugger
    )
