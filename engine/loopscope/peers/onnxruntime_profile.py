"""ONNX Runtime's profile, mapped to operations of the model and iterations of its loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from loopscope.debug.debugger import Debugger
from loopscope.debug.inputs import Inputs
from loopscope.executor.machine.limits import Limits
from loopscope.ir.model import Model
from loopscope.ir.walk import PlacedGraph, graphs
from loopscope.peers.clocked import HOLDERS, MOST_TIMES, Clock, Clocked, Iterations, by_cost
from loopscope.peers.onnx_model import save

_ATTRIBUTES = {"body": "body", "then_branch": "then", "else_branch": "else"}


def named(model: Model, file: Path, target: Path) -> Mapping[str, tuple[str, str]]:
    """Write the model with a unique name per node; return address and original name of each."""
    proto = onnx.load(str(file))
    places = {place.address: place for place in graphs(model)}
    names: dict[str, tuple[str, str]] = {}
    waiting = [(proto.graph, "main")]
    while waiting:
        graph, address = waiting.pop()
        labels = _labels(places.get(address))
        for node in graph.node:
            label = next((labels[output] for output in node.output if output in labels), "")
            node_address = f"{address}/{label}" if label else ""
            key = f"ls{len(names)}"
            names[key] = node_address, node.name or label or node.op_type
            node.name = key
            waiting += [
                (attribute.g, f"{node_address}/{_ATTRIBUTES[attribute.name]}")
                for attribute in node.attribute
                if attribute.HasField("g") and attribute.name in _ATTRIBUTES
            ]
    save(proto, target)  # with its weights: they must not lie in another folder than the file
    return names


def _labels(place: PlacedGraph | None) -> Mapping[str, str]:
    """Return the node label of each value of a graph."""
    if place is None:
        return {}
    return {
        name: place.labels[node.id]
        for node in place.graph.nodes
        if node.inputs or node.bodies
        for port in node.outputs
        for name in port.names
    }


@dataclass(slots=True)
class _Event:
    """A finished operation or graph execution."""

    name: str
    kind: str
    began: float
    lasted: float
    is_node: bool
    inside: list[_Event] = field(default_factory=list["_Event"])


def _tree(events: Sequence[Mapping[str, Any]]) -> list[_Event]:
    """Return events, which are in order of their ends, as a tree by containment."""
    roots: list[_Event] = []
    for entry in events:
        event = _Event(
            str(entry["name"]),
            str(entry["kind"]),
            float(entry["began"]),
            float(entry["lasted"]),
            bool(entry["is_node"]),
        )
        holds = event.kind in HOLDERS or not event.is_node
        while (
            holds
            and roots
            and roots[-1].began >= event.began
            and roots[-1].is_node != event.is_node
        ):
            event.inside.append(roots.pop())
        event.inside.reverse()
        roots.append(event)
    return roots


def clock(
    model: Model,
    inputs: Inputs,
    runtime: str,
    events: Sequence[Mapping[str, Any]],
    names: Mapping[str, tuple[str, str]],
    seconds: float,
) -> Clock:
    """Return the times of the events of one run.

    ``seconds`` limits our own run, whose iteration counts are compared.
    """
    rows: dict[str, Clocked] = {}
    loops: dict[str, list[list[float]]] = {}
    whole = next(
        (float(entry["lasted"]) for entry in reversed(events) if entry["name"] == "model_run"), 0.0
    )
    waiting = _tree([entry for entry in events if entry["name"] != "model_run"])
    while waiting:
        event = waiting.pop()
        waiting += event.inside
        if not event.is_node:
            continue
        address, name = names.get(event.name, ("", event.name))
        rows.setdefault(event.name, Clocked(address, event.kind, name)).add(event.lasted)
        if event.kind in ("Loop", "Scan") and address:
            loops.setdefault(address, []).append([inner.lasted for inner in event.inside])
    for row in rows.values():
        row.times.reverse()  # the tree was walked from its end
    own_counts = _own_iteration_counts(model, inputs, seconds)
    loop_times = tuple(
        _iterations(address, executions[::-1], own_counts.get(address, ()))
        for address, executions in loops.items()
    )
    return Clock(runtime, whole, by_cost(rows.values()), loop_times)


def _iterations(
    address: str, executions: Sequence[Sequence[float]], own_counts: tuple[int, ...]
) -> Iterations:
    peer_counts = tuple(map(len, executions))
    times = tuple(lasted for execution in executions for lasted in execution)
    return Iterations(
        address, peer_counts, own_counts if own_counts != peer_counts else (), times[:MOST_TIMES]
    )


def _own_iteration_counts(
    model: Model, inputs: Inputs, seconds: float
) -> Mapping[str, tuple[int, ...]]:
    """Return the iteration counts of each loop in our run, by static address."""
    debugger = Debugger(model, inputs, limits=Limits(seconds=seconds))
    debugger.run()
    counts_by_address: dict[str, list[int]] = defaultdict(list)
    for record in debugger.control_flow:
        if record.iterations is not None:
            counts_by_address[_static(record.address)].append(record.iterations)
    return {address: tuple(counts) for address, counts in counts_by_address.items()}


def _static(address: str) -> str:
    return "/".join(part.partition("[")[0] for part in address.split("/"))
