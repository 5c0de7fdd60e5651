"""``loopscope matrix``: says every value of a loop's body in every iteration, or in evenly
chosen ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import loopscope
from loopscope.explain import MOST_COLUMNS, Matrix, MatrixCell, MatrixRow, iteration_matrix
from loopscope.ops import NOT_KEPT, is_tensor
from loopscope.view import number_text
from loopscope_app.command.asking import Answer, answered, parser_of
from loopscope_app.command.value_data import strict, value_data

_ALL = 1 << 30
_SHORT = 8
"""Elements up to which a cell holds its whole value; `loopscope value` gives any."""


def main(words: Sequence[str]) -> int:
    """The exit code: 0 there is such a loop and it ran, 2 there is none."""
    options = _options(words)
    return answered(options, lambda debugger, address: _matrix(debugger, address, options.columns))


def _matrix(debugger: loopscope.Debugger, address: str, columns: int) -> Answer:
    found = iteration_matrix(debugger, address, columns, _ALL)
    return matrix_data(found), _lines(found)


def matrix_data(found: Matrix) -> dict[str, Any]:
    """A row for each value, a cell for each iteration that was chosen; null where it did not run
    or was not computed.
    """
    return {
        "address": found.address,
        "total": found.total,
        "iterations": [int(one) for one in found.iterations],
        "rows": [_row(found, row) for row in found.rows],
        "rows_left_out": found.left_out,
        "complete": found.complete,
    }


def _row(found: Matrix, row: MatrixRow) -> dict[str, Any]:
    return {
        "address": f"{found.program.address}/{row.label}",
        "name": row.name,
        "role": row.role,
        "first_not_finite": row.first_not_finite,
        "first_change": row.first_change,
        "fixed_from": row.fixed_from,
        "cells": [None if cell is None else _cell(cell) for cell in row.cells],
    }


def _cell(cell: MatrixCell) -> dict[str, Any]:
    if isinstance(cell.value, str):
        return {"branch": cell.value}
    return {"mean": strict(cell.number), "odd": cell.odd, **value_data(cell.value, _SHORT)}


def _lines(found: Matrix) -> Iterator[str]:
    shown = len(found.iterations)
    of = "" if shown == found.total else f", {shown:,} of them shown (--columns shows more)"
    yield f"{found.address}: {found.total:,} iteration{'' if found.total == 1 else 's'}{of}"
    if not found.complete:
        yield "not all cells were computed in the time that a matrix may take: `loopscope value` gives any of them"
    lines = [
        ["iteration", *map(str, found.iterations)],
        *([f"{row.name} ({row.role})", *map(_text, row.cells)] for row in found.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        yield "  ".join(
            [
                name.ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)),
            ]
        )


def _text(cell: MatrixCell | None) -> str:
    """The branch, the one number, or the mean of a tensor, as the screen shows it."""
    if cell is None:
        return "-"
    if isinstance(cell.value, str):
        return cell.value
    if cell.value is NOT_KEPT:
        return "not kept"
    if is_tensor(cell.value) and np.size(cell.value) == 1:
        return number_text(np.asarray(cell.value).reshape(-1)[0])
    text = "?" if cell.number is None else f"mean {number_text(cell.number)}"
    return f"{text} (not finite)" if cell.odd else text


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = parser_of(
        "matrix",
        "Run a model and say every value of a loop's body in every iteration; of long loops in evenly chosen ones.",
        "a Loop, TensorIterator or Scan, with iterations where it lies in another",
    )
    parser.add_argument(
        "--columns",
        type=_columns,
        default=MOST_COLUMNS,
        metavar="N",
        help="iterations to show at most (default: %(default)s)",
    )
    return parser.parse_args(words)


def _columns(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < _ALL:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of iterations: a whole number from 1 on is expected"
        )
    return int(text)
