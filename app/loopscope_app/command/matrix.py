"""``loopscope matrix``: print every value of a loop's body over the iterations."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import loopscope
from loopscope.errors import counted
from loopscope.explain import MOST_COLUMNS, Matrix, MatrixCell, MatrixRow, iteration_matrix
from loopscope.ops import NOT_KEPT, is_tensor
from loopscope.view import number_text
from loopscope_app.command.address_question import Answer, address_parser, print_answer
from loopscope_app.command.answer_data import strict, value_data
from loopscope_app.command.command_line import whole_number

_MAX_ROWS = 1 << 30
_MAX_ELEMENTS = 8
"""Number of elements up to which a cell contains the whole value."""


def main(words: Sequence[str]) -> int:
    """Print the matrix and return the exit code: 0 the loop ran, 2 the loop does not exist."""
    options = _options(words)
    return print_answer(
        options, lambda debugger, address: _matrix(debugger, address, options.columns)
    )


def _matrix(debugger: loopscope.Debugger, address: str, columns: int) -> Answer:
    matrix = iteration_matrix(debugger, address, columns, _MAX_ROWS)
    return matrix_data(matrix), _lines(matrix)


def matrix_data(matrix: Matrix) -> dict[str, Any]:
    """Return a row for each value, with a cell for each chosen iteration.

    A cell is null if its value did not run or was not computed.
    """
    return {
        "address": matrix.address,
        "total": matrix.total,
        "iterations": [int(iteration) for iteration in matrix.iterations],
        "rows": [_row(matrix, row) for row in matrix.rows],
        "rows_left_out": matrix.left_out,
        "complete": matrix.complete,
    }


def _row(matrix: Matrix, row: MatrixRow) -> dict[str, Any]:
    return {
        "address": f"{matrix.program.address}/{row.label}",
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
    return {"mean": strict(cell.number), "odd": cell.odd, **value_data(cell.value, _MAX_ELEMENTS)}


def _lines(matrix: Matrix) -> Iterator[str]:
    columns = len(matrix.iterations)
    choice = (
        "" if columns == matrix.total else f", {columns:,} of them shown (--columns shows more)"
    )
    yield f"{matrix.address}: {counted(matrix.total, 'iteration')}{choice}"
    if not matrix.complete:
        yield (
            "the time limit was reached before all cells were computed: `loopscope value` returns "
            "any value"
        )
    lines = [
        ["iteration", *map(str, matrix.iterations)],
        *([f"{row.name} ({row.role})", *map(_cell_text, row.cells)] for row in matrix.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        yield "  ".join(
            [
                name.ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)),
            ]
        )


def _cell_text(cell: MatrixCell | None) -> str:
    """Return a branch, a single number, or the mean of a tensor, as the screen shows it."""
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
    parser = address_parser(
        "matrix",
        "Run a model and print every value of a loop's body in every iteration, or in evenly "
        "chosen iterations of a long loop.",
        "a Loop, TensorIterator or Scan, with iterations if it is inside a loop",
    )
    parser.add_argument(
        "--columns",
        type=whole_number(1, _MAX_ROWS - 1),
        default=MOST_COLUMNS,
        metavar="N",
        help="largest number of iterations to print (default: %(default)s)",
    )
    return parser.parse_args(words)
