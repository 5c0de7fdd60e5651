"""Export of a trace to files for other tools: npz, CSV, Parquet or JSON.

Keys are full nested addresses. Texts in CSV are such that a spreadsheet does not interpret them as
formulas.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loopscope.debug.overrides_by_address import list_changes
from loopscope.debug.result import as_public
from loopscope.debug.run import Run
from loopscope.errors import EngineError, NotKept
from loopscope.executor.plan.plan import ABSENT, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.history import summarise
from loopscope.ir.element_type import ElementType
from loopscope.ops.stored import plain, write
from loopscope.ops.values import is_tensor, shortest
from loopscope.replaced_file import replaced_file

if TYPE_CHECKING:
    import pandas as pd


_COLUMNS = ("address", "type", "shape", "value", "min", "max", "mean", "not_finite")
EXPORT_FORMATS = (".npz", ".csv", ".parquet", ".json")


def export(
    run: Run, path: str | Path, *, most_values: int = 100_000, most_bytes: int = 2**30
) -> int:
    """Write every value computed so far in the format of the file's ending; return the number of
    values.

    ``.npz`` contains whole arrays. Types unknown to numpy become the next wider type, and texts
    lose trailing NULs, as in numpy. The other formats contain one row per value with its summary
    and, for single elements, the value itself. Integers are exact; a float is the shortest text
    that reads back as the same value in its type: 0.1, not 0.10000000149011612. In Parquet, whose
    columns have one type, ``min`` and ``max`` are f64, and ``min_exact`` and ``max_exact`` contain
    integers as text. Values that a run was saved without are omitted. Raise ``EngineError`` for an
    unknown ending, or if there are more values or bytes than allowed.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in EXPORT_FORMATS:
        formats = ", ".join(EXPORT_FORMATS)
        raise EngineError(
            f"a trace is written as {formats}, not as {ending or 'a file without ending'}"
        )
    values = _collect_values(run, most_values, most_bytes)
    if ending == ".npz":
        with replaced_file(target) as file:
            arrays = {entry.address: plain(entry.array) for entry in values}
            write(file, arrays, zipfile.ZIP_DEFLATED)
        return len(values)
    rows = [_row(entry, in_text=ending != ".parquet") for entry in values]
    if ending == ".json":
        changes = [
            {"address": change.address, "reached": change.reached} for change in list_changes(run)
        ]
        exported = {"values": rows, "control_flow": _control_flow(run), "changes": changes}
        with replaced_file(target) as file:
            file.write(json.dumps(exported, allow_nan=False).encode())
        return len(rows)
    _write_table(target, rows)
    return len(rows)


@dataclass(frozen=True, slots=True, eq=False)
class _StoredTensor:
    """A tensor of a trace."""

    address: str
    element_type: str
    """Element type as models spell it, such as ``bf16``."""
    array: np.ndarray
    """Array of a type that numpy supports; texts unchanged."""


def _write_table(target: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import pandas as pd  # imported here: it takes half a second, and only tables need it

    frame = pd.DataFrame([_parquet_row(row) for row in rows], columns=list(_COLUMNS), dtype=object)
    frame = frame.astype({"mean": "float64", "not_finite": "int64"})
    if target.suffix.lower() == ".csv":
        write_csv(frame, target)
        return
    for name in ("min", "max"):
        frame[f"{name}_exact"] = [
            str(row[name]) if isinstance(row[name], int) else None for row in rows
        ]
    texts = dict.fromkeys(("min_exact", "max_exact"), "string")
    with replaced_file(target) as file:
        frame.astype({"min": "float64", "max": "float64", **texts}).to_parquet(file, index=False)


def _parquet_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose columns have one type each."""
    value = None if row["value"] is None else _encodable(str(row["value"]))
    return {
        **row,
        "address": _encodable(row["address"]),
        "shape": str(row["shape"]),
        "value": value,
    }


def _encodable(text: str) -> str:
    """Return text that UTF-8 can encode; a lone surrogate becomes its Python escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def computed(run: Run) -> Iterator[str]:
    """Yield the address of every output of every executed operation, graph by graph."""
    return (address for address, *_ in _computed_slots(run))


def _computed_slots(run: Run) -> Iterator[tuple[str, Program, int, Slot]]:
    """Yield address, program, row and slot of every output of every executed operation."""
    timeline = run.timeline
    for program in run.plan.programs:
        for row in range(timeline.executions.rows[program.index]):
            graph = timeline.address(program, row)
            for instruction in program.instructions:
                for output, slot in enumerate(instruction.outputs):
                    if slot != ABSENT and run.has_run(program, row, slot):
                        yield (
                            f"{graph}/{instruction.label}" + (f":{output}" if output else ""),
                            program,
                            row,
                            slot,
                        )


def _collect_values(run: Run, most_values: int, most_bytes: int) -> list[_StoredTensor]:
    values: list[_StoredTensor] = []
    total = 0
    for address, program, row, slot in _computed_slots(run):
        try:
            result = run.values.get(run.timeline, program, row, slot)
        except NotKept:
            continue
        for name, value in _tensors(address, result):
            if len(values) >= most_values:
                raise EngineError(
                    f"the trace contains more than {most_values:,} values: "
                    f"allow more, or run fewer iterations"
                )
            total += _stored_bytes(value)
            if total > most_bytes:
                raise EngineError(
                    f"the trace contains more than {most_bytes:,} bytes: "
                    f"allow more, or run fewer iterations"
                )
            array = as_public(value)
            values.append(
                _StoredTensor(
                    name,
                    str(ElementType.of(value)),
                    array if array.dtype == object else plain(array),
                )
            )
    return values


def _tensors(address: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a tensor under its address, and the elements of an ONNX sequence under address and
    index.

    No label ends with an index. Maps and empty optionals yield nothing.
    """
    if isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _tensors(f"{address}[{number}]", item)
    elif is_tensor(value) and value is not None:
        yield address, np.asarray(value)


def _stored_bytes(value: np.ndarray) -> int:
    """Return the maximum bytes that a stored tensor takes; every text takes as much as the
    longest.
    """
    if value.dtype == object:
        return value.size * 4 * max((len(str(text)) for text in value.flat), default=0)
    return value.size * max(value.dtype.itemsize, 4)


def _row(stored: _StoredTensor, *, in_text: bool) -> dict[str, Any]:
    array, summary = stored.array, summarise(stored.array)
    single = _shortest(array.reshape(-1).tolist()[0], array.dtype) if array.size == 1 else None
    extremes = [
        _shortest(extreme, array.dtype) if in_text else extreme
        for extreme in (summary.minimum, summary.maximum)
    ]
    columns = (
        stored.element_type,
        list(array.shape),
        single,
        *extremes,
        summary.mean,
        summary.not_finite,
    )
    return dict(zip(_COLUMNS, (stored.address, *map(_plain, columns)), strict=True))


def _shortest(value: Any, kind: np.dtype) -> Any:
    """Return an element as the number with the shortest text that its type reads as the same
    value.
    """
    return (
        shortest(np.array(value, kind)).item()
        if isinstance(value, float) and kind.kind == "f"
        else value
    )


def _plain(value: Any) -> Any:
    """Return NaN and infinities as text, because JSON cannot represent them."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _control_flow(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "address": record.address,
            "kind": record.kind,
            "iterations": record.iterations,
            "ended_by": record.ended_by,
            "branch": record.branch,
        }
        for record in run.control_flow
    ]


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|nan)", re.ASCII)


def write_csv(frame: pd.DataFrame, target: Path) -> None:
    """Write a table as CSV; prefix texts that a spreadsheet would execute with an apostrophe."""
    texts = frame.select_dtypes(["object", "string"])
    safe = frame.copy(deep=False)
    for name, column in texts.items():
        safe[name] = column.map(escaped)
    with replaced_file(target) as file:
        safe.to_csv(file, index=False, mode="wb")


def escaped(cell: object) -> object:
    """Return a cell, prefixed with an apostrophe if its text starts like a formula.

    >>> escaped("=1+1"), escaped("-x"), escaped("-1.5e-07"), escaped(-1.5), escaped("a=b")
    ("'=1+1", "'-x", '-1.5e-07', -1.5, 'a=b')
    """
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
