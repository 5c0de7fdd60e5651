"""Variables of a TensorFlow graph as states: they become inputs and outputs for OpenVINO's
conversion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopscope.ir.element_type import ElementType
from loopscope.ir.graph_messages import MESSAGES
from loopscope.ir.model import Edge, LayerId, Model, Node, Port
from loopscope.ir.replace import replace
from loopscope.read.tensorflow.graph_file import GraphDefFile, node_name

_HANDLES = frozenset({"VarHandleOp"})
_REFERENCES = frozenset({"Variable", "VariableV2"})
_VARIABLES = _HANDLES | _REFERENCES
_ASSIGN_OPERATIONS = frozenset({"AssignVariableOp", "Assign"})
_UPDATE_OPERATIONS: Mapping[str, str] = {
    "AssignAddVariableOp": "AddV2",
    "AssignAdd": "AddV2",
    "AssignSubVariableOp": "Sub",
    "AssignSub": "Sub",
}
_ASSIGNS = _ASSIGN_OPERATIONS | _UPDATE_OPERATIONS.keys()
_NOT_OUTPUTS = (
    _ASSIGNS
    | _VARIABLES
    | {
        "NoOp",
        "ReadVariableOp",
        "VarIsInitializedOp",
        "IsVariableInitialized",
        "SaveV2",
        "RestoreV2",
        "Assert",
    }
)
_INPUTS = frozenset({"Placeholder", "PlaceholderWithDefault"})
_STATE, _FIRST, _LAST = "loopscope_state", "loopscope_first", "loopscope_last"
"""Scopes of a variable's placeholders during conversion: current value, initial value, final
value.
"""


class Unsupported(Exception):
    """A use of a variable that cannot be rewritten, such as in a function."""


@dataclass(frozen=True, eq=False)
class States:
    """A graph with values instead of variables, and the variables that it assigns."""

    graph: Any
    variables: tuple[str, ...]


def with_states(source: GraphDefFile, has_values: bool) -> States | None:
    """Return the graph with values instead of variables; None if there are none or they are
    unsupported.

    If ``has_values``, OpenVINO reads the initial values from a checkpoint; else they come from the
    graph's initializers.
    """
    rewriting = _Rewriting({node.name: node for node in source.graph.node}, has_values)
    try:
        return rewriting.states(source)
    except (Unsupported, KeyError, IndexError):
        return None


@dataclass(eq=False)
class _Rewriting:
    nodes: Mapping[str, Any]
    has_values: bool

    def states(self, source: GraphDefFile) -> States | None:
        ends = self._ends(source)
        order = list(self._ordered(ends))
        read = dict.fromkeys(
            self._variable(text) for node in order for text in node.input if self._is_variable(text)
        )
        assigned = dict.fromkeys(
            self._variable(node.input[0]) for node in order if node.op in _ASSIGNS
        )
        initial_values = {} if self.has_values else self._initial_values()
        if (
            not ends
            or not read
            or any(variable not in initial_values for variable in assigned if not self.has_values)
        ):
            return None
        if not assigned and self.has_values:
            return None  # OpenVINO reads variables without assignments itself
        graph = MESSAGES["GraphDef"]()
        graph.versions.CopyFrom(source.graph.versions)
        graph.library.CopyFrom(source.graph.library)
        written: set[str] = set()
        current: dict[str, str] = {}
        for variable in read:
            current[variable] = self._begin(
                graph, written, variable, initial_values, variable in assigned
            )
        for node in order:
            if node.op not in _VARIABLES and node.name not in written:
                written.add(node.name)
                self._write(graph, node, current)
        for variable in assigned:
            _add(
                graph, f"{_LAST}/{variable}", "Identity", [current[variable]], self._type(variable)
            )
        return States(graph, tuple(assigned))

    def _begin(
        self,
        graph: Any,
        written: set[str],
        variable: str,
        initial_values: Mapping[str, str],
        is_assigned: bool,
    ) -> str:
        """Write the initial value of a variable; return the tensor of its value before the first
        operation.
        """
        kind = self._type(variable)
        if self.has_values:
            graph.node.add().CopyFrom(_without_control(self.nodes[variable]))
            value = variable
            if self.nodes[variable].op in _HANDLES:
                value = f"{variable}/{_FIRST}"
                reading = _add(graph, value, "ReadVariableOp", [variable], None)
                reading.attr["dtype"].type = kind
        elif variable in initial_values:
            value = initial_values[variable]
            for node in self._ordered([node_name(value)]):
                if node.name not in written:
                    written.add(node.name)
                    graph.node.add().CopyFrom(_without_control(node))
        else:
            raise Unsupported(variable)
        if not is_assigned:
            return value
        state = _add(graph, f"{_STATE}/{variable}", "Placeholder", [], None)
        state.attr["dtype"].type = kind
        state.attr["shape"].CopyFrom(self.nodes[variable].attr["shape"])
        # The initial value is compared with the state, because OpenVINO would drop a constant
        # output. Equal supports every element type.
        _add(graph, f"{_FIRST}/{variable}", "Equal", [value, state.name], kind)
        return str(state.name)

    def _write(self, graph: Any, node: Any, current: dict[str, str]) -> None:
        """Write an operation with the current values of variables as its inputs."""
        if node.op in _ASSIGNS:
            variable, value = self._variable(node.input[0]), self._input(node.input[1], current)
            kind = self._type(variable)
            if node.op in _ASSIGN_OPERATIONS:
                _add(graph, node.name, "Identity", [value], kind)
            else:
                _add(
                    graph, node.name, _UPDATE_OPERATIONS[node.op], [current[variable], value], kind
                )
            current[variable] = node.name
        elif node.op == "ReadVariableOp":
            variable = self._variable(node.input[0])
            _add(graph, node.name, "Identity", [current[variable]], self._type(variable))
        else:
            copy = graph.node.add()
            copy.CopyFrom(node)
            del copy.input[:]
            copy.input.extend(
                self._input(text, current) for text in node.input if not text.startswith("^")
            )

    def _input(self, text: str, current: Mapping[str, str]) -> str:
        if not self._is_variable(text):
            return text
        variable = self._variable(text)
        if self.nodes[variable].op in _HANDLES:
            raise Unsupported(variable)
        return current[variable]

    def _is_variable(self, text: str) -> bool:
        return not text.startswith("^") and self.nodes[node_name(text)].op in _VARIABLES

    def _variable(self, text: str) -> str:
        name = node_name(text)
        if self.nodes[name].op not in _VARIABLES:
            raise Unsupported(name)
        return name

    def _type(self, variable: str) -> int:
        return int(self.nodes[variable].attr["dtype"].type)

    def _ends(self, source: GraphDefFile) -> list[str]:
        """Return the output nodes: those of the signatures, else nodes without consumers that
        depend on an input.
        """
        if source.outputs:
            return list(dict.fromkeys(source.outputs.values()))
        consumed = {
            node_name(text)
            for node in self.nodes.values()
            for text in node.input
            if not text.startswith("^")
        }
        free = [
            node
            for node in self.nodes.values()
            if node.name not in consumed and node.op not in _NOT_OUTPUTS
        ]
        return [node.name for node in free if self._is_reached(node.name)]

    def _is_reached(self, end: str) -> bool:
        """Return True if a node depends on an input or a variable, and not on a file."""
        kinds = {node.op for node in self._ordered([end])}
        return bool(kinds & (_INPUTS | _VARIABLES)) and not kinds & {"RestoreV2", "SaveV2"}

    def _initial_values(self) -> dict[str, str]:
        """Return the tensor that each variable is first set to, by an assignment independent of
        inputs.
        """
        first: dict[str, str] = {}
        for node in self.nodes.values():
            if node.op in _ASSIGN_OPERATIONS and self._is_variable(node.input[0]):
                kinds = {inner.op for inner in self._ordered([node_name(node.input[1])])}
                if not kinds & (_INPUTS | _VARIABLES | {"RestoreV2"}):
                    first.setdefault(self._variable(node.input[0]), node.input[1])
        return first

    def _ordered(self, ends: Sequence[str]) -> Iterator[Any]:
        """Yield the dependencies of nodes (data and control) in topological order, then the nodes.

        ``Unsupported`` if there is a cycle.
        """
        done: set[str] = set()
        on_path: set[str] = set()
        waiting = list(reversed(ends))
        while waiting:
            name = waiting[-1]
            if name in done:
                waiting.pop()
                continue
            before = [
                source for text in self.nodes[name].input if (source := node_name(text)) not in done
            ]
            if not before:
                waiting.pop()
                done.add(name)
                yield self.nodes[name]
            elif name in on_path:
                raise Unsupported(name)
            else:
                on_path.add(name)
                waiting += reversed(before)


def _add(graph: Any, name: str, kind: str, inputs: Sequence[str], element_type: int | None) -> Any:
    node = graph.node.add(name=name, op=kind, input=inputs)
    if element_type is not None:
        node.attr["T"].type = element_type
    return node


def _without_control(node: Any) -> Any:
    copy = MESSAGES["NodeDef"]()
    copy.CopyFrom(node)
    del copy.input[:]
    copy.input.extend(text for text in node.input if not text.startswith("^"))
    return copy


def restore_states(model: Model, variables: Sequence[str]) -> Model:
    """Return the model with ReadValue and Assign in place of the inputs and outputs of variables.

    ``ValueError`` if one of them is missing.
    """
    graph = model.graph
    by_name = {_without_port_zero(node.name): node for node in graph.nodes}
    nodes = {node.id: node for node in graph.nodes}
    edges = list(graph.edges)
    for variable in variables:
        state, first, last = _marked_nodes(by_name, variable)
        nodes = {
            layer: replace(node, name=f"{variable}/initial_value")
            if node.name == variable
            else node
            for layer, node in nodes.items()
        }
        compared, initial = _initial_value(nodes, edges, state, first, variable)
        edges = [edge for edge in edges if edge.to_layer not in (compared, first.id)]
        nodes = {layer: node for layer, node in nodes.items() if layer not in (compared, first.id)}
        read = nodes[state.id] = _read_value(state, variable)
        edges = [
            Edge(edge.from_layer, read.outputs[0].id, edge.to_layer, edge.to_port)
            if edge.from_layer == state.id
            else edge
            for edge in edges
        ]
        edges.append(Edge(initial.from_layer, initial.from_port, state.id, read.inputs[0].id))
        nodes[last.id] = _assign(last, variable, state.outputs[0].element_type)
    return replace(model, graph=replace(graph, nodes=tuple(nodes.values()), edges=tuple(edges)))


def _marked_nodes(by_name: Mapping[str, Node], variable: str) -> tuple[Node, Node, Node]:
    """Return the nodes of a variable's current value, initial value and final value."""
    state, first, last = (by_name.get(f"{scope}/{variable}") for scope in (_STATE, _FIRST, _LAST))
    if state is None or first is None or last is None or first.type != "Result":
        raise ValueError(f"OpenVINO did not keep the variable {variable!r}")
    return state, first, last


def _initial_value(
    nodes: Mapping[LayerId, Node], edges: Sequence[Edge], state: Node, first: Node, variable: str
) -> tuple[LayerId, Edge]:
    """Return the comparison of the initial value with the state, and the edge with the initial
    value.
    """
    compared = next((edge.from_layer for edge in edges if edge.to_layer == first.id), first.id)
    initial = next(
        (edge for edge in edges if edge.to_layer == compared and edge.from_layer != state.id), None
    )
    if nodes[compared].type != "Equal" or initial is None:
        raise ValueError(f"OpenVINO did not keep the initial value of the variable {variable!r}")
    return compared, initial


def _read_value(state: Node, variable: str) -> Node:
    port = state.outputs[0]
    attributes = {
        "variable_id": variable,
        "variable_type": str(port.element_type),
        "variable_shape": str(port.shape)[1:-1],
    }
    output = Port(port.id + 1, port.element_type, port.shape)
    return Node(state.id, variable, "ReadValue", "opset6", attributes, (Port(port.id),), (output,))


def _assign(last: Node, variable: str, element_type: ElementType | None) -> Node:
    output = Port(last.inputs[0].id + 1, element_type)
    attributes = {"variable_id": variable}
    return Node(
        last.id, f"{variable}/Assign", "Assign", "opset6", attributes, last.inputs, (output,)
    )


def _without_port_zero(name: str) -> str:
    return name.removesuffix(":0")
