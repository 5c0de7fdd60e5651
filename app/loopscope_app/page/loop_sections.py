"""What a page shows of each execution of a loop: the table of its iterations, the tape, the
matrix of all its values.
"""

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
    """The matrix of one execution of a loop, with the steps that its cells lead to."""

    words: str
    """HTML: what its marks mean."""
    chart: Mapping[str, object]
    begins: tuple[int, ...]
    """Of each column: the step at which the iteration begins."""
    end: int
    """The step after the last iteration."""
    cells: tuple[tuple[int, ...], ...]
    """By lane and column: the step before which the value has just been computed."""
    addresses: tuple[str, ...]
    """By lane: the static address of the node."""

    def as_data(self, at: Callable[[int], int]) -> dict[str, object]:
        """For the page's script; ``at``: the moment of a step. Moments of cells are counted from
        the beginning of the iteration.
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
    """Of the loops that are shown, in their order; None where there is none."""
    return tuple(_matrix(debugger, record, number) for number, record in enumerate(loops(debugger)))


def _matrix(
    debugger: loopscope.Debugger, record: ControlFlowRecord, number: int
) -> PagedMatrix | None:
    try:
        found = iteration_matrix(debugger, record.address)
    except EngineError:
        return None
    chart, rows = chart_of(found)
    shown = [row for row in rows if row is not None]
    program, step_at = found.program, debugger.timeline.step_at
    return PagedMatrix(
        words_of(found, chart),
        message(chart, f"matrix {number}"),
        tuple(step_at(program, found.first_row + iteration, 0) for iteration in found.iterations),
        _end(debugger, found),
        tuple(
            tuple(step_of_cell(debugger, found, row, iteration) for iteration in found.iterations)
            for row in shown
        ),
        tuple(_address(found, row) for row in shown),
    )


def _end(debugger: loopscope.Debugger, found: Matrix) -> int:
    last = found.first_row + found.total - 1
    return debugger.timeline.step_at(found.program, last, len(found.program.instructions))


def _address(found: Matrix, row: MatrixRow) -> str:
    return f"{found.program.address}/{row.label}"


def loop_sections(
    debugger: loopscope.Debugger,
    graphs: Mapping[str, int],
    shown: tuple[PagedMatrix | None, ...],
    *,
    with_values: bool,
) -> str:
    """HTML, a section for each execution of a loop, the first ones of many; ``graphs``: the
    first moment in each execution of a graph.
    """
    made: list[str] = []
    for number, (record, matrix) in enumerate(zip(loops(debugger), shown, strict=True)):
        rows = table(debugger, record, graphs, with_values=with_values)
        made.append(
            unfolding(record, rows + _tape(debugger, record, with_values) + _slot(matrix, number))
        )
    return "".join(made)


def _tape(debugger: loopscope.Debugger, record: ControlFlowRecord, with_values: bool) -> str:
    columns = columns_of(debugger, record, with_values=with_values)
    return tape(rows_of(debugger, record, columns), columns, None)


def _slot(matrix: PagedMatrix | None, number: int) -> str:
    """Where the script draws it, once somebody looks."""
    if matrix is None:
        return ""
    words = f'<p class="about">{matrix.words}</p>'
    return f'<details class="matrix" data-matrix="{number}"><summary>Every value in every iteration</summary>{words}<div></div></details>'
