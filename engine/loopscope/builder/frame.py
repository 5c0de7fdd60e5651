"""A graph or body under construction: its nodes, its names, and the outer tensors that it
captures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from loopscope.builder.mistakes import Written, reject_lost_writes
from loopscope.builder.naming import Names, NameScope
from loopscope.builder.tensor import Tensor, TensorGraph
from loopscope.errors import BuildError
from loopscope.ir.constant import Constant
from loopscope.ir.model import NO_ATTRIBUTES, Body, Edge, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ops.declare import Known
from loopscope.ops.own_operations import OPSET


class GraphFrame:
    """The outermost graph (``parent`` is None) or a body. In a body, each captured outer tensor
    becomes a Parameter.
    """

    def __init__(self, graph: TensorGraph, parent: GraphFrame | None, title: str) -> None:
        self.graph = graph
        self.parent = parent
        self.title = title
        self.names = Names()
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.tensors: list[tuple[Tensor, ...]] = []
        """Handles of the outputs of each node."""
        self.calls: list[NameScope] = []
        """Function calls, and scopes that the user opened."""
        self.captures: dict[tuple[LayerId, int], tuple[Tensor, Tensor]] = {}
        """Pairs of a tensor of the parent and its Parameter in this body, in order of first use."""
        self._awaited: tuple[Tensor, ...] = ()
        self._waiting: set[LayerId] = set()
        """Nodes that run after all awaited tensors, directly or through other nodes."""
        self.writes: list[Written] = []
        """Writes to arrays, in call order."""
        self.replaced: set[LayerId] = set()
        """Placeholder Consts of arrays of unknown shape that an array of known shape replaced."""
        self.ahead = ""
        """Loop whose condition this frame is; such a condition is also evaluated before the first
        iteration.
        """

    def add(
        self,
        type: str,
        opset: str,
        attributes: Mapping[str, object],
        inputs: Sequence[Tensor],
        outputs: Sequence[Known],
        *,
        name: str = "",
        bodies: tuple[Body, ...] = (),
        constant: Constant | None = None,
        tensor_names: tuple[str, ...] = (),
        rt_info: Mapping[str, object] = NO_ATTRIBUTES,
    ) -> tuple[Tensor, ...]:
        """Add a node and return a handle for each of its outputs."""
        inputs = self._after_awaited(inputs)
        layer = LayerId(len(self.nodes))
        unique_name = self.names.unique(name or type)
        ports = tuple(
            Port(index, tensor.element_type, tensor.shape) for index, tensor in enumerate(inputs)
        )
        output_ports = tuple(
            Port(len(inputs) + index, known.element_type, known.shape, tensor_names)
            for index, known in enumerate(outputs)
        )
        self.nodes.append(
            Node(
                layer,
                unique_name,
                type,
                opset,
                attributes or NO_ATTRIBUTES,
                ports,
                output_ports,
                bodies,
                constant,
                rt_info,
            )
        )
        for index, tensor in enumerate(inputs):
            port = self.nodes[tensor.source.layer].outputs[tensor.source.output].id
            self.edges.append(Edge(tensor.source.layer, port, layer, index))
        return self._handles(layer, outputs)

    def adopt(
        self, node: Node, inputs: Sequence[Tensor], outputs: Sequence[Known]
    ) -> tuple[Tensor, ...]:
        """Add a node of another graph, with its bodies and ports, under a new id and name; return a
        handle for each output.
        """
        inputs = self._after_awaited(inputs)
        layer = LayerId(len(self.nodes))
        output_ports = tuple(
            Port(port.id, known.element_type, known.shape, (), port.rt_info)
            for port, known in zip(node.outputs, outputs, strict=True)
        )
        input_ports = tuple(replace(port, names=()) for port in node.inputs[: len(inputs)])
        self.nodes.append(
            replace(
                node,
                id=layer,
                name=self.names.unique(node.name),
                inputs=input_ports,
                outputs=output_ports,
                line=0,
            )
        )
        for port, tensor in zip(input_ports, inputs, strict=True):
            source = self.nodes[tensor.source.layer].outputs[tensor.source.output]
            self.edges.append(Edge(tensor.source.layer, source.id, layer, port.id))
        return self._handles(layer, outputs)

    def _handles(self, layer: LayerId, outputs: Sequence[Known]) -> tuple[Tensor, ...]:
        name = self.nodes[layer].name
        handles = tuple(
            Tensor(
                self,
                OutputRef(layer, output),
                name if len(outputs) == 1 else f"{name}:{output}",
                known,
            )
            for output, known in enumerate(outputs)
        )
        self.tensors.append(handles)
        if self._awaited and self.nodes[layer].inputs:
            self._waiting.add(layer)
        return handles

    def _after_awaited(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the inputs of a new node with the first one delayed until all awaited tensors are
        computed.
        """
        if (
            not inputs
            or not self._awaited
            or any(tensor.source.layer in self._waiting for tensor in inputs)
        ):
            return inputs
        awaited, self._awaited = self._awaited, ()
        delayed = self.add("After", OPSET, {}, (inputs[0], *awaited), (inputs[0].known,))[0]
        self._awaited = awaited
        self._waiting.add(delayed.source.layer)
        return (delayed, *inputs[1:])

    def after_awaited(self, tensor: Tensor) -> Tensor:
        """Return a tensor without inputs, delayed until all awaited tensors are computed."""
        return self._after_awaited((tensor,))[0]

    @contextmanager
    def waiting_for(self, tensors: Sequence[Tensor], *, reset: bool = False) -> Iterator[None]:
        """Delay operations that are built inside until these tensors are computed. With ``reset``,
        earlier awaited tensors are ignored.
        """
        previous = self._awaited, self._waiting
        self._awaited, self._waiting = (*(() if reset else self._awaited), *tensors), set()
        try:
            yield
        finally:
            self._awaited, self._waiting = previous

    def holds(self, tensor: Tensor) -> bool:
        """Return True if a tensor still belongs to this graph. Tensors of a failed call are
        removed.
        """
        return any(
            output is tensor
            for output in next(
                iter(self.tensors[tensor.source.layer : tensor.source.layer + 1]), ()
            )
        )

    def first_region(self, first: LayerId) -> Tensor | None:
        """Return the first output of the first node with bodies from the id ``first`` on, or
        None.
        """
        return next(
            (
                self.tensors[node.id][0]
                for node in self.nodes[first:]
                if node.bodies and self.tensors[node.id]
            ),
            None,
        )

    def from_port(self, layer: LayerId, port: int) -> Tensor:
        """Return the handle of a node's output port."""
        ports = [output_port.id for output_port in self.nodes[layer].outputs]
        return self.tensors[layer][ports.index(port)]

    def parameter(self, name: str, known: Known, tensor_names: tuple[str, ...] = ()) -> Tensor:
        """Add a Parameter with the given type and shape."""
        if known.element_type is None:
            raise BuildError(
                f"the element type of {name!r} is not known, but an input of {self.title} "
                "requires one: convert it first"
            )
        shape = str(known.shape).removeprefix("[").removesuffix("]")
        attributes = {"shape": shape, "element_type": str(known.element_type)}
        return self.add(
            "Parameter", "opset1", attributes, (), (known,), name=name, tensor_names=tensor_names
        )[0]

    def result(self, tensor: Tensor, name: str = "") -> LayerId:
        """Add a Result and return its id, for port maps and back edges."""
        self.add("Result", "opset1", {}, (tensor,), (), name=name)
        return LayerId(len(self.nodes) - 1)

    def capture(self, outer: Tensor) -> Tensor:
        """Return the Parameter for a tensor of the parent; repeated calls return the same one."""
        key = (outer.source.layer, outer.source.output)
        if key not in self.captures:
            name = outer.name.rpartition("/")[2].replace(":", "_")
            with self.names.unscoped():
                self.captures[key] = outer, self.parameter(name, outer.known)
        return self.captures[key][1]

    def bring(self, tensor: Tensor) -> Tensor:
        """Return a tensor as visible in this frame: itself, or captured through every body in
        between.

        ``BuildError`` if the tensor is not visible in this frame.
        """
        if tensor.frame is self:
            return tensor
        if tensor.graph is not self.graph:
            raise BuildError(
                f"{tensor!r} belongs to graph {tensor.graph.name!r}, not to {self.graph.name!r}"
            )
        between: list[GraphFrame] = []
        frame: GraphFrame | None = self
        while frame is not None and frame is not tensor.frame:
            between.append(frame)
            frame = frame.parent
        if frame is None:
            raise BuildError(
                f"{tensor!r} belongs to {tensor.frame.title} and cannot be used in {self.title}: "
                "return it from there"
            )
        for inner in reversed(between):
            tensor = inner.capture(tensor)
        return tensor

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Remove everything that is built inside if it fails, so that a failed call adds no
        nodes.
        """
        nodes, edges = len(self.nodes), len(self.edges)
        try:
            yield
        except BaseException:
            self.forget(nodes, edges)
            raise

    def forget(self, nodes: int, edges: int) -> None:
        """Remove all nodes and edges after the given numbers of them."""
        del self.nodes[nodes:], self.edges[edges:], self.tensors[nodes:]
        self.writes = [write for write in self.writes if write.layer < nodes]
        self._waiting = {layer for layer in self._waiting if layer < nodes}
        self.captures = {
            key: pair for key, pair in self.captures.items() if pair[1].source.layer < nodes
        }

    def kept(self, nodes: Sequence[Node], edges: Sequence[Edge]) -> Sequence[Node]:
        """Return the nodes without replaced Consts that nothing reads."""
        unread = (
            self.replaced - {edge.from_layer for edge in edges} if self.replaced else self.replaced
        )
        return [node for node in nodes if node.id not in unread] if unread else nodes

    def finished(self) -> ModelGraph:
        """Return the graph built so far, or raise ``BuildError`` if a write to an array would be
        lost.
        """
        reject_lost_writes(self.writes, self.edges, for_good=True)
        finished = ModelGraph(tuple(self.kept(self.nodes, self.edges)), tuple(self.edges))
        self.graph.calls[finished] = tuple(self.calls)
        return finished
