"""An IR model that gives the values inside it as outputs: those of a loop's body as the
concatenation of all iterations.
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
from loopscope.peers.probes import Probe, enough, owner, times, varies


def probed(run: Run, probes: Sequence[Probe], prefix: str) -> tuple[Model, list[Probe]]:
    """The model of a run with a Result for each probe, named ``prefix`` and its number, and what
    these take; and the probes in that order.

    A probe under n loops gives an array with n axes more, one for the iterations of each, outermost
    first.
    """
    graphs: dict[int, _Graph] = {}
    for program in reversed(run.plan.programs):
        made = _Graph(_graph_of(run.model, program))
        asked = [
            _Asked(probe, made.source(probe), probe.expected.shape[1:])
            for probe in probes
            if probe.program is program
        ]
        for instruction in program.instructions:
            region = instruction.region
            bodies = (
                [graphs.get(one.index) for one in region.programs] if region is not None else []
            )
            if isinstance(region, LoopRegion) and bodies[0] is not None:
                given = _out_of_loop(made, instruction.node.id, bodies[0], times(run, region))
                asked += map(made.padded, given) if varies(run, region) else given
                made.limit(instruction.node.id, enough(run, region.program))
            elif isinstance(region, IfRegion) and bodies != [None, None]:
                asked += _out_of_branches(made, instruction.node.id, bodies)
        if asked or program.parent is None:
            made.hand_out(
                asked,
                prefix if program.parent is None else "",
                iterated=isinstance(owner(program), LoopRegion),
            )
            graphs[program.index] = made
    main = graphs[0]
    return replace(run.model, graph=_needed(main.graph(), main.results)), [
        one.probe for one in main.asked
    ]


def _needed(graph: ModelGraph, results: Sequence[LayerId]) -> ModelGraph:
    """What these Results take, with all Parameters, which inputs are given by number, and what
    keeps variables.
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
    found = {node.id for node in graph.nodes if node.type == "Parameter"}
    while waiting:
        layer = waiting.pop()
        if layer not in found:
            found.add(layer)
            waiting += sources.get(layer, ())
    edges = tuple(edge for edge in graph.edges if edge.to_layer in found)
    return replace(
        graph, nodes=tuple(node for node in graph.nodes if node.id in found), edges=edges
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
class _Asked:
    """A value that a graph is to hand out."""

    probe: Probe
    source: OutputRef
    shape: tuple[int, ...]


@dataclass(eq=False)
class _Graph:
    """A graph that grows."""

    original: ModelGraph
    asked: list[_Asked] = field(default_factory=list[_Asked])
    results: list[LayerId] = field(default_factory=list[LayerId])
    """The new Result of each value that is asked for."""

    def __post_init__(self) -> None:
        self.nodes, self.edges = dict(self.original.by_id), list(self.original.edges)
        self._next = max(self.nodes, default=-1) + 1
        self._constants: dict[tuple[str, tuple[int, ...], bytes], OutputRef] = {}

    def graph(self) -> ModelGraph:
        """The new Results come first: the runtime goes through the graph as its Results are listed,
        and keeps a value until all that read it have run, so that each fingerprint is made right
        after its value.
        """
        first = [self.nodes[result] for result in self.results]
        rest = [node for layer, node in self.nodes.items() if layer not in set(self.results)]
        return replace(self.original, nodes=(*first, *rest), edges=tuple(self.edges))

    def constant(self, array: np.ndarray) -> OutputRef:
        """A Const of the graph; arrays that are alike are one, because each node costs the
        runtime time and memory.
        """
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = OutputRef(
                self.add("Const", (), 1, constant=Constant.of(array)), 0
            )
        return self._constants[key]

    def source(self, probe: Probe) -> OutputRef:
        """Return the source that is asked for: the value itself, or its fingerprint.

        An Assign is a sink in OpenVINO and has no output, so that its input is asked for.
        """
        value = OutputRef(probe.layer, probe.output)
        if self.nodes[probe.layer].type == "Assign":
            feeding = self.original.sources[probe.layer][0]
            assert feeding is not None
            value = feeding
        return value if probe.fingerprint is None else self._fingerprint(value, probe.fingerprint)

    def _fingerprint(self, value: OutputRef, of: Fingerprint) -> OutputRef:
        """As ``Fingerprint.of`` computes it, in few operations."""
        buckets = self._shaped(
            self._made("Convert", (value,), destination_type="f32"), 1, *of.shape
        )
        axes = self.constant(np.arange(1, 3, dtype=np.int64))
        largest = self._made("ReduceMax", (self._made("Abs", (buckets,)), axes), keep_dims="false")
        length = OutputRef(
            self.add(
                "ReduceL2", (buckets, axes), 1, attributes={"keep_dims": "false"}, version="opset4"
            ),
            0,
        )
        products = self._made("MatMul", (buckets, self.constant(of.signs)))
        return self._made("Concat", (largest, length, self._shaped(products, -1)), axis="0")

    def _shaped(self, value: OutputRef, *shape: int) -> OutputRef:
        return self._made(
            "Reshape", (value, self.constant(np.array(shape, np.int64))), special_zero="false"
        )

    def _made(self, type: str, sources: Sequence[OutputRef], **attributes: str) -> OutputRef:
        return OutputRef(self.add(type, sources, 1, attributes=attributes), 0)

    def hand_out(self, asked: Sequence[_Asked], prefix: str, *, iterated: bool) -> None:
        """Makes Results of values, in a loop's body with an axis more."""
        axis = self.constant(np.zeros(1, np.int64)) if iterated else None
        for number, one in enumerate(asked):
            source = (
                one.source
                if axis is None
                else OutputRef(self.add("Unsqueeze", (one.source, axis), 1), 0)
            )
            self.results.append(
                self.add("Result", (source,), 0, name=prefix and f"{prefix}{number}")
            )
        self.asked += asked

    def limit(self, loop: LayerId, trips: int | None) -> None:
        """Gives a loop another trip count, if there is one."""
        if trips is not None:
            port, source = self.nodes[loop].inputs[0].id, self.constant(np.full(1, trips, np.int64))
            self.edges = [
                edge for edge in self.edges if (edge.to_layer, edge.to_port) != (loop, port)
            ]
            self.edges.append(
                Edge(source.layer, self.nodes[source.layer].outputs[0].id, loop, port)
            )

    def padded(self, asked: _Asked) -> _Asked:
        """Return the parts of a value, then zeros, of as many as there are at most."""
        shape, source = asked.shape, asked.source
        if 0 not in shape:  # of a loop without iterations the runtime does not know the shape
            source = self._shaped(source, -1, *shape[1:])
        longer = self._made(
            "Concat", (source, self.constant(np.zeros(shape, asked.probe.expected.dtype))), axis="0"
        )
        bounds = [self.constant(np.array([number], np.int64)) for number in (0, shape[0], 1, 0)]
        return _Asked(
            asked.probe,
            OutputRef(self.add("Slice", (longer, *bounds), 1, version="opset8"), 0),
            shape,
        )

    def zeros(self, asked: _Asked) -> LayerId:
        """A Result of zeros like a value."""
        return self.add(
            "Result", (self.constant(np.zeros(asked.shape, asked.probe.expected.dtype)),), 0
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
        """A node after the others, by the defaults of its type."""
        layer = LayerId(self._next)
        self._next += 1
        inputs = tuple(Port(number) for number in range(len(sources)))
        given = tuple(Port(len(sources) + number) for number in range(outputs))
        told: dict[str, object] = dict(attributes or {})
        if constant is not None:
            shape = ",".join(map(str, constant.shape))
            told = {
                "element_type": constant.element_type.value,
                "shape": shape,
                "offset": "0",
                "size": str(len(constant.data)),
            }
            given = (Port(0, constant.element_type, PartialShape.of(constant.shape)),)
        self.nodes[layer] = Node(
            layer,
            name or f"probe_{type}_{layer}",
            type,
            version,
            told,
            inputs,
            given,
            constant=constant,
        )
        for number, source in enumerate(sources):
            self.edges.append(
                Edge(
                    source.layer, self.nodes[source.layer].outputs[source.output].id, layer, number
                )
            )
        return layer


def _out_of_loop(made: _Graph, loop: LayerId, body: _Graph, count: int) -> list[_Asked]:
    """Gives a loop an output more for each new Result of its body: all iterations, concatenated."""
    ports = _more_ports(made.nodes[loop], len(body.results))
    entries = tuple(
        OutputMap(port.id, result, axis=0) for port, result in zip(ports, body.results, strict=True)
    )
    return _grown(
        made,
        loop,
        ports,
        [(body, entries)],
        [(one.probe, (count, *one.shape)) for one in body.asked],
    )


def _out_of_branches(
    made: _Graph, node: LayerId, branches: Sequence[_Graph | None]
) -> list[_Asked]:
    """Gives an If an output more for each new Result of its branches; the other branch gives
    zeros for it.
    """
    bodies = made.nodes[node].bodies
    then, otherwise = branches
    pair = [
        then or _Graph(made.nodes[node].body("then").graph),
        otherwise or _Graph(made.nodes[node].body("else").graph),
    ]
    values = [(number, one) for number, branch in enumerate(pair) for one in branch.asked]
    ports = _more_ports(made.nodes[node], len(values))
    grown: list[tuple[_Graph, tuple[OutputMap, ...]]] = []
    for number, branch in enumerate(pair):
        mine = iter(tuple(branch.results))
        results = [next(mine) if of == number else branch.zeros(one) for of, one in values]
        grown.append(
            (
                branch,
                tuple(
                    OutputMap(port.id, result) for port, result in zip(ports, results, strict=True)
                ),
            )
        )
    if bodies[0].name != "then":
        grown.reverse()
    return _grown(made, node, ports, grown, [(one.probe, one.shape) for _, one in values])


def _more_ports(node: Node, count: int) -> tuple[Port, ...]:
    ids = [port.id for port in (*node.inputs, *node.outputs)]
    for body in node.bodies:
        ids += [
            *(entry.external for entry in body.inputs),
            *(entry.external for entry in body.outputs),
        ]
    return tuple(Port(max(ids, default=-1) + 1 + number) for number in range(count))


def _grown(
    made: _Graph,
    layer: LayerId,
    ports: tuple[Port, ...],
    bodies: Sequence[tuple[_Graph, tuple[OutputMap, ...]]],
    given: Sequence[tuple[Probe, tuple[int, ...]]],
) -> list[_Asked]:
    """Puts bodies that have grown, and outputs more, into a node."""
    node = made.nodes[layer]
    changed = tuple(
        replace(old, graph=new.graph(), outputs=(*old.outputs, *entries))
        for old, (new, entries) in zip(node.bodies, bodies, strict=True)
    )
    made.nodes[layer] = replace(node, outputs=(*node.outputs, *ports), bodies=changed)
    first = len(node.outputs)
    return [
        _Asked(probe, OutputRef(layer, first + number), shape)
        for number, (probe, shape) in enumerate(given)
    ]
