"""ONNX Runtime's own profile, as operations of the model and iterations of its loops."""

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

_ATTRIBUTES = {"body": "body", "then_branch": "then", "else_branch": "else"}


def named(model: Model, file: Path, target: Path) -> Mapping[str, tuple[str, str]]:
    """Writes the model with a name of its own for each node; gives the address and the name in
    the file of each.
    """
    proto = onnx.load(str(file), load_external_data=False)
    places = {place.address: place for place in graphs(model)}
    names: dict[str, tuple[str, str]] = {}
    waiting = [(proto.graph, "main")]
    while waiting:
        graph, address = waiting.pop()
        labels = _labels(places.get(address))
        for node in graph.node:
            label = next((labels[output] for output in node.output if output in labels), "")
            where = f"{address}/{label}" if label else ""
            key = f"ls{len(names)}"
            names[key] = where, node.name or label or node.op_type
            node.name = key
            waiting += [
                (one.g, f"{where}/{_ATTRIBUTES[one.name]}")
                for one in node.attribute
                if one.HasField("g") and one.name in _ATTRIBUTES
            ]
    target.write_bytes(proto.SerializeToString())
    for entry in (
        file.parent.iterdir() if any(one.external_data for one in proto.graph.initializer) else ()
    ):
        if entry.is_file() and not (target.parent / entry.name).exists():
            (target.parent / entry.name).symlink_to(entry)
    return names


def _labels(place: PlacedGraph | None) -> Mapping[str, str]:
    """The label of the node that gives each value of a graph."""
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
    """What ended: an operation, or a graph that was run."""

    name: str
    kind: str
    began: float
    lasted: float
    is_node: bool
    inside: list[_Event] = field(default_factory=list["_Event"])


def _tree(events: Sequence[Mapping[str, Any]]) -> list[_Event]:
    """Events, which come in the order in which they ended, as what they were inside of."""
    open_ones: list[_Event] = []
    for one in events:
        event = _Event(
            str(one["name"]),
            str(one["kind"]),
            float(one["began"]),
            float(one["lasted"]),
            bool(one["is_node"]),
        )
        holds = event.kind in HOLDERS or not event.is_node
        while (
            holds
            and open_ones
            and open_ones[-1].began >= event.began
            and open_ones[-1].is_node != event.is_node
        ):
            event.inside.append(open_ones.pop())
        event.inside.reverse()
        open_ones.append(event)
    return open_ones


def clock(
    model: Model,
    inputs: Inputs,
    runtime: str,
    events: Sequence[Mapping[str, Any]],
    names: Mapping[str, tuple[str, str]],
    seconds: float,
) -> Clock:
    """What the events of one run say; ``seconds`` bounds our run beside it, whose counts are
    compared.
    """
    rows: dict[str, Clocked] = {}
    loops: dict[str, list[list[float]]] = {}
    whole = next(
        (float(one["lasted"]) for one in reversed(events) if one["name"] == "model_run"), 0.0
    )
    waiting = _tree([one for one in events if one["name"] != "model_run"])
    while waiting:
        event = waiting.pop()
        waiting += event.inside
        if not event.is_node:
            continue
        address, name = names.get(event.name, ("", event.name))
        rows.setdefault(event.name, Clocked(address, event.kind, name)).add(event.lasted)
        if event.kind in ("Loop", "Scan") and address:
            loops.setdefault(address, []).append([one.lasted for one in event.inside])
    for row in rows.values():
        row.times.reverse()  # the tree was walked from its end
    here = _counted(model, inputs, seconds)
    told = tuple(
        _iterations(address, executions[::-1], here.get(address, ()))
        for address, executions in loops.items()
    )
    return Clock(runtime, whole, by_cost(rows.values()), told)


def _iterations(
    address: str, executions: Sequence[Sequence[float]], here: tuple[int, ...]
) -> Iterations:
    there = tuple(map(len, executions))
    times = tuple(lasted for execution in executions for lasted in execution)
    return Iterations(address, there, here if here != there else (), times[:MOST_TIMES])


def _counted(model: Model, inputs: Inputs, seconds: float) -> Mapping[str, tuple[int, ...]]:
    """How often each loop runs here, by static address."""
    debugger = Debugger(model, inputs, limits=Limits(seconds=seconds))
    debugger.run()
    found: dict[str, list[int]] = defaultdict(list)
    for record in debugger.control_flow:
        if record.iterations is not None:
            found[_static(record.address)].append(record.iterations)
    return {address: tuple(counts) for address, counts in found.items()}


def _static(address: str) -> str:
    return "/".join(part.partition("[")[0] for part in address.split("/"))
