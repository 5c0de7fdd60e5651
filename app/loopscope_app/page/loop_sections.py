"""Sections of a page about each execution of a loop: table, tape, and matrix of all values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import Matrix, MatrixRow, iteration_matrix, step_of_cell
from loopscope.timeline import ControlFlowRecord
from loopscope_app.describe.lane_chart import message
from loopscope_app.describe.loop_tape import tape
from loopscope_app.describe.matrix_chart import chart_of, words_of
from loopscope_app.page.text_sections import columns_of, loops, rows_of, table, unfolding


@dataclass(frozen=True, slots=True)
class PagedMatrix:
    """The matrix of one execution of a loop, with the steps of its cells."""

    words: str
    """HTML legend of the marks."""
    chart: Mapping[str, object]
    begins: tuple[int, ...]
    """Step at which each iteration begins, by column."""
    end: int
    """The step after the last iteration."""
    cells: tuple[tuple[int, ...], ...]
    """Step after which the value of a cell exists, by lane and column."""
    addresses: tuple[str, ...]
    """Static address of the node, by lane."""

    def as_data(self, at: Callable[[int], int]) -> dict[str, object]:
        """Return the matrix for the page's script. ``at`` maps a step to a moment; moments of cells
        count from the beginning of their iteration.
        """
        begins = [at(step) for step in self.begins]
        cells = [
            [at(step) - begin for step, begin in zip(lane, begins, strict=True)]
            for lane in self.cells
        ]
        return {
            "chart": self.chart,
            "begins": begins,
            "end": at(self.end),
            "cells": cells,
            "addresses": self.addresses,
        }


def matrices(debugger: loopscope.Debugger) -> tuple[PagedMatrix | None, ...]:
    """Return the matrices of the shown loops, in order; None for a loop without one."""
    return tuple(_matrix(debugger, record, number) for number, record in enumerate(loops(debugger)))


def _matrix(
    debugger: loopscope.Debugger, record: ControlFlowRecord, number: int
) -> PagedMatrix | None:
    try:
        matrix = iteration_matrix(debugger, record.address)
    except EngineError:
        return None
    chart, rows = chart_of(matrix)
    shown = [row for row in rows if row is not None]
    program, step_at = matrix.program, debugger.timeline.step_at
    return PagedMatrix(
        words_of(matrix, chart),
        message(chart, f"matrix {number}"),
        tuple(step_at(program, matrix.first_row + iteration, 0) for iteration in matrix.iterations),
        _end(debugger, matrix),
        tuple(
            tuple(step_of_cell(debugger, matrix, row, iteration) for iteration in matrix.iterations)
            for row in shown
        ),
        tuple(_address(matrix, row) for row in shown),
    )


def _end(debugger: loopscope.Debugger, matrix: Matrix) -> int:
    last = matrix.first_row + matrix.total - 1
    return debugger.timeline.step_at(matrix.program, last, len(matrix.program.instructions))


def _address(matrix: Matrix, row: MatrixRow) -> str:
    return f"{matrix.program.address}/{row.label}"


def loop_sections(
    debugger: loopscope.Debugger,
    graphs: Mapping[str, int],
    shown: tuple[PagedMatrix | None, ...],
    *,
    with_values: bool,
) -> str:
    """Return an HTML section for each of the first executions of loops. ``graphs`` maps each
    execution of a graph to its first moment.
    """
    sections: list[str] = []
    for number, (record, matrix) in enumerate(zip(loops(debugger), shown, strict=True)):
        rows = table(debugger, record, graphs, with_values=with_values)
        sections.append(
            unfolding(record, rows + _tape(debugger, record, with_values) + _slot(matrix, number))
        )
    return "".join(sections)


def _tape(debugger: loopscope.Debugger, record: ControlFlowRecord, with_values: bool) -> str:
    columns = columns_of(debugger, record, with_values=with_values)
    return tape(rows_of(debugger, record, columns), columns, None)


def _slot(matrix: PagedMatrix | None, number: int) -> str:
    """Return the element into which the script draws the matrix when it is opened."""
    if matrix is None:
        return ""
    words = f'<p class="about">{matrix.words}</p>'
    return (
        f'<details class="matrix" data-matrix="{number}"><summary>Every value in every '
        f"iteration</summary>{words}<div></div></details>"
    )
