"""A graph or a body while it is being built: its nodes so far, its names, and what it takes from
the graphs around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopscope.builder.call_sites import Written, refuse_lost
from loopscope.builder.naming import Names
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.constant import Constant
from loopscope.ir.model import NO_ATTRIBUTES, Body, Edge, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ops.declare import Known
from loopscope.ops.effects import OPSET

if TYPE_CHECKING:
    from loopscope.builder.graph_builder import Graph as GraphUnderConstruction


@dataclass(frozen=True, slots=True)
class NameScope:
    """A name scope that is drawn as a frame."""

    name: str
    """Whole: ``decoder/attention_1``."""
    function: str = ""
    """Whose call it is; empty for a scope that the user has named."""


class GraphFrame:
    """The outermost graph (``parent`` is None) or one body; in a body each outer tensor that it
    uses becomes a Parameter.
    """

    def __init__(
        self, graph: GraphUnderConstruction, parent: GraphFrame | None, title: str
    ) -> None:
        self.graph = graph
        self.parent = parent
        self.title = title
        self.names = Names()
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.tensors: list[tuple[Tensor, ...]] = []
        """A handle for each output of each node."""
        self.calls: list[NameScope] = []
        """Function calls, and the scopes that the user has named."""
        self.captures: dict[tuple[LayerId, int], tuple[Tensor, Tensor]] = {}
        """Pairs of a tensor of the parent and the Parameter for it in this body, in the order of
        first use.
        """
        self._awaited: tuple[Tensor, ...] = ()
        self._waiting: set[LayerId] = set()
        """Nodes that run after all that is awaited, by way of others or of themselves."""
        self.writes: list[Written] = []
        """To arrays, in the order of the calls."""
        self.replaced: set[LayerId] = set()
        """Consts that stand for an array of unknown shape and that an array of known shape has
        replaced.
        """
        self.ahead = ""
        """The loop whose condition this is, which is tested before the first iteration too."""

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
        """A node, and a handle for each of its outputs."""
        inputs = self._after_awaited(inputs)
        layer = LayerId(len(self.nodes))
        unique = self.names.unique(name or type)
        ports = tuple(
            Port(index, tensor.element_type, tensor.shape) for index, tensor in enumerate(inputs)
        )
        made = tuple(
            Port(len(inputs) + index, known.element_type, known.shape, tensor_names)
            for index, known in enumerate(outputs)
        )
        self.nodes.append(
            Node(
                layer,
                unique,
                type,
                opset,
                attributes or NO_ATTRIBUTES,
                ports,
                made,
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
        """A node of another graph, with its bodies and ports, under a number and a name of this
        one; a handle for each output.
        """
        inputs = self._after_awaited(inputs)
        layer = LayerId(len(self.nodes))
        made = tuple(
            Port(port.id, known.element_type, known.shape, (), port.rt_info)
            for port, known in zip(node.outputs, outputs, strict=True)
        )
        taken = tuple(replace(port, names=()) for port in node.inputs[: len(inputs)])
        self.nodes.append(
            replace(
                node,
                id=layer,
                name=self.names.unique(node.name),
                inputs=taken,
                outputs=made,
                line=0,
            )
        )
        for port, tensor in zip(taken, inputs, strict=True):
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
        """The inputs of a new node, the first of them not before all that is awaited."""
        if (
            not inputs
            or not self._awaited
            or any(one.source.layer in self._waiting for one in inputs)
        ):
            return inputs
        awaited, self._awaited = self._awaited, ()
        first = self.add("After", OPSET, {}, (inputs[0], *awaited), (inputs[0].known,))[0]
        self._awaited = awaited
        self._waiting.add(first.source.layer)
        return (first, *inputs[1:])

    def after_awaited(self, tensor: Tensor) -> Tensor:
        """A tensor without inputs of its own, not before all that is awaited."""
        return self._after_awaited((tensor,))[0]

    @contextmanager
    def waiting_for(self, tensors: Sequence[Tensor], *, anew: bool = False) -> Iterator[None]:
        """What is built meanwhile runs after these tensors too; ``anew``: after these only."""
        kept = self._awaited, self._waiting
        self._awaited, self._waiting = (*(() if anew else self._awaited), *tensors), set()
        try:
            yield
        finally:
            self._awaited, self._waiting = kept

    def holds(self, tensor: Tensor) -> bool:
        """Whether a tensor is still one of this graph: what was built for a call that was
        refused has gone.
        """
        return any(
            one is tensor
            for one in next(iter(self.tensors[tensor.source.layer : tensor.source.layer + 1]), ())
        )

    def first_region(self, first: LayerId) -> Tensor | None:
        """The first output of the first node with bodies from a number on."""
        return next(
            (
                self.tensors[node.id][0]
                for node in self.nodes[first:]
                if node.bodies and self.tensors[node.id]
            ),
            None,
        )

    def from_port(self, layer: LayerId, port: int) -> Tensor:
        """The handle of what leaves a node by a port."""
        ports = [one.id for one in self.nodes[layer].outputs]
        return self.tensors[layer][ports.index(port)]

    def parameter(self, name: str, known: Known, tensor_names: tuple[str, ...] = ()) -> Tensor:
        """A Parameter that declares what is known of it."""
        if known.element_type is None:
            raise BuildError(
                f"the element type of {name!r} is not known, and an input of {self.title} must have one: convert it first"
            )
        shape = str(known.shape).removeprefix("[").removesuffix("]")
        attributes = {"shape": shape, "element_type": str(known.element_type)}
        return self.add(
            "Parameter", "opset1", attributes, (), (known,), name=name, tensor_names=tensor_names
        )[0]

    def result(self, tensor: Tensor, name: str = "") -> LayerId:
        """A Result; its number, for port maps and back edges."""
        self.add("Result", "opset1", {}, (tensor,), (), name=name)
        return LayerId(len(self.nodes) - 1)

    def capture(self, outer: Tensor) -> Tensor:
        """The Parameter for a tensor of the parent; the same one every time."""
        key = (outer.source.layer, outer.source.output)
        if key not in self.captures:
            name = outer.name.rpartition("/")[2].replace(":", "_")
            with self.graph.unscoped(self):
                self.captures[key] = outer, self.parameter(name, outer.known)
        return self.captures[key][1]

    def bring(self, tensor: Tensor) -> Tensor:
        """A tensor as it is seen here: itself, or captured through every body in between;
        ``BuildError`` when it cannot be seen.
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
                f"{tensor!r} lives in {tensor.frame.title} and cannot be used in {self.title}: let that return it"
            )
        for inner in reversed(between):
            tensor = inner.capture(tensor)
        return tensor

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is built meanwhile goes away again when it fails: a call that was refused leaves
        no nodes behind.
        """
        nodes, edges = len(self.nodes), len(self.edges)
        try:
            yield
        except BaseException:
            self.forget(nodes, edges)
            raise

    def forget(self, nodes: int, edges: int) -> None:
        """Only the first nodes and edges stay."""
        del self.nodes[nodes:], self.edges[edges:], self.tensors[nodes:]
        self.writes = [one for one in self.writes if one.layer < nodes]
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
        """The graph so far; ``BuildError`` when a write to an array would be lost."""
        refuse_lost(self.writes, self.edges, for_good=True)
        finished = ModelGraph(tuple(self.kept(self.nodes, self.edges)), tuple(self.edges))
        self.graph.calls[finished] = tuple(self.calls)
        return finished
