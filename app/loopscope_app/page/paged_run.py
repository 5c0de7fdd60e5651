"""The content of a page: pictures, moments, code, verdicts, and a section for each loop; and how it
becomes smaller.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import Matrix, MatrixRow, iteration_matrix, listing, step_of_cell
from loopscope.ir import graphs
from loopscope.timeline import ControlFlowRecord
from loopscope.version import VERSION
from loopscope.view import Folding, NodeData, without_iterations
from loopscope_app.describe.code_moment import MOST_LINES, shown_lines
from loopscope_app.describe.iteration_table import tape
from loopscope_app.describe.lane_chart import matrix_chart, matrix_words, message
from loopscope_app.page.moments import MOST_MOMENTS, Moments, moments
from loopscope_app.page.paged_pictures import Pictures, pictures
from loopscope_app.page.text_sections import columns_of, loops, rows_of, table, unfolding, verdicts

_MOST_RECORDS = 10_000
"""Largest number of loop executions whose length is read."""


@dataclass(frozen=True, slots=True)
class PagedRun:
    """The content of a page, complete or reduced."""

    debugger: loopscope.Debugger
    step: int
    """The step at which the page opens."""
    with_values: bool
    pictures: Pictures
    moments: Moments
    code: Mapping[str, object]
    verdicts: str
    """Verdicts as HTML."""
    matrices: tuple[PagedMatrix | None, ...]

    @property
    def about(self) -> str:
        """Return how large the run is, and what the page leaves out."""
        count, steps = len(self.moments.steps), self.debugger.steps
        counted = sum(len(place.graph.nodes) for place in graphs(self.debugger.model))
        parts = [f"{counted:,} nodes", f"{steps:,} steps, {self.debugger.state}"]
        if count <= steps:
            parts.append(
                f"{count:,} of the {steps + 1:,} moments of the run, to limit the size of the page"
            )
        if not self.pictures.complete:
            ways = "fold and unroll" if self.pictures.views[0].unrolled else "fold"
            parts.append(
                f"it is drawn in {len(self.pictures.views)} ways to {ways} it, others are left out"
            )
        if not self.with_values:
            parts.append("values of the run are left out")
        return " · ".join([*parts, f"written by Loopscope {VERSION}"])

    def beside(self) -> str:
        """Return HTML with the verdicts and a section for each loop."""
        first_in: dict[str, int] = {}
        for number, graph in enumerate(self.moments.graphs):
            first_in.setdefault(graph, number)
        return self.verdicts + loop_sections(
            self.debugger, first_in, self.matrices, with_values=self.with_values
        )

    def as_data(self) -> dict[str, object]:
        """Return the content for the page's script."""
        shown = [matrix and matrix.as_data(self.moments.at) for matrix in self.matrices]
        own = {"run": "run", "at": self.moments.at(self.step), "code": self.code, "matrices": shown}
        return {**self.pictures.as_data(), **self.moments.as_data(), **own}

    def smaller(self) -> PagedRun | None:
        """Return the run with half of its pictures or moments, the larger of both; None if nothing
        can be left out.
        """
        thinner = self.moments.thinned(self.step)
        fewer = self.pictures.first((len(self.pictures.views) + 1) // 2)
        can_thin = len(thinner.steps) < len(self.moments.steps)
        can_fold_less = len(fewer.views) < len(self.pictures.views)
        if can_fold_less and (
            not can_thin
            or len(packed(self.pictures.as_data())) > len(packed(self.moments.as_data()))
        ):
            return replace(self, pictures=fewer)
        return replace(self, moments=thinner) if can_thin else None


def paged_run(
    debugger: loopscope.Debugger,
    folding: Folding,
    root: str,
    *,
    with_values: bool,
    node_data: NodeData | None,
) -> PagedRun:
    """Return the content of a page that opens at the debugger's cursor. ``node_data`` colours the
    nodes.
    """
    drawn = pictures(
        debugger.model,
        folding,
        root,
        _most_iterations(debugger) if folding.unrolled else None,
        min(debugger.steps + 1, MOST_MOMENTS),
    )
    code = listing(debugger.plan, root)
    addresses = [line.address for line in code.lines[:MOST_LINES]]
    return PagedRun(
        debugger,
        debugger.cursor.step,
        with_values,
        drawn,
        moments(
            debugger,
            drawn,
            code,
            debugger.cursor.step,
            with_values=with_values,
            node_data=node_data,
        ),
        {**shown_lines(debugger.plan, root, code), "addresses": addresses},
        verdicts(debugger, with_values=with_values),
        matrices(debugger) if with_values else (None,) * len(loops(debugger)),
    )


def _most_iterations(debugger: loopscope.Debugger) -> Mapping[str, int]:
    """Return the iteration count of the longest execution of each loop."""
    counts: dict[str, int] = defaultdict(int)
    for record in islice(debugger.control_flow, _MOST_RECORDS):
        address = without_iterations(record.address)
        counts[address] = max(counts[address], record.iterations or 0)
    return counts


def packed(data: Mapping[str, object]) -> str:
    """Return data as the text that a page contains."""
    return base64.b64encode(
        gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)
    ).decode()


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
    chart, rows = matrix_chart(matrix)
    shown = [row for row in rows if row is not None]
    program, step_at = matrix.program, debugger.timeline.step_at
    return PagedMatrix(
        matrix_words(matrix, chart),
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
