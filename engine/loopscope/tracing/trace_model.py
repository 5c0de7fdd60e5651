"""Conversion of a trace to a Model whose operations return the recorded values.

A loop of the trace is a Loop whose trip count and condition were recorded, and a decision is an If
with a branch for true and a branch for false. Such a model runs like any other, so that everything
that shows a run shows a trace.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    IF,
    LOOP,
    BackEdge,
    Body,
    BodyName,
    Edge,
    InputMap,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputMap,
    Port,
)
from loopscope.ir.recorded_rows import (
    ENDINGS,
    MOST_SAMPLES,
    RECORDED,
    RECORDED_OPSET,
    VALUES,
    ValuesByRow,
)
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.tracing.read_trace import read_trace_bytes, read_trace_file
from loopscope.tracing.recorded_loops import Execution, RecordedColumn, RecordedLoop

_SCALAR = PartialShape.of(())
_I64, _BOOLEAN = Port(0, ElementType.I64, _SCALAR), Port(0, ElementType.BOOLEAN, _SCALAR)


def read_trace(source: str | os.PathLike[str] | bytes) -> Model:
    """Return the model of a trace file, or of its content; ``ReadError`` if it is not a trace."""
    if isinstance(source, bytes):
        return trace_model(read_trace_bytes(source))
    path = Path(source)
    return trace_model(read_trace_file(path), path.stem, str(path))


def trace_model(main: RecordedLoop, name: str = "trace", file: str = "") -> Model:
    """Return a model without inputs that returns the values of a trace."""
    graphs: dict[RecordedLoop, _Draft] = {}
    for loop in reversed(_places(main)):
        graphs[loop] = _draft(loop, graphs)
    return Model(
        graphs[main].graph(),
        name,
        file=file,
        meta_data={RECORDED_OPSET: True},
        notes=tuple(_notes(main)),
    )


def _places(main: RecordedLoop) -> list[RecordedLoop]:
    """Return all places, outer before inner."""
    places = [main]
    for place in places:
        places += place.loops.values()
    return places


def _notes(main: RecordedLoop) -> Iterable[str]:
    for place in _places(main):
        for column in place.columns.values():
            if column.fingerprints:
                yield (
                    f"{len(column.fingerprints):,} values of `{column.label}` in `{place.label}` "
                    f"are beyond the budget of the trace: {MOST_SAMPLES} sampled elements and "
                    "their norm represent each of them."
                )


@dataclass(slots=True, eq=False)
class _Draft:
    """A graph under construction."""

    loop: RecordedLoop
    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[Edge] = field(default_factory=list[Edge])
    iterations: list[LayerId] = field(default_factory=list[LayerId])
    """Parameters with the iteration numbers of the enclosing loops, outermost first."""
    produced: dict[str, LayerId] = field(default_factory=dict[str, LayerId])
    """Nodes of the recorded values, by label."""

    def add(
        self,
        type: str,
        name: str,
        inputs: Iterable[tuple[LayerId, int]] = (),
        outputs: Iterable[Port] = (),
        **fields: Any,
    ) -> LayerId:
        """Add a node whose inputs are (layer, output number) and return its id."""
        layer, sources, ports = LayerId(len(self.nodes)), [*inputs], [*outputs]
        for number, (source, output) in enumerate(sources):
            port = len(self.nodes[source].inputs) + output
            self.edges.append(Edge(source, port, layer, number))
        self.nodes.append(
            Node(
                layer,
                name,
                type,
                inputs=tuple(Port(number) for number in range(len(sources))),
                outputs=tuple(
                    Port(
                        len(sources) + number,
                        port.element_type,
                        port.shape,
                        port.names or (name,),
                        form=port.form,
                    )
                    for number, port in enumerate(ports)
                ),
                **{"opset": "opset5", **fields},
            )
        )
        return layer

    def recorded(self, name: str, rows: ValuesByRow, port: Port) -> LayerId:
        """Add a node that returns recorded values."""
        return self.add(
            RECORDED,
            name,
            [(layer, 0) for layer in self.iterations],
            [port],
            opset=RECORDED_OPSET,
            attributes={VALUES: rows},
        )

    def graph(self) -> ModelGraph:
        return ModelGraph(tuple(self.nodes), tuple(self.edges), self.loop.label)


def _draft(loop: RecordedLoop, inner: dict[RecordedLoop, _Draft]) -> _Draft:
    draft = _Draft(loop)
    for ancestor in _ancestors(loop):
        name = "iteration" if ancestor is loop else f"{ancestor.label}_iteration"
        draft.iterations.append(draft.add("Parameter", name, outputs=[_I64]))
    starts = loop.starts()
    for item in loop.order:
        if isinstance(item, RecordedLoop):
            _add_loop(draft, item, inner[item])
        elif item.is_branch:
            _add_branch(draft, item, starts)
        else:
            _add_values(draft, item, starts)
    if loop.outer is None:
        for label, layer in [*draft.produced.items()]:
            draft.add("Result", f"{label}_result", [(layer, 0)])
    return draft


def _ancestors(loop: RecordedLoop) -> list[RecordedLoop]:
    """Return the loops around a place and itself, outermost first, without the outermost place."""
    ancestors = []
    place: RecordedLoop | None = loop
    while place is not None and place.outer is not None:
        ancestors.append(place)
        place = place.outer
    return ancestors[::-1]


def _add_values(draft: _Draft, column: RecordedColumn, starts: tuple[np.ndarray, ...]) -> None:
    element_type, shape = column.type_and_shape()
    count = draft.loop.rows
    complete = len(column.rows) == count
    rows = ValuesByRow(column.by_row(count), starts, column.fingerprints)
    port = Port(0, element_type, shape, form="tensor" if complete else "optional")
    draft.produced[column.label] = draft.recorded(column.label, rows, port)


def _add_branch(draft: _Draft, column: RecordedColumn, starts: tuple[np.ndarray, ...]) -> None:
    """Add an If whose condition is the recorded decision.

    A decision that was not reached in an iteration counts as false there.
    """
    decisions = np.zeros(draft.loop.rows, np.bool_)
    decisions[column.rows] = column.values
    condition = draft.recorded(
        f"{column.label}_value", ValuesByRow(decisions, starts, is_control=True), _BOOLEAN
    )
    bodies = (_constant_body("then", value=True), _constant_body("else", value=False))
    draft.add(IF, column.label, [(condition, 0)], opset="opset8", bodies=bodies)


def _constant_body(name: BodyName, *, value: bool) -> Body:
    """Return a branch without effect; a graph must have a Result."""
    draft = _Draft(RecordedLoop(name))
    constant = draft.add(
        "Const",
        "true" if value else "false",
        outputs=[_BOOLEAN],
        opset="opset1",
        constant=Constant.of(np.array(value)),
    )
    draft.add("Result", "result", [(constant, 0)])
    return Body(name, draft.graph())


@dataclass(slots=True, eq=False)
class _LoopPorts:
    """Inputs, outputs and port maps of a Loop under construction."""

    inputs: list[tuple[LayerId, int]]
    maps: list[InputMap] = field(default_factory=list[InputMap])
    back_edges: list[BackEdge] = field(default_factory=list[BackEdge])
    results: list[LayerId] = field(default_factory=list[LayerId])
    outputs: list[Port] = field(default_factory=list[Port])

    def bind(self, parameter: LayerId, source: LayerId) -> None:
        self.maps.append(InputMap(len(self.inputs), parameter))
        self.inputs.append((source, 0))

    def body(self, graph: ModelGraph, condition: LayerId) -> Body:
        maps = (
            OutputMap(-1, condition, purpose="execution_condition"),
            *(
                OutputMap(len(self.inputs) + number, result)
                for number, result in enumerate(self.results)
            ),
        )
        return Body("body", graph, tuple(self.maps), maps, tuple(self.back_edges))


def _add_loop(draft: _Draft, loop: RecordedLoop, body: _Draft) -> None:
    """Add a Loop with its recorded trip count and condition, and what it carries."""
    executions = loop.by_outer_row()
    trips = _trip_counts(executions)
    trip_count = draft.recorded(
        f"{loop.label}_trip_count",
        ValuesByRow(trips, draft.loop.starts(), is_control=True),
        _I64,
    )
    start = draft.add(
        "Const",
        f"{loop.label}_begins",
        outputs=[_BOOLEAN],
        opset="opset1",
        constant=Constant.of(np.array(True)),
    )
    ports = _LoopPorts([(trip_count, 0), (start, 0)])
    for layer, parameter in zip(draft.iterations, body.iterations, strict=False):
        ports.bind(parameter, layer)
    ports.maps.append(InputMap(-1, body.iterations[-1], purpose="current_iteration"))
    again = ValuesByRow(_conditions(loop.rows, executions, trips), loop.starts(), is_control=True)
    condition = body.add("Result", "again_result", [(body.recorded("again", again, _BOOLEAN), 0)])
    for label in [*body.produced]:
        _connect_value(draft, loop, body, ports, label)
    layer = draft.add(
        LOOP,
        loop.label,
        ports.inputs,
        ports.outputs,
        bodies=(ports.body(body.graph(), condition),),
        rt_info={ENDINGS: loop.endings()},
    )
    for number, port in enumerate(ports.outputs):
        draft.add("Result", port.names[0], [(layer, number)])


def _trip_counts(executions: Sequence[Execution]) -> np.ndarray:
    """Return the trip count of each execution, or its iteration count if none is known."""
    return np.array(
        [
            execution.count
            if execution.exhausted or not execution.count or execution.total is None
            else max(execution.total, execution.count)
            for execution in executions
        ],
        np.int64,
    )


def _conditions(rows: int, executions: Sequence[Execution], trips: np.ndarray) -> np.ndarray:
    """Return the condition after each iteration; False where it ended an execution."""
    again = np.ones(rows, np.bool_)
    for execution, trip_count in zip(executions, trips.tolist(), strict=True):
        if execution.count and (trip_count > execution.count or not execution.exhausted):
            again[execution.first_row + execution.count - 1] = False
    return again


def _connect_value(
    draft: _Draft, loop: RecordedLoop, body: _Draft, ports: _LoopPorts, label: str
) -> None:
    """Carry a recorded value of the body if it is carried; return it from an outermost loop."""
    layer = body.produced[label]
    port = body.nodes[layer].outputs[0]
    result = body.add("Result", f"{label}_next", [(layer, 0)])
    if label in loop.carried or label in draft.produced:
        initial = _initial(draft, loop, label, port)
        before = Port(0, port.element_type, form=port.form)
        parameter = body.add("Parameter", f"{label}_before", outputs=[before])
        ports.bind(parameter, initial)
        ports.back_edges.append(BackEdge(result, parameter))
    # The last iteration may lack a value that is not a tensor.
    if draft.loop.outer is None and port.form == "tensor":
        ports.results.append(result)
        name = f"{loop.label}.{label}"
        ports.outputs.append(Port(0, port.element_type, port.shape, (name,), form=port.form))


def _initial(draft: _Draft, loop: RecordedLoop, label: str, port: Port) -> LayerId:
    """Return the node with the initial value of a carried value, which may be unknown."""
    if label in draft.produced:
        return draft.produced[label]
    rows = ValuesByRow([None] * draft.loop.rows, draft.loop.starts(), is_control=True)
    unknown = Port(0, port.element_type, DYNAMIC, form="optional")
    return draft.recorded(f"{loop.label}_{label}_initial", rows, unknown)
