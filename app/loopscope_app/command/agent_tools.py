"""What an agent may ask about models and saved runs: each a question with a bounded answer that
JSON can hold. Only `page` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import loopscope
from loopscope.checks import check, own_runtimes, text
from loopscope.errors import AddressError, InputError
from loopscope.explain import NotFinite, first_infinity, first_nan, iteration_matrix, verdict
from loopscope.ir import ROOT, ModelGraph, OutputRef, PlacedGraph, Port, full_address, graphs
from loopscope.ops import CATALOGUE
from loopscope.peers import against, fates
from loopscope.run_file import SavedRun
from loopscope_app.command.agent_pages import AgentPages
from loopscope_app.command.agent_runs import AgentRuns
from loopscope_app.command.allowed_files import AllowedFiles
from loopscope_app.command.drift import drift_data
from loopscope_app.command.explained import explained, verdict_data
from loopscope_app.command.matrix import matrix_data
from loopscope_app.command.report import describe
from loopscope_app.command.value_data import value_data

_NODES = 200
"""Nodes of a graph that one answer lists."""
_ELEMENTS = 4096
"""Elements of a value that one answer holds."""
_COLUMNS, _ROWS = 32, 40
_PAIRS = 40
"""Values that one answer compares: those that are furthest apart."""
_REGIONS = 40
"""Loops and Ifs that one answer explains."""


class AgentTools:
    """The questions. A path is absolute or relative to a given folder, of a model or of a saved run
    (.loopscope); ``inputs`` is the path of an .npz file, or values in words, or empty for a model
    that needs none and for a saved run; ``values`` gives inputs by name as numbers or lists, and
    goes before those.
    """

    def __init__(
        self, files: AllowedFiles, limits: loopscope.Limits, pages: AgentPages | None = None
    ) -> None:
        self._runs = AgentRuns(files, limits)
        self._pages = pages

    def open(self, model: str) -> dict[str, Any]:
        """Say what a model file is, or the model of a saved run (.loopscope), with the moment at
        which that was saved: inputs, outputs, and its loops and branches by address.
        """
        named = self._runs.named(model)
        found = named.model
        places = list(graphs(found))
        regions = [
            {"address": f"{place.address}/{place.labels[node.id]}", "operation": node.type}
            for place in places
            for node in place.graph.nodes
            if node.bodies
        ]
        return {
            "name": found.name,
            "inputs": [
                {
                    "name": one.name,
                    "names": list(one.names),
                    **_declared(one.element_type, one.shape),
                }
                for one in found.inputs
            ],
            "outputs": [
                {
                    "name": one.name,
                    "names": list(one.names),
                    **_declared(one.element_type, one.shape),
                }
                for one in found.outputs
            ],
            "graphs": [
                {"address": place.address, "nodes": len(place.graph.nodes)}
                for place in places[:_NODES]
            ],
            "graphs_left_out": max(0, len(places) - _NODES),
            "loops_and_branches": regions[:_NODES],
            "loops_and_branches_left_out": max(0, len(regions) - _NODES),
            **({"saved_run": _of_saved(named.saved)} if named.saved else {}),
        }

    def check(self, model: str) -> dict[str, Any]:
        """Say what is wrong with a model and what is odd about it: coded diagnostics with places
        and advice.
        """
        found = self._runs.named(model).model
        told = text.data(check(found, CATALOGUE).about(own_runtimes(found)))
        diagnostics = told["diagnostics"]
        assert isinstance(diagnostics, list)
        return {
            **told,
            "diagnostics": diagnostics[:_NODES],
            "diagnostics_left_out": max(0, len(diagnostics) - _NODES),
        }

    def graph(self, model: str, body: str = "main", first: int = 0) -> dict[str, Any]:
        """List the operations of one graph as text, 200 at a time from number ``first``. ``body``
        is ``main`` or a nested graph's address such as ``main/loop/body``; ``open`` lists them.
        """
        found = self._runs.named(model).model
        place = next((one for one in graphs(found) if one.address == body), None)
        if place is None:
            raise AddressError(
                f"there is no graph {body!r}: the tool `open` lists those that there are"
            )
        total = len(place.graph.nodes)
        begin = max(0, first)
        return {
            "address": place.address,
            "total": total,
            "first": begin,
            "operations": list(_operations(place, begin)),
        }

    def run(
        self, model: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run a model and say its outputs and, for each loop and If, how often it ran, why it ended
        or which branch it took, and which operation decided with which operands.
        """
        debugger = self._runs.run(model, inputs, values)
        told = {
            "state": debugger.state,
            "message": debugger.failure or "",
            "address": debugger.failed_address or "",
        }
        if self._runs.made_up:
            told["inputs"] = self._runs.made_up
        result = debugger.result
        outputs = (
            zip(result.signatures, result.outputs, strict=True)
            if debugger.state == "finished"
            else ()
        )
        regions = explained(debugger, _REGIONS)
        return {
            **told,
            "outputs": [describe(signature, value) for signature, value in outputs],
            "explained": regions,
        }

    def why(
        self, model: str, address: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Say why one loop ended or an If took its branch, with the proof. ``address`` such as
        ``main/outer[2]/body/inner``: without an iteration the last one is meant; an end that no
        other address has will do.
        """
        debugger = self._runs.run(model, inputs, values)
        return verdict_data(debugger, verdict(debugger, full_address(debugger.model, address)))

    def value(
        self, model: str, address: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Say one value of a run, of any iteration (``main/loop[2]/body/Add:0``): whole up to
        4,096 elements, else what is in it.
        """
        debugger = self._runs.run(model, inputs, values)
        found = full_address(debugger.model, address)
        place = found if found.partition("/")[0] == ROOT else f"{ROOT}/{found}"
        return {"address": place, **value_data(debugger.value(place), _ELEMENTS)}

    def matrix(
        self, model: str, address: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Say how the values of a loop's body went over its iterations: up to 40 values in 32
        evenly chosen iterations; of a large value what is in it (`value` has its elements). An If
        has no matrix: `open` says which is which.
        """
        debugger = self._runs.run(model, inputs, values)
        told = matrix_data(
            iteration_matrix(debugger, full_address(debugger.model, address), _COLUMNS, _ROWS)
        )
        return {
            **told,
            "rows": [
                {**row, "cells": [_in_short(cell) for cell in row["cells"]]} for row in told["rows"]
            ],
        }

    def first_nan(
        self, model: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Say which operation, in which iteration, made the first NaN of a run; infinities that
        it is made of do not count.
        """
        return _not_finite(first_nan(self._runs.run(model, inputs, values), self._runs.seconds))

    def first_infinity(
        self, model: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Say which operation, in which iteration, made the first infinity of a run."""
        return _not_finite(
            first_infinity(self._runs.run(model, inputs, values), self._runs.seconds)
        )

    def compare(
        self, model: str, inputs: str = "", values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run a model here and in its own runtime, OpenVINO or ONNX Runtime, and say the first
        operation and iteration that differ.
        """
        debugger, named = self._runs.finished(model, inputs, values), self._runs.named(model)
        report = against(
            debugger,
            self._runs.given(named, inputs, values),
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
        """Say how far two models drift apart on the same inputs, value by value and iteration by
        iteration: ``other`` is another model file; or leave it out and round values of the same
        model: ``rounding`` has types by address patterns ({"main/*/state": "bf16"}).
        """
        if bool(other) == bool(rounding):
            raise InputError("drift takes two models, or one and a rounding")
        given = self._runs.given(self._runs.named(model), inputs, values)
        one, beside = (
            self._runs.recorded(model, given, {}),
            self._runs.recorded(other or model, given, rounding or {}),
        )
        found = loopscope.drift(one, beside)
        apart = sorted(found.pairs, key=lambda pair: -pair.worst.relative)
        some = replace(
            found,
            unmatched=_first(found.unmatched),
            unpacking=_first(found.unpacking),
            partings=found.partings[:_PAIRS],
        )
        told = drift_data(replace(some, pairs=tuple(apart[:_PAIRS])))
        return {**told, "sentence": found.sentence, "pairs_left_out": max(0, len(apart) - _PAIRS)}

    def fate(self, model: str) -> dict[str, Any]:
        """Say what the model's own runtime runs in place of each of its loops and branches."""
        named = self._runs.named(model)
        found = fates(named.model, seconds=self._runs.seconds, document=named.document)
        return {**asdict(found), "regions": [asdict(one) for one in found.regions[:_NODES]]}

    def page(
        self,
        model: str,
        inputs: str = "",
        values: dict[str, Any] | None = None,
        note: str = "",
        at: str = "",
    ) -> dict[str, Any]:
        """Write a run as one HTML file for people, which opens offline and steps, plays and folds;
        say where it is. ``note`` stands on it; ``at`` is the moment that it opens at: a step, or an
        address such as ``main/loop[2]/body/Add`` (a saved run: its own).
        """
        assert self._pages is not None
        debugger = self._runs.run(model, inputs, values)
        step = self._runs.saved_step
        debugger.seek(int(at) if at.isdecimal() and len(at) < 16 else at or step)
        told = self._pages.write(debugger, Path(model).stem, note, with_values=True)
        debugger.seek(debugger.steps)
        return told


def _of_saved(saved: SavedRun) -> dict[str, Any]:
    said = saved.description
    return {
        "state": said.state,
        "step": said.step,
        "steps": said.steps,
        "made_by": said.made_by,
        "weights_kept": said.weights_kept,
        "set_by_hand": list(said.changes[:_REGIONS]),
        "breakpoints": [one.pattern for one in said.breakpoints[:_REGIONS]],
        "watches": list(said.watches[:_REGIONS]),
    }


def _in_short(cell: Any) -> Any:
    """A value of a matrix without the elements that stand beside its summary."""
    return (
        {name: one for name, one in cell.items() if name not in ("first", "last")}
        if isinstance(cell, dict)
        else cell
    )


def _first(
    places: tuple[tuple[str, ...], tuple[str, ...]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return places[0][:_PAIRS], places[1][:_PAIRS]


def _declared(element_type: object, shape: object) -> dict[str, Any]:
    return {
        "type": "any"
        if element_type is None
        else str(getattr(element_type, "value", element_type)),
        "shape": str(shape),
    }


def _operations(place: PlacedGraph, first: int) -> Iterator[str]:
    """A line for each operation: its address, its type, what feeds it, and what it gives."""
    graph: ModelGraph = place.graph
    for node in graph.nodes[first : first + _NODES]:
        fed = ["nothing" if one is None else _named(place, one) for one in graph.sources[node.id]]
        bodies = f" with {', '.join(body.name for body in node.bodies)}" if node.bodies else ""
        gives = ", ".join(map(_port, node.outputs))
        yield f"{place.address}/{place.labels[node.id]} = {node.type}({', '.join(fed)}){bodies}{f' -> {gives}' if gives else ''}"


def _named(place: PlacedGraph, source: OutputRef) -> str:
    return place.labels[source.layer] + (f":{source.output}" if source.output else "")


def _port(port: Port) -> str:
    told = _declared(port.element_type, port.shape)
    return f"{told['type']} {told['shape']}"


def _not_finite(found: NotFinite) -> dict[str, Any]:
    place = {"address": found.address or None, "step": found.step, "source": found.source or None}
    return {**place, "certain": found.is_certain, "sentence": found.sentence}
