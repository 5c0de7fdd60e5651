"""A debugger's run written to a file: model, inputs, what was set, where it stands, and what it
gave.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import islice
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from loopscope.debug.debugger import Debugger
from loopscope.debug.run import expect_run
from loopscope.errors import WriteError, shorten
from loopscope.ir.equal import difference
from loopscope.ir.model import Model
from loopscope.ops.stored import packed
from loopscope.read import read_model
from loopscope.replaced_file import replaced_file
from loopscope.run_file.record_all import with_everything
from loopscope.run_file.run_archive import (
    ENDING,
    MOST_ENTRIES,
    MOST_OF_A_DESCRIPTION,
    RECORDING,
    array_bytes,
    digest,
    write_archive,
)
from loopscope.run_file.saved_run import MOST_PAUSES, Description, to_json
from loopscope.run_file.verifying import flow_records, output_entries
from loopscope.run_file.weightless import with_zeros, without_data
from loopscope.run_file.write_recording import kept
from loopscope.version import VERSION
from loopscope.write import ir_documents

BUDGET = 64 * 2**20
"""Bytes of what a file keeps of what a run gave."""
_BYTES_OF_A_RECORD = 64
_MOST_RECORDED = MOST_ENTRIES // 2
"""Entries of a recording; the others are inputs, outputs and changes."""


def save(
    debugger: Debugger,
    path: str | os.PathLike[str],
    *,
    budget_bytes: int = BUDGET,
    weights: bool = True,
    look: Mapping[str, str] | None = None,
    document: bytes = b"",
) -> None:
    """Writes a run to a file that ``loopscope.load`` and the app open again at the same moment;
    what was there is replaced.

    It holds the model, the inputs, breakpoints, watches and changes; and, within ``budget_bytes``
    each, outputs and control flow, and what was recorded, so that it opens without running again.
    With ``weights=False`` Consts of more than 64 elements keep their type and shape alone: what was
    recorded can be looked at, and the rest cannot be computed; a run of a few seconds is made once
    more for it, with every value recorded. ``look`` is for the app: parameters of its address.
    ``document`` is the content of the file of an ONNX model that was read from bytes.
    ``WriteError`` when the path does not end with ``.loopscope``, the run is one for some tensors
    only (``fetches``), its model cannot be written down, or what was recorded has no room and there
    are no weights to compute it again with.
    """
    expect_run(debugger, "loopscope.save")
    weights = weights and not debugger.plan.lacks_weights  # a run that was itself saved without
    target = Path(path)
    _expect_savable(debugger, target)
    recorded_flow, outputs = recorded(debugger, budget_bytes)
    changes = {one.address: one.value for one in debugger.changes}
    recorded_run = debugger if weights else with_everything(debugger, budget_bytes)
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
        breakpoints=tuple(one.as_set for one in debugger.breakpoints.items()),
        watches=tuple(expression for _, expression in debugger.watches.items()),
        look=look or {},
        control_flow=recorded_flow,
        outputs_kept=outputs is not None,
        weights_kept=weights,
    )
    _write(target, to_json(description), entries)


def _expect_savable(debugger: Debugger, target: Path) -> None:
    """``WriteError`` for what no file of a run is written of."""
    if target.suffix != ENDING:
        raise WriteError(f"the path is {str(target)!r}, expected one that ends with {ENDING}")
    if debugger.beginning.part or not debugger.beginning.values.keys() <= set(
        debugger.plan.main.parameter_slots
    ):
        raise WriteError(
            "this run is one for some tensors only, or was given tensors that are no inputs: only a whole run is saved"
        )
    if len(debugger.breakpoints) > MOST_PAUSES or len(debugger.watches.items()) > MOST_PAUSES:
        raise WriteError(
            f"a saved run keeps at most {MOST_PAUSES:,} breakpoints and {MOST_PAUSES:,} watches"
        )


def recorded(
    debugger: Debugger, budget_bytes: int
) -> tuple[tuple[tuple[str, int | str, str], ...] | None, dict[str, np.ndarray] | None]:
    """Control flow, and the outputs of a run that finished; None for what has no room in so many
    bytes.
    """
    most = budget_bytes // _BYTES_OF_A_RECORD
    flow = tuple(islice(flow_records(debugger), most + 1))
    outputs = output_entries(debugger) if debugger.state == "finished" else None
    if outputs is not None and sum(array.nbytes for array in outputs.values()) > budget_bytes:
        outputs = None
    return flow if len(flow) <= most else None, outputs


def _recording(debugger: Debugger, budget_bytes: int, *, weights: bool) -> dict[str, bytes]:
    """The entries of what was recorded; where it has no room none, or ``WriteError`` for a file
    without weights.
    """
    found = kept(debugger, budget_bytes, weights=weights)
    if found is not None:
        arrays, document = packed(found.values), json.dumps(found.document).encode()
        if len(arrays) <= _MOST_RECORDED and len(document) <= MOST_OF_A_DESCRIPTION:
            return {RECORDING: document, **_arrays("recording", arrays)}
    if not weights:
        raise WriteError(
            f"what this run has recorded is more than {budget_bytes:,} bytes, and without weights it cannot be computed again: "
            "allow it more, or keep the weights"
        )
    return {}


def _inputs(debugger: Debugger) -> dict[str, np.ndarray]:
    main = debugger.plan.main
    slots = [main.parameters[one.layer] for one in debugger.model.inputs]
    # As the run has them: what was given may have been written to since.
    return packed(
        {str(position): debugger.machine.values[slot] for position, slot in enumerate(slots)}
    )


def _arrays(folder: str, entries: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    return {f"{folder}/{name}.npy": array_bytes(array) for name, array in entries.items()}


def _model(model: Model, document: bytes, *, weights: bool) -> dict[str, bytes]:
    """The files of a model: as IR, or for ONNX the very file, held against the model, which may
    be another than the file is by now.
    """
    if model.dialect == "openvino":
        document, data = ir_documents(model if weights else with_zeros(model))
        return {"model/model.xml": document, "model/model.bin": data}
    if not document and not model.file:
        raise WriteError(
            "an ONNX model that was read from bytes is saved with its file's content: give it as document=..., "
            "of a run that was loaded loopscope.run_file.read_run(path).document"
        )
    try:
        content = document or Path(model.file).read_bytes()
        if not weights:
            from loopscope.run_file.onnx_weightless import onnx_with_zeros

            content = onnx_with_zeros(content)
        parted = difference(
            model if weights else without_data(model),
            read_model(content) if weights else without_data(read_model(content)),
        )
    except OSError as error:
        raise WriteError(
            f"the file of the model, {shorten(model.file)}, cannot be read any more: {error.strerror}"
        ) from None
    except Exception as error:  # weights in other files, and whatever has become of the file
        raise WriteError(f"the model cannot be written into the file of the run: {error}") from None
    if parted:
        raise WriteError(
            f"the file of the model has changed since it was opened ({parted}): open it again, then save the run"
        )
    return {"model/model.onnx": content}


def _write(target: Path, description: bytes, entries: Mapping[str, Any]) -> None:
    try:
        with replaced_file(target) as file:
            write_archive(file, description, entries)
    except OSError as error:
        raise WriteError(f"{str(target)!r} cannot be written: {error.strerror}") from None
