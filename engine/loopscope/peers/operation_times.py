"""Times of one run by operation and loop, and their reading from ONNX Runtime's profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from loopscope.debug.debugger import Debugger
from loopscope.debug.inputs import Inputs
from loopscope.executor.machine.limits import Limits
from loopscope.ir.address import PlacedGraph, graphs
from loopscope.ir.model import Model
from loopscope.ir.readable import readable, significant
from loopscope.peers.onnx_model import save

HOLDERS = frozenset({"Loop", "If", "Scan", "TensorIterator"})
"""Operations whose time includes their bodies."""
_LEVELS = 2
"""Number of address segments from a loop to an operation in its body."""
MOST_TIMES = 10_000
"""Maximum number of individual times stored per operation."""


@dataclass(slots=True)
class Clocked:
    """Times of one executed operation."""

    address: str
    """Static address; empty for an operation that the runtime created by fusion."""
    operation: str
    name: str
    runs: int = 0
    microseconds: float = 0.0
    """Total of all runs, including the bodies of a loop or branch."""
    times: list[float] = field(default_factory=list[float])
    """Microseconds of the first ``MOST_TIMES`` runs in order."""

    def add(self, lasted: float) -> None:
        self.runs += 1
        self.microseconds += lasted
        if len(self.times) < MOST_TIMES:
            self.times.append(lasted)


@dataclass(frozen=True, slots=True)
class Iterations:
    """Iteration counts of a loop in the runtime, by execution, and the microseconds of each
    iteration.
    """

    address: str
    there: tuple[int, ...]
    here: tuple[int, ...]
    """Iteration counts of our run; empty if they are equal."""
    times: tuple[float, ...]
    """Microseconds of the first ``MOST_TIMES`` iterations over all executions."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Clock:
    """Times of one run."""

    runtime: str
    """Name and version."""
    microseconds: float
    operations: tuple[Clocked, ...]
    """Operations in descending order of cost."""
    loops: tuple[Iterations, ...] = ()
    """Loops; empty for a runtime that does not report bodies."""
    note: str = ""

    @property
    def shares(self) -> Mapping[str, float]:
        """Microseconds of each operation by static address; loops and branches only if their inner
        times are unknown.
        """
        plain = {
            operation.address: operation.microseconds
            for operation in self.operations
            if operation.address and operation.operation not in HOLDERS
        }
        regions = {
            operation.address: operation.microseconds
            for operation in self.operations
            if operation.address and operation.operation in HOLDERS
        }
        return plain | {
            address: lasted
            for address, lasted in regions.items()
            if not any(inner.startswith(f"{address}/") for inner in plain)
        }

    def _own(self, row: Clocked) -> float:
        """Return the microseconds of an operation without those of the operations directly inside
        it.
        """
        if row.operation not in HOLDERS or not row.address:
            return row.microseconds
        depth = row.address.count("/") + _LEVELS
        inside = (
            operation
            for operation in self.operations
            if operation.address.startswith(f"{row.address}/")
            and operation.address.count("/") == depth
        )
        return max(row.microseconds - sum(operation.microseconds for operation in inside), 0.0)

    @property
    def sentence(self) -> str:
        """Sentence about the operation and the iteration that take most time, excluding time inside
        bodies.
        """
        first = max(self.operations, key=self._own, default=None)
        if first is None:
            return f"{self.runtime} reported no operation."
        own = self._own(first)
        part = f", {own / self.microseconds:.0%} of the run" if self.microseconds else ""
        times = f"in {first.runs:,} runs" if first.runs != 1 else "in one run"
        beside = "" if own == first.microseconds else " beside what is inside"
        text = (
            f"In {self.runtime} the costliest operation is {first.name!r} ({first.operation}): "
            f"{time_words(own)} {times}{part}{beside}."
        )
        iterations = [
            (lasted, number, loop)
            for loop in self.loops
            for number, lasted in enumerate(loop.times)
        ]
        if iterations:
            lasted, number, loop = max(iterations, key=lambda entry: entry[0])
            text += (
                f" The costliest iteration is number {number:,} of {readable(loop.address)}: "
                f"{time_words(lasted)}."
            )
        differing = [loop for loop in self.loops if loop.here]
        if differing:
            text += (
                f" {readable(differing[0].address)} ran {_counts(differing[0].there)} there, "
                f"{_counts(differing[0].here)} here."
            )
        return text


def by_cost(rows: Iterable[Clocked]) -> tuple[Clocked, ...]:
    return tuple(sorted(rows, key=lambda row: -row.microseconds))


def time_words(microseconds: float) -> str:
    """Return a duration as text with a readable unit.

    >>> time_words(3.25), time_words(4120.0), time_words(2.5e6)
    ('3.2 µs', '4.12 ms', '2.5 s')
    """
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= factor:
            return f"{significant(microseconds / factor, 3)} {unit}"
    return f"{microseconds:.1f} µs"


def _counts(counts: Sequence[int]) -> str:
    return (
        f"{sum(counts):,} iterations"
        if len(counts) == 1
        else f"{sum(counts):,} iterations in {len(counts):,} executions"
    )


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
