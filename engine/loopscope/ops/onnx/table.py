"""The table of ONNX operations: one row for each kernel and derivative that an operation had."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from loopscope.ops.onnx.row import OnnxRow
from loopscope.ops.onnx.rows import data, elementwise, layers, machine_learning

ML_DOMAIN = "ai.onnx.ml"

ROWS: Mapping[str, tuple[OnnxRow, ...]] = {
    "": (
        *elementwise.ROWS,
        *data.GENERATION,
        *data.IMAGE,
        *layers.MATRIX,
        *data.MOVEMENT,
        *layers.NORMALIZATION,
        *layers.POOLING,
        *layers.QUANTIZATION,
        *layers.SEQUENCE,
        *data.SIGNALS,
        *data.STRING,
    ),
    ML_DOMAIN: machine_learning.ROWS,
}
"""All rows by domain; the standard domain is the empty text, as in schemas."""


def _by_name() -> Mapping[tuple[str, str], list[OnnxRow]]:
    table = defaultdict[tuple[str, str], list[OnnxRow]](list)
    for domain, rows in ROWS.items():
        for row in rows:
            table[domain, row.name].append(row)
    return dict(table)


_TABLE = _by_name()


def find_row(domain: str, name: str, version: int) -> OnnxRow | None:
    """Return the row of a version of an operation; None if the onnx package alone computes it and
    it has no derivative.
    """
    rows = _TABLE.get((domain, name), ())
    return next((row for row in rows if row.since <= version <= row.until), None)
