"""An IR model with its inner values as outputs: values of a loop's body are concatenated over all
iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.ir.constant import Constant
from loopscope.ir.model import (
    BodyName,
    Edge,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputMap,
    OutputRef,
    Port,
)
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.peers.fingerprint import Fingerprint
from loopscope.peers.probes import Probe, owner, sufficient_trip_count, times, varies


def probed(run: Run, probes: Sequence[Probe], prefix: str) -> tuple[Model, list[Probe]]:
    """Return the model of a run with a Result per probe, and the probes in the order of the
    Results.

    A Result is named ``prefix`` and its number. Nodes that no Result needs are removed. The array
    of a probe under n loops has n leading axes, outermost loop first.
    """
    graphs: dict[int, _GraphBuilder] = {}
    for program in reversed(run.plan.programs):
        builder = _GraphBuilder(_graph_of(run.model, program))
        requests = [
            _RequestedValue(probe, builder.source(probe), probe.expected.shape[1:])
            for probe in probes
            if probe.program is program
        ]
        for instruction in program.instructions:
            region = instruction.region
            bodies = (
                [graphs.get(body.index) for body in region.programs] if region is not None else []
            )
            if isinstance(region, LoopRegion) and bodies[0] is not None:
                loop_requests = _export_from_loop(
                    builder, instruction.node.id, bodies[0], times(run, region)
                )
                requests += (
                    map(builder.padded, loop_requests) if varies(run, region) else loop_requests
                )
                builder.limit(instruction.node.id, sufficient_trip_count(run, region.program))
            elif isinstance(region, IfRegion) and bodies != [None, None]:
                requests += _export_from_branches(builder, instruction.node.id, bodies)
        if requests or program.parent is None:
            builder.add_results(
                requests,
                prefix if program.parent is None else "",
                iterated=isinstance(owner(program), LoopRegion),
            )
            graphs[program.index] = builder
    main = graphs[0]
    return replace(run.model, graph=_reachable(main.graph(), main.results)), [
        request.probe for request in main.requests
    ]


def _reachable(graph: ModelGraph, results: Sequence[LayerId]) -> ModelGraph:
    """Return the graph reduced to the nodes that these Results need.

    All Parameters are kept, because inputs are numbered, and so are the nodes that store variables.
    """
    sources: dict[LayerId, list[LayerId]] = {}
    for edge in graph.edges:
        sources.setdefault(edge.to_layer, []).append(edge.from_layer)
    waiting = [
        *results,
        *(
            node.id
            for node in graph.nodes
            if node.type == "Assign" or (not node.outputs and node.type != "Result")
        ),
    ]
    needed = {node.id for node in graph.nodes if node.type == "Parameter"}
    while waiting:
        layer = waiting.pop()
        if layer not in needed:
            needed.add(layer)
            waiting += sources.get(layer, ())
    edges = tuple(edge for edge in graph.edges if edge.to_layer in needed)
    return replace(
        graph, nodes=tuple(node for node in graph.nodes if node.id in needed), edges=edges
    )


def _graph_of(model: Model, program: Program) -> ModelGraph:
    if program.parent is None:
        return model.graph
    return program.parent.instructions[program.owner].node.body(_body_name(program)).graph


def _body_name(program: Program) -> BodyName:
    region = owner(program)
    if isinstance(region, IfRegion):
        return "then" if program is region.then.program else "else"
    return "body"


@dataclass(frozen=True, slots=True)
class _RequestedValue:
    """A value that a graph must return."""

    probe: Probe
    source: OutputRef
    shape: tuple[int, ...]


@dataclass(eq=False)
class _GraphBuilder:
    """A graph under construction."""

    original: ModelGraph
    requests: list[_RequestedValue] = field(default_factory=list[_RequestedValue])
    results: list[LayerId] = field(default_factory=list[LayerId])
    """New Result of each requested value."""

    def __post_init__(self) -> None:
        self.nodes, self.edges = dict(self.original.by_id), list(self.original.edges)
        self._next = max(self.nodes, default=-1) + 1
        self._constants: dict[tuple[str, tuple[int, ...], bytes], OutputRef] = {}

    def graph(self) -> ModelGraph:
        """Return the graph with the new Results first.

        The runtime executes in the order of the Results and stores a value until all its readers
        ran. With this order, each fingerprint is computed right after its value.
        """
        first = [self.nodes[result] for result in self.results]
        rest = [node for layer, node in self.nodes.items() if layer not in set(self.results)]
        return replace(self.original, nodes=(*first, *rest), edges=tuple(self.edges))

    def constant(self, array: np.ndarray) -> OutputRef:
        """Return a Const of the graph; equal arrays share one, because each node costs time and
        memory.
        """
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = OutputRef(
                self.add("Const", (), 1, constant=Constant.of(array)), 0
            )
        return self._constants[key]

    def source(self, probe: Probe) -> OutputRef:
        """Return the output to request: the value itself, or its fingerprint.

        An Assign is a sink without output in OpenVINO, so its input is requested.
        """
        value = OutputRef(probe.layer, probe.output)
        if self.nodes[probe.layer].type == "Assign":
            feeding = self.original.sources[probe.layer][0]
            assert feeding is not None
            value = feeding
        return value if probe.fingerprint is None else self._fingerprint(value, probe.fingerprint)

    def _fingerprint(self, value: OutputRef, scheme: Fingerprint) -> OutputRef:
        """Add the few operations that compute ``Fingerprint.of``."""
        buckets = self._reshape(
            self._operation("Convert", (value,), destination_type="f32"), 1, *scheme.shape
        )
        axes = self.constant(np.arange(1, 3, dtype=np.int64))
        largest = self._operation(
            "ReduceMax", (self._operation("Abs", (buckets,)), axes), keep_dims="false"
        )
        length = OutputRef(
            self.add(
                "ReduceL2", (buckets, axes), 1, attributes={"keep_dims": "false"}, version="opset4"
            ),
            0,
        )
        products = self._operation("MatMul", (buckets, self.constant(scheme.signs)))
        return self._operation("Concat", (largest, length, self._reshape(products, -1)), axis="0")

    def _reshape(self, value: OutputRef, *shape: int) -> OutputRef:
        return self._operation(
            "Reshape", (value, self.constant(np.array(shape, np.int64))), special_zero="false"
        )

    def _operation(self, type: str, sources: Sequence[OutputRef], **attributes: str) -> OutputRef:
        return OutputRef(self.add(type, sources, 1, attributes=attributes), 0)

    def add_results(
        self, requests: Sequence[_RequestedValue], prefix: str, *, iterated: bool
    ) -> None:
        """Add Results for values; in a loop's body they have an additional leading axis."""
        axis = self.constant(np.zeros(1, np.int64)) if iterated else None
        for number, request in enumerate(requests):
            source = (
                request.source
                if axis is None
                else OutputRef(self.add("Unsqueeze", (request.source, axis), 1), 0)
            )
            self.results.append(
                self.add("Result", (source,), 0, name=prefix and f"{prefix}{number}")
            )
        self.requests += requests

    def limit(self, loop: LayerId, trips: int | None) -> None:
        """Set another trip count of a loop, if given."""
        if trips is not None:
            port, source = self.nodes[loop].inputs[0].id, self.constant(np.full(1, trips, np.int64))
            self.edges = [
                edge for edge in self.edges if (edge.to_layer, edge.to_port) != (loop, port)
            ]
            self.edges.append(
                Edge(source.layer, self.nodes[source.layer].outputs[0].id, loop, port)
            )

    def padded(self, request: _RequestedValue) -> _RequestedValue:
        """Return the parts of a value, padded with zeros to the maximum number."""
        shape, source = request.shape, request.source
        if 0 not in shape:  # the runtime does not know the shape for a loop without iterations
            source = self._reshape(source, -1, *shape[1:])
        longer = self._operation(
            "Concat",
            (source, self.constant(np.zeros(shape, request.probe.expected.dtype))),
            axis="0",
        )
        bounds = [self.constant(np.array([number], np.int64)) for number in (0, shape[0], 1, 0)]
        return _RequestedValue(
            request.probe,
            OutputRef(self.add("Slice", (longer, *bounds), 1, version="opset8"), 0),
            shape,
        )

    def zeros(self, request: _RequestedValue) -> LayerId:
        """Add a Result of zeros with the shape of a value."""
        return self.add(
            "Result", (self.constant(np.zeros(request.shape, request.probe.expected.dtype)),), 0
        )

    def add(
        self,
        type: str,
        sources: Sequence[OutputRef],
        outputs: int,
        *,
        name: str = "",
        constant: Constant | None = None,
        attributes: Mapping[str, str] | None = None,
        version: str = "opset1",
    ) -> LayerId:
        """Append a node with the defaults of its type."""
        layer = LayerId(self._next)
        self._next += 1
        inputs = tuple(Port(number) for number in range(len(sources)))
        output_ports = tuple(Port(len(sources) + number) for number in range(outputs))
        node_attributes: dict[str, object] = dict(attributes or {})
        if constant is not None:
            shape = ",".join(map(str, constant.shape))
            node_attributes = {
                "element_type": constant.element_type.value,
                "shape": shape,
                "offset": "0",
                "size": str(len(constant.data)),
            }
            output_ports = (Port(0, constant.element_type, PartialShape.of(constant.shape)),)
        self.nodes[layer] = Node(
            layer,
            name or f"probe_{type}_{layer}",
            type,
            version,
            node_attributes,
            inputs,
            output_ports,
            constant=constant,
        )
        for number, source in enumerate(sources):
            self.edges.append(
                Edge(
                    source.layer, self.nodes[source.layer].outputs[source.output].id, layer, number
                )
            )
        return layer


def _export_from_loop(
    builder: _GraphBuilder, loop: LayerId, body: _GraphBuilder, count: int
) -> list[_RequestedValue]:
    """Add an output to a loop for each new Result of its body: all iterations, concatenated."""
    ports = _new_ports(builder.nodes[loop], len(body.results))
    entries = tuple(
        OutputMap(port.id, result, axis=0) for port, result in zip(ports, body.results, strict=True)
    )
    return _extend_node(
        builder,
        loop,
        ports,
        [(body, entries)],
        [(request.probe, (count, *request.shape)) for request in body.requests],
    )


def _export_from_branches(
    builder: _GraphBuilder, node: LayerId, branches: Sequence[_GraphBuilder | None]
) -> list[_RequestedValue]:
    """Add an output to an If for each new Result of its branches; the other branch returns
    zeros.
    """
    bodies = builder.nodes[node].bodies
    then, otherwise = branches
    pair = [
        then or _GraphBuilder(builder.nodes[node].body("then").graph),
        otherwise or _GraphBuilder(builder.nodes[node].body("else").graph),
    ]
    values = [
        (number, request) for number, branch in enumerate(pair) for request in branch.requests
    ]
    ports = _new_ports(builder.nodes[node], len(values))
    extended: list[tuple[_GraphBuilder, tuple[OutputMap, ...]]] = []
    for number, branch in enumerate(pair):
        own_results = iter(tuple(branch.results))
        results = [
            next(own_results) if origin == number else branch.zeros(request)
            for origin, request in values
        ]
        extended.append(
            (
                branch,
                tuple(
                    OutputMap(port.id, result) for port, result in zip(ports, results, strict=True)
                ),
            )
        )
    if bodies[0].name != "then":
        extended.reverse()
    return _extend_node(
        builder, node, ports, extended, [(request.probe, request.shape) for _, request in values]
    )


def _new_ports(node: Node, count: int) -> tuple[Port, ...]:
    ids = [port.id for port in (*node.inputs, *node.outputs)]
    for body in node.bodies:
        ids += [
            *(entry.external for entry in body.inputs),
            *(entry.external for entry in body.outputs),
        ]
    return tuple(Port(max(ids, default=-1) + 1 + number) for number in range(count))


def _extend_node(
    builder: _GraphBuilder,
    layer: LayerId,
    ports: tuple[Port, ...],
    bodies: Sequence[tuple[_GraphBuilder, tuple[OutputMap, ...]]],
    requests: Sequence[tuple[Probe, tuple[int, ...]]],
) -> list[_RequestedValue]:
    """Replace a node's bodies by the extended bodies and append outputs."""
    node = builder.nodes[layer]
    changed = tuple(
        replace(old, graph=new.graph(), outputs=(*old.outputs, *entries))
        for old, (new, entries) in zip(node.bodies, bodies, strict=True)
    )
    builder.nodes[layer] = replace(node, outputs=(*node.outputs, *ports), bodies=changed)
    first = len(node.outputs)
    return [
        _RequestedValue(probe, OutputRef(layer, first + number), shape)
        for number, (probe, shape) in enumerate(requests)
    ]
