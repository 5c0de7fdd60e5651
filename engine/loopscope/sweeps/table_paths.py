"""The branches and iteration counts that all runs of a sweep took, from its Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from loopscope.errors import InputError, shorten
from loopscope.sweeps.row_layout import ERROR, SAMPLE
from loopscope.transform.specialise.taken_paths import TakenPaths


def table_paths(path: Path, values: Mapping[str, Any]) -> TakenPaths:
    """Return each branch and count that was the same in all finished runs of a sweep.

    Only runs count whose inputs have these ``values``, if the file has a column of the input.
    ``InputError`` for a file that is not the result of a sweep, and if no run is left.
    """
    table = _matching(_read(path), values)
    if not len(table):
        raise InputError(f"{path}: no run finished with these values of the inputs")
    branches: dict[str, bool] = {}
    counts: dict[str, int] = {}
    varying: set[str] = set()
    for name in table.column_names:
        kind, _, address = name.partition(" ")
        if kind == "then" and f"else {address}" in table.column_names:
            then, otherwise = _total(table, name), _total(table, f"else {address}")
            if then and otherwise:
                varying.add(address)
            elif then or otherwise:
                branches[address] = bool(then)
        elif kind == "iterations":
            _add_count(table, name, address, counts, varying)
    return TakenPaths(len(table), branches, counts, frozenset(varying))


def _read(path: Path) -> pa.Table:
    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: it cannot be read as Parquet: {shorten(str(error), 200)}"
        ) from None
    if not {SAMPLE, ERROR} <= {*table.column_names}:
        raise InputError(
            f"{path}: expected the file of a sweep (`loopscope sweep MODEL --out runs.parquet`)"
        )
    return table.filter(pc.is_null(table[ERROR]))


def _matching(table: pa.Table, values: Mapping[str, Any]) -> pa.Table:
    for name, value in values.items():
        scalar = np.asarray(value)
        if name in table.column_names and scalar.size == 1:
            table = table.filter(pc.equal(table[name], scalar.reshape(-1)[0].item()))
    return table


def _total(table: pa.Table, name: str) -> int:
    return int(pc.sum(table[name]).as_py() or 0)


def _add_count(
    table: pa.Table, name: str, address: str, counts: dict[str, int], varying: set[str]
) -> None:
    """Add the count of a loop, whose columns are a count, or a minimum and maximum."""
    if address.endswith((" sum", " max")):
        return
    is_nested = address.endswith(" min") and f"{name[:-4]} max" in table.column_names
    largest = f"{name[:-4]} max" if is_nested else name
    address = address[:-4] if is_nested else address
    bounds = pc.min(table[name]).as_py(), pc.max(table[largest]).as_py()
    if bounds[0] is None or bounds[1] is None:
        return
    if bounds[0] == bounds[1]:
        counts[address] = int(bounds[0])
    else:
        varying.add(address)
