"""The content of a page: pictures, moments, code, and texts about loops; and how it becomes
smaller.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

import loopscope
from loopscope.explain import listing
from loopscope.ir import graphs
from loopscope.version import VERSION
from loopscope.view import Folding, NodeData, without_iterations
from loopscope_app.describe.code_moment import MOST_LINES, shown_lines
from loopscope_app.page.loop_sections import PagedMatrix, loop_sections, matrices
from loopscope_app.page.moments import MOST_MOMENTS, Moments, moments
from loopscope_app.page.paged_pictures import Pictures, pictures
from loopscope_app.page.text_sections import loops, verdicts

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
