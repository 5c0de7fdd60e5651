"""A trace as files that other tools read: npz, CSV or Parquet, JSON. A value's full nested
address is its key.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loopscope.debug.export_value import as_public
from loopscope.debug.overrides_by_address import list_changes
from loopscope.debug.run import Run
from loopscope.errors import EngineError, NotKept
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, Program
from loopscope.explain.csv_table import write_csv
from loopscope.explain.history import summarise
from loopscope.ir.element_type import ElementType
from loopscope.ops.stored import plain, write
from loopscope.ops.values import is_tensor, shortest
from loopscope.replaced_file import replaced_file

_COLUMNS = ("address", "type", "shape", "value", "min", "max", "mean", "not_finite")
EXPORT_FORMATS = (".npz", ".csv", ".parquet", ".json")


def export(
    run: Run, path: str | Path, *, most_values: int = 100_000, most_bytes: int = 2**30
) -> int:
    """Writes every value that has been computed so far, in the format that the file's ending names;
    gives how many.

    ``.npz`` holds whole arrays (of types that numpy lacks as the next wider one, texts without
    trailing NULs, as numpy has them), the others a row for each value with its summary and, for
    single elements, the value itself. Whole numbers are written exactly, a float as the shortest
    text that its own type reads as the same value: 0.1, not 0.10000000149011612. In Parquet, whose
    columns have one type, ``min`` and ``max`` are f64, and ``min_exact`` and ``max_exact`` have
    whole numbers as texts. What a run was saved without is left out. ``EngineError`` when the
    ending is another or there are more values or bytes than allowed.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in EXPORT_FORMATS:
        raise EngineError(
            f"a trace is written as {', '.join(EXPORT_FORMATS)}, not as {ending or 'a file without ending'}"
        )
    values = _bounded(run, most_values, most_bytes)
    if ending == ".npz":
        with replaced_file(target) as file:
            write(file, {one.address: plain(one.array) for one in values}, zipfile.ZIP_DEFLATED)
        return len(values)
    rows = [_row(one, in_text=ending != ".parquet") for one in values]
    if ending == ".json":
        changes = [{"address": one.address, "reached": one.reached} for one in list_changes(run)]
        exported = {"values": rows, "control_flow": _control_flow(run), "changes": changes}
        with replaced_file(target) as file:
            file.write(json.dumps(exported, allow_nan=False).encode())
        return len(rows)
    _write_table(target, rows)
    return len(rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """One tensor of a trace."""

    address: str
    element_type: str
    """As models call it, such as ``bf16``."""
    array: np.ndarray
    """In a type that needs no more than numpy; texts as they are."""


def _write_table(target: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import pandas as pd  # costs half a second that only tables need

    frame = pd.DataFrame([_as_texts(row) for row in rows], columns=list(_COLUMNS), dtype=object)
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


def _as_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose columns have one type each."""
    value = None if row["value"] is None else _writable(str(row["value"]))
    return {**row, "address": _writable(row["address"]), "shape": str(row["shape"]), "value": value}


def _writable(text: str) -> str:
    """Text as UTF-8 can hold it: a half of a surrogate pair as Python writes it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def computed(run: Run) -> Iterator[str]:
    """The address of every output of every operation that has run, graph by graph."""
    return (address for address, *_ in _places(run))


def _places(run: Run) -> Iterator[tuple[str, Program, int, Slot]]:
    """The same with program, row and slot."""
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


def _bounded(run: Run, most_values: int, most_bytes: int) -> list[_Stored]:
    values: list[_Stored] = []
    total = 0
    for address, program, row, slot in _places(run):
        try:
            found = run.values.get(run.timeline, program, row, slot)
        except NotKept:
            continue
        for name, value in _tensors(address, found):
            if len(values) >= most_values:
                raise EngineError(
                    f"the trace holds more than {most_values:,} values: allow more, or run fewer iterations"
                )
            total += _size(value)
            if total > most_bytes:
                raise EngineError(
                    f"the trace holds more than {most_bytes:,} bytes: allow more, or run fewer iterations"
                )
            array = as_public(value)
            values.append(
                _Stored(
                    name,
                    str(ElementType.of(value)),
                    array if array.dtype == object else plain(array),
                )
            )
    return values


def _tensors(address: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """A tensor under its address; the elements of an ONNX sequence under that and their index,
    which no label can end with; nothing for maps, and for an optional that holds nothing.
    """
    if isinstance(value, tuple):
        for number, one in enumerate(value):
            yield from _tensors(f"{address}[{number}]", one)
    elif is_tensor(value) and value is not None:
        yield address, np.asarray(value)


def _size(value: np.ndarray) -> int:
    """The bytes that a tensor takes at most as it is stored: texts all take as much as the
    longest.
    """
    if value.dtype == object:
        return value.size * 4 * max((len(str(text)) for text in value.flat), default=0)
    return value.size * max(value.dtype.itemsize, 4)


def _row(stored: _Stored, *, in_text: bool) -> dict[str, Any]:
    array, summary = stored.array, summarise(stored.array)
    single = _shortest(array.reshape(-1).tolist()[0], array.dtype) if array.size == 1 else None
    extremes = [
        _shortest(one, array.dtype) if in_text else one for one in (summary.least, summary.most)
    ]
    found = (
        stored.element_type,
        list(array.shape),
        single,
        *extremes,
        summary.mean,
        summary.not_finite,
    )
    return dict(zip(_COLUMNS, (stored.address, *map(_plain, found)), strict=True))


def _shortest(value: Any, kind: np.dtype) -> Any:
    """An element of a type as the number that has the shortest text, of those which the type
    reads as the same value.
    """
    return (
        shortest(np.array(value, kind)).item()
        if isinstance(value, float) and kind.kind == "f"
        else value
    )


def _plain(value: Any) -> Any:
    """NaN and infinities as text: JSON has none."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _control_flow(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "address": one.address,
            "kind": one.kind,
            "iterations": one.iterations,
            "ended_by": one.ended_by,
            "branch": one.branch,
        }
        for one in run.control_flow
    ]
