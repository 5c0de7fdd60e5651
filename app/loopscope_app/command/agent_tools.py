"""Tools that an agent may call on models and saved runs.

Every answer is bounded JSON. Only ``page`` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import loopscope
from loopscope.checks import check, own_runtimes, text
from loopscope.errors import AddressError, InputError
from loopscope.explain import (
    NotFinite,
    executions,
    first_infinity,
    first_nan,
    iteration_matrix,
    verdict,
)
from loopscope.ir import ROOT, ModelGraph, OutputRef, PlacedGraph, Port, full_address, graphs
from loopscope.ops import CATALOGUE
from loopscope.peers import against, fates
from loopscope.run_file import SavedRun
from loopscope_app.command.agent_files import AgentPages, AgentRuns, AllowedFiles
from loopscope_app.command.answer_data import explain_regions, value_data, verdict_data
from loopscope_app.command.drift import drift_data
from loopscope_app.command.matrix import matrix_data
from loopscope_app.command.report import describe
from loopscope_app.describe.input_parsing import step_or_address

_NODES = 200
"""Nodes of a graph in one answer."""
_ELEMENTS = 4096
"""Elements of a value in one answer."""
_COLUMNS, _ROWS = 32, 40
_PAIRS = 40
"""Compared values in one answer: those with the largest differences."""
_REGIONS = 40
"""Loops and Ifs that one answer explains."""


class AgentTools:
    """The tools of an agent.

    A path names a model or a saved run (.loopscope), absolute or relative to an allowed folder.
    ``inputs`` is the path of an .npz file, values as text, or empty if the model needs none or the
    run is saved. ``values`` maps input names to numbers or lists and overrides ``inputs``.
    """

    def __init__(
        self, files: AllowedFiles, limits: loopscope.Limits, pages: AgentPages | None = None
    ) -> None:
        self._runs = AgentRuns(files, limits)
        self._pages = pages

    def open(self, model: str) -> dict[str, Any]:
        """Describe a model file, or the model of a saved run (.loopscope) with the moment at which
        it was saved: inputs, outputs, and the addresses of its loops and branches.
        """
        named = self._runs.named(model)
        content = named.model
        places = list(graphs(content))
        regions = [
            {"address": f"{place.address}/{place.labels[node.id]}", "operation": node.type}
            for place in places
            for node in place.graph.nodes
            if node.bodies
        ]
        return {
            "name": content.name,
            "inputs": [
                {
                    "name": signature.name,
                    "names": list(signature.names),
                    **_type_and_shape(signature.element_type, signature.shape),
                }
                for signature in content.inputs
            ],
            "outputs": [
                {
                    "name": signature.name,
                    "names": list(signature.names),
                    **_type_and_shape(signature.element_type, signature.shape),
                }
                for signature in content.outputs
            ],
            "graphs": [
                {"address": place.address, "nodes": len(place.graph.nodes)}
                for place in places[:_NODES]
            ],
            "graphs_left_out": max(0, len(places) - _NODES),
            "loops_and_branches": regions[:_NODES],
            "loops_and_branches_left_out": max(0, len(regions) - _NODES),
            **({"saved_run": _saved_run_data(named.saved)} if named.saved else {}),
        }

    def check(self, model: str) -> dict[str, Any]:
        """Report what is wrong with a model and what is odd about it: diagnostics with codes,
        places and advice.
        """
        content = self._runs.named(model).model
        report = text.data(check(content, CATALOGUE).about(own_runtimes(content)))
        diagnostics = report["diagnostics"]
        assert isinstance(diagnostics, list)
        return {
            **report,
            "diagnostics": diagnostics[:_NODES],
            "diagnostics_left_out": max(0, len(diagnostics) - _NODES),
        }

    def graph(self, model: str, body: str = "main", first: int = 0) -> dict[str, Any]:
        """List the operations of one graph as text, 200 at a time from number ``first``. ``body``
        is ``main`` or the address of a nested graph such as ``main/loop/body``; the tool `open`
        lists them.
        """
        content = self._runs.named(model).model
        place = next((placed for placed in graphs(content) if placed.address == body), None)
        if place is None:
            raise AddressError(f"there is no graph {body!r}: the tool `open` lists all graphs")
        total = len(place.graph.nodes)
        begin = max(0, first)
        return {
            "address": place.address,
            "total": total,
            "first": begin,
            "operations": list(_operation_lines(place, begin)),
        }

    def run(
        self, model: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run a model and return its outputs. Explain the loops and Ifs, at most 40: how often each
        ran, why it ended or which branch it took, and which operation decided with which operands.
        """
        debugger = self._runs.run(model, inputs, values)
        state = {
            "state": debugger.state,
            "message": debugger.failure or "",
            "address": debugger.failed_address or "",
        }
        if self._runs.generated:
            state["inputs"] = self._runs.generated
        result = debugger.result
        outputs = (
            zip(result.signatures, result.outputs, strict=True)
            if debugger.state == "finished"
            else ()
        )
        regions = explain_regions(debugger, _REGIONS)
        return {
            **state,
            "outputs": [describe(signature, value) for signature, value in outputs],
            "explained": regions,
            "explained_left_out": sum(1 for _ in executions(debugger)) - len(regions),
        }

    def why(
        self, model: str, address: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Explain why one loop ended or which branch an If took, with the proof. ``address`` is
        such as ``main/outer[2]/body/inner``; without an iteration it means the last one. The end of
        an address is enough if it is unique.
        """
        debugger = self._runs.run(model, inputs, values)
        return verdict_data(debugger, verdict(debugger, full_address(debugger.model, address)))

    def value(
        self, model: str, address: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return one value of a run in any iteration (``main/loop[2]/body/Add:0``): whole up to
        4,096 elements, else a summary.
        """
        debugger = self._runs.run(model, inputs, values)
        full = full_address(debugger.model, address)
        place = full if full.partition("/")[0] == ROOT else f"{ROOT}/{full}"
        return {"address": place, **value_data(debugger.value(place), _ELEMENTS)}

    def matrix(
        self, model: str, address: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the values of a loop's body over its iterations: up to 40 values in 32 evenly
        chosen iterations. A large value is summarised (`value` returns its elements). An If has no
        matrix; `open` lists the kinds.
        """
        debugger = self._runs.run(model, inputs, values)
        matrix = matrix_data(
            iteration_matrix(debugger, full_address(debugger.model, address), _COLUMNS, _ROWS)
        )
        return {
            **matrix,
            "rows": [
                {**row, "cells": [_shorten_cell(cell) for cell in row["cells"]]}
                for row in matrix["rows"]
            ],
        }

    def first_nan(
        self, model: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Find the operation and iteration that produced the first NaN of a run. Infinities among
        its inputs do not count.
        """
        return _not_finite(first_nan(self._runs.run(model, inputs, values), self._runs.seconds))

    def first_infinity(
        self, model: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Find the operation and iteration that produced the first infinity of a run."""
        return _not_finite(
            first_infinity(self._runs.run(model, inputs, values), self._runs.seconds)
        )

    def compare(
        self, model: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run a model here and in its own runtime, OpenVINO or ONNX Runtime, and report the first
        operation and iteration that differ.
        """
        debugger, named = self._runs.finished(model, inputs, values), self._runs.named(model)
        report = against(
            debugger,
            self._runs.inputs_of(named, inputs, values),
            seconds=self._runs.seconds,
            document=named.document,
        )
        return {
            "agrees": report.agrees,
            "outputs_agree": report.outputs_agree,
            "sentence": report.sentence,
        }

    def drift(
        self,
        model: str,
        other: str = "",
        rounding: dict[str, str] | None = None,
        inputs: str = "",
        values: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Report how far two models drift apart on the same inputs, value by value and iteration by
        iteration. ``other`` is another model file. Without it, ``rounding`` maps address patterns
        to types ({"main/*/state": "bf16"}), and the model is compared with itself rounded.
        """
        if bool(other) == bool(rounding):
            raise InputError("drift needs either `other`, a second model, or `rounding`")
        bindings = self._runs.inputs_of(self._runs.named(model), inputs, values)
        run = self._runs.recorded(model, bindings, {})
        other_run = self._runs.recorded(other or model, bindings, rounding or {})
        result = loopscope.drift(run, other_run)
        pairs = sorted(result.pairs, key=lambda pair: -pair.worst.relative)
        shortened = replace(
            result,
            unmatched=_first_pairs(result.unmatched),
            unpacking=_first_pairs(result.unpacking),
            partings=result.partings[:_PAIRS],
        )
        data = drift_data(replace(shortened, pairs=tuple(pairs[:_PAIRS])))
        return {**data, "sentence": result.sentence, "pairs_left_out": max(0, len(pairs) - _PAIRS)}

    def fate(self, model: str) -> dict[str, Any]:
        """Report what the model's own runtime runs in place of each of its loops and branches."""
        named = self._runs.named(model)
        result = fates(named.model, seconds=self._runs.seconds, document=named.document)
        return {
            **asdict(result),
            "regions": [asdict(region) for region in result.regions[:_NODES]],
            "regions_left_out": max(0, len(result.regions) - _NODES),
        }

    def page(
        self,
        model: str,
        inputs: str = "",
        values: dict[str, Any] | None = None,
        note: str = "",
        at: str = "",
    ) -> dict[str, Any]:
        """Write a run as one HTML file for people, which opens offline and steps, plays and folds;
        return its path. ``note`` is shown on the page. ``at`` is the moment at which it opens: a
        step, or an address such as ``main/loop[2]/body/Add`` (default: the first; for a saved run
        the step at which it was saved).
        """
        assert self._pages is not None
        debugger = self._runs.run(model, inputs, values)
        step = self._runs.saved_step
        debugger.seek(step_or_address(at) if at else step)
        result = self._pages.write(debugger, Path(model).stem, note, with_values=True)
        debugger.seek(debugger.steps)
        return result


def _saved_run_data(saved: SavedRun) -> dict[str, Any]:
    description = saved.description
    return {
        "state": description.state,
        "step": description.step,
        "steps": description.steps,
        "made_by": description.made_by,
        "weights_kept": description.weights_kept,
        "set_by_hand": list(description.changes[:_REGIONS]),
        "breakpoints": [breakpoint.pattern for breakpoint in description.breakpoints[:_REGIONS]],
        "watches": list(description.watches[:_REGIONS]),
    }


def _shorten_cell(cell: Any) -> Any:
    """Return a cell of a matrix without the elements beside its summary."""
    return (
        {name: value for name, value in cell.items() if name not in ("first", "last")}
        if isinstance(cell, dict)
        else cell
    )


def _first_pairs(
    places: tuple[tuple[str, ...], tuple[str, ...]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return places[0][:_PAIRS], places[1][:_PAIRS]


def _type_and_shape(element_type: object, shape: object) -> dict[str, Any]:
    return {
        "type": "any"
        if element_type is None
        else str(getattr(element_type, "value", element_type)),
        "shape": str(shape),
    }


def _operation_lines(place: PlacedGraph, first: int) -> Iterator[str]:
    """Yield a line for each operation: its address, type, sources and outputs."""
    graph: ModelGraph = place.graph
    for node in graph.nodes[first : first + _NODES]:
        sources = [
            "nothing" if source is None else _source_label(place, source)
            for source in graph.sources[node.id]
        ]
        bodies = f" with {', '.join(body.name for body in node.bodies)}" if node.bodies else ""
        outputs = ", ".join(map(_port_text, node.outputs))
        call = f"{node.type}({', '.join(sources)}){bodies}{f' -> {outputs}' if outputs else ''}"
        yield f"{place.address}/{place.labels[node.id]} = {call}"


def _source_label(place: PlacedGraph, source: OutputRef) -> str:
    return place.labels[source.layer] + (f":{source.output}" if source.output else "")


def _port_text(port: Port) -> str:
    declared = _type_and_shape(port.element_type, port.shape)
    return f"{declared['type']} {declared['shape']}"


def _not_finite(result: NotFinite) -> dict[str, Any]:
    place = {
        "address": result.address or None,
        "step": result.step,
        "source": result.source or None,
    }
    return {**place, "certain": result.is_certain, "sentence": result.sentence}
