"""A trace as files that other tools read: npz, CSV or Parquet, JSON. A value's full nested address is its key."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from engine.debug.debugger import Debugger
from engine.errors import EngineError
from engine.explain.history import summarise
from engine.ops.values import is_tensor
from engine.run.plan import Program

FORMATS = (".npz", ".csv", ".parquet", ".json")


def export(debugger: Debugger, path: str | Path, *, most_values: int = 100_000, most_bytes: int = 2**30) -> int:
    """Writes every value that has been computed so far, in the format that the file's ending names; gives how many.

    ``.npz`` holds whole arrays, the others a row for each value with its summary and, for single elements, the value itself.
    ``EngineError`` when the ending is another or there are more values or bytes than allowed.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in FORMATS:
        raise EngineError(f"a trace is written as {', '.join(FORMATS)}, not as {ending or 'a file without ending'}")
    values = _bounded(debugger, most_values, most_bytes)
    if ending == ".npz":
        _write_npz(target, values)
        return len(values)
    rows = [_row(address, value) for address, value in values.items()]
    if ending == ".json":
        changes = [{"address": one.address, "reached": one.reached} for one in debugger.changes]
        told = {"values": rows, "control_flow": _control_flow(debugger), "changes": changes}
        target.write_text(json.dumps(told, allow_nan=False))
        return len(rows)
    import pandas as pd  # costs half a second that only tables need

    frame = pd.DataFrame(rows)
    frame["value"] = [None if row["value"] is None else str(row["value"]) for row in rows]
    if ending == ".csv":
        frame.to_csv(target, index=False)
    else:
        frame.to_parquet(target, index=False)
    return len(rows)


def _write_npz(target: Path, values: dict[str, np.ndarray]) -> None:
    """As ``np.savez``, which takes names only as keywords and so refuses some."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for address, value in values.items():
            with archive.open(f"{address}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value, allow_pickle=False)


def computed(debugger: Debugger) -> Iterator[str]:
    """The address of every output of every operation that has run, graph by graph."""
    timeline = debugger.timeline
    for program in debugger.plan.programs:
        for row in range(timeline.executions.rows[program.index]):
            graph = timeline.address(program, row)
            yield from (f"{graph}/{name}" for name in _names(debugger, program, row))


def _names(debugger: Debugger, program: Program, row: int) -> Iterator[str]:
    for instruction in program.instructions:
        for output, slot in enumerate(instruction.outputs):
            if debugger.has_run(program, row, slot):
                yield instruction.label + (f":{output}" if output else "")


def _bounded(debugger: Debugger, most_values: int, most_bytes: int) -> dict[str, np.ndarray]:
    values: dict[str, np.ndarray] = {}
    total = 0
    for address in computed(debugger):
        if len(values) >= most_values:
            raise EngineError(f"the trace holds more than {most_values:,} values: allow more, or run fewer iterations")
        for name, value in _tensors(address, debugger.value(address)):
            values[name] = _storable(value)
            total += values[name].nbytes
        if total > most_bytes:
            raise EngineError(f"the trace holds more than {most_bytes:,} bytes: allow more, or run fewer iterations")
    return values


def _tensors(address: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """A tensor under its address; the elements of an ONNX sequence under theirs; nothing where an optional holds nothing."""
    if isinstance(value, tuple):
        for number, one in enumerate(value):
            yield from _tensors(f"{address}.{number}", one)
    elif is_tensor(value) and value is not None:
        yield address, value


def _storable(value: np.ndarray) -> np.ndarray:
    """Text as fixed-width text and types that only ml_dtypes knows as float32, so that no reader needs more than numpy."""
    if value.dtype.kind == "O":
        return value.astype(str)
    return value.astype(np.float32) if value.dtype.kind == "V" else value


def _row(address: str, value: np.ndarray) -> dict[str, Any]:
    summary = summarise(value)
    single = value.reshape(-1)[0].item() if value.size == 1 else None
    return {
        "address": address,
        "type": str(value.dtype),
        "shape": "x".join(str(length) for length in value.shape),
        "value": _plain(single),
        "min": _plain(summary.least),
        "max": _plain(summary.most),
        "mean": _plain(summary.mean),
        "not_finite": summary.not_finite,
    }


def _plain(value: Any) -> Any:
    """NaN and infinities as text: JSON has none."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _control_flow(debugger: Debugger) -> list[dict[str, Any]]:
    return [
        {"address": one.address, "kind": one.kind, "iterations": one.iterations, "ended_by": one.ended_by, "branch": one.branch}
        for one in debugger.control_flow
    ]
