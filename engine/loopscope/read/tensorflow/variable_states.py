"""Variables of a TensorFlow graph as values: OpenVINO converts a graph in which they are inputs
and outputs, which become states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopscope.ir.graph_messages import MESSAGES
from loopscope.ir.model import Edge, Model, Node, Port
from loopscope.ir.replace import replace
from loopscope.read.tensorflow.graph_file import GraphDefFile, node_name

_HANDLES = frozenset({"VarHandleOp"})
_REFERENCES = frozenset({"Variable", "VariableV2"})
_VARIABLES = _HANDLES | _REFERENCES
_SETS = frozenset({"AssignVariableOp", "Assign"})
_CHANGES: Mapping[str, str] = {
    "AssignAddVariableOp": "AddV2",
    "AssignAdd": "AddV2",
    "AssignSubVariableOp": "Sub",
    "AssignSub": "Sub",
}
_ASSIGNS = _SETS | _CHANGES.keys()
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
"""Scopes of what stands for a variable while OpenVINO converts: its value before, its initial
value, its value after.
"""


class Unsupported(Exception):
    """A variable is used in a way that has no value of its own, such as in a function."""


@dataclass(frozen=True, eq=False)
class States:
    """A graph with values in place of variables, and the variables that it assigns."""

    graph: Any
    variables: tuple[str, ...]


def with_states(source: GraphDefFile, has_values: bool) -> States | None:
    """Return the graph with values in place of its variables; None where it has none that this can
    be said of.

    ``has_values``: a checkpoint holds their values, so that OpenVINO finds them; otherwise the
    graph's initializers say them.
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
        first = {} if self.has_values else self._initial_values()
        if (
            not ends
            or not read
            or any(variable not in first for variable in assigned if not self.has_values)
        ):
            return None
        if not assigned and self.has_values:
            return None  # OpenVINO reads them as they are
        made = MESSAGES["GraphDef"]()
        made.versions.CopyFrom(source.graph.versions)
        made.library.CopyFrom(source.graph.library)
        written: set[str] = set()
        current: dict[str, str] = {}
        for variable in read:
            current[variable] = self._begin(made, written, variable, first, variable in assigned)
        for node in order:
            if node.op not in _VARIABLES and node.name not in written:
                written.add(node.name)
                self._write(made, node, current)
        for variable in assigned:
            _add(made, f"{_LAST}/{variable}", "Identity", [current[variable]], self._type(variable))
        return States(made, tuple(assigned))

    def _begin(
        self,
        made: Any,
        written: set[str],
        variable: str,
        first: Mapping[str, str],
        is_assigned: bool,
    ) -> str:
        """Write the initial value of a variable; return the tensor that it is before the first
        operation.
        """
        kind = self._type(variable)
        if self.has_values:
            made.node.add().CopyFrom(_without_control(self.nodes[variable]))
            value = variable
            if self.nodes[variable].op in _HANDLES:
                value = f"{variable}/{_FIRST}"
                reading = _add(made, value, "ReadVariableOp", [variable], None)
                reading.attr["dtype"].type = kind
        elif variable in first:
            value = first[variable]
            for node in self._ordered([node_name(value)]):
                if node.name not in written:
                    written.add(node.name)
                    made.node.add().CopyFrom(_without_control(node))
        else:
            raise Unsupported(variable)
        if not is_assigned:
            return value
        state = _add(made, f"{_STATE}/{variable}", "Placeholder", [], None)
        state.attr["dtype"].type = kind
        state.attr["shape"].CopyFrom(self.nodes[variable].attr["shape"])
        # A constant would not stay an output, so the initial value is compared with the state; any
        # element type can be.
        _add(made, f"{_FIRST}/{variable}", "Equal", [value, state.name], kind)
        return str(state.name)

    def _write(self, made: Any, node: Any, current: dict[str, str]) -> None:
        """Write an operation with the present values of variables as its inputs."""
        if node.op in _ASSIGNS:
            variable, value = self._variable(node.input[0]), self._input(node.input[1], current)
            kind = self._type(variable)
            if node.op in _SETS:
                _add(made, node.name, "Identity", [value], kind)
            else:
                _add(made, node.name, _CHANGES[node.op], [current[variable], value], kind)
            current[variable] = node.name
        elif node.op == "ReadVariableOp":
            variable = self._variable(node.input[0])
            _add(made, node.name, "Identity", [current[variable]], self._type(variable))
        else:
            copy = made.node.add()
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
        """The nodes that are outputs: those of the signatures, else those that nobody reads and
        that an input leads to.
        """
        if source.outputs:
            return list(dict.fromkeys(source.outputs.values()))
        taken = {
            node_name(text)
            for node in self.nodes.values()
            for text in node.input
            if not text.startswith("^")
        }
        free = [
            node
            for node in self.nodes.values()
            if node.name not in taken and node.op not in _NOT_OUTPUTS
        ]
        return [node.name for node in free if self._is_reached(node.name)]

    def _is_reached(self, end: str) -> bool:
        """True if an input or a variable leads to a node, and no file does."""
        kinds = {node.op for node in self._ordered([end])}
        return bool(kinds & (_INPUTS | _VARIABLES)) and not kinds & {"RestoreV2", "SaveV2"}

    def _initial_values(self) -> dict[str, str]:
        """The tensor that each variable is first set to, by an assignment that no input or
        variable leads to.
        """
        first: dict[str, str] = {}
        for node in self.nodes.values():
            if node.op in _SETS and self._is_variable(node.input[0]):
                kinds = {inner.op for inner in self._ordered([node_name(node.input[1])])}
                if not kinds & (_INPUTS | _VARIABLES | {"RestoreV2"}):
                    first.setdefault(self._variable(node.input[0]), node.input[1])
        return first

    def _ordered(self, ends: Sequence[str]) -> Iterator[Any]:
        """Yield what nodes depend on, by data or control, each after what it depends on;
        ``Unsupported`` in a circle.
        """
        done: set[str] = set()
        open_: set[str] = set()
        waiting = list(reversed(ends))
        while waiting:
            name = waiting[-1]
            if name in done:
                waiting.pop()
                continue
            before = [
                found for text in self.nodes[name].input if (found := node_name(text)) not in done
            ]
            if not before:
                waiting.pop()
                done.add(name)
                yield self.nodes[name]
            elif name in open_:
                raise Unsupported(name)
            else:
                open_.add(name)
                waiting += reversed(before)


def _add(made: Any, name: str, kind: str, inputs: Sequence[str], element_type: int | None) -> Any:
    node = made.node.add(name=name, op=kind, input=inputs)
    if element_type is not None:
        node.attr["T"].type = element_type
    return node


def _without_control(node: Any) -> Any:
    copy = MESSAGES["NodeDef"]()
    copy.CopyFrom(node)
    del copy.input[:]
    copy.input.extend(text for text in node.input if not text.startswith("^"))
    return copy


def restored(model: Model, variables: Sequence[str]) -> Model:
    """Return the model with ReadValue and Assign where inputs and outputs stood for variables;
    ``ValueError`` where one is missing.
    """
    graph = model.graph
    by_name = {_plain(node.name): node for node in graph.nodes}
    nodes = {node.id: node for node in graph.nodes}
    edges = list(graph.edges)
    for variable in variables:
        state, first, last = (
            by_name.get(f"{scope}/{variable}") for scope in (_STATE, _FIRST, _LAST)
        )
        if state is None or first is None or last is None or first.type != "Result":
            raise ValueError(f"OpenVINO did not keep the variable {variable!r}")
        port = state.outputs[0]
        nodes = {
            layer: replace(node, name=f"{variable}/initial_value")
            if node.name == variable
            else node
            for layer, node in nodes.items()
        }
        compared = next((edge.from_layer for edge in edges if edge.to_layer == first.id), first.id)
        source = next(
            (edge for edge in edges if edge.to_layer == compared and edge.from_layer != state.id),
            None,
        )
        if nodes[compared].type != "Equal" or source is None:
            raise ValueError(
                f"OpenVINO did not keep the initial value of the variable {variable!r}"
            )
        edges = [edge for edge in edges if edge.to_layer not in (compared, first.id)]
        nodes = {layer: node for layer, node in nodes.items() if layer not in (compared, first.id)}
        attributes = {
            "variable_id": variable,
            "variable_type": str(port.element_type),
            "variable_shape": str(port.shape)[1:-1],
        }
        read = Port(port.id + 1, port.element_type, port.shape)
        nodes[state.id] = Node(
            state.id, variable, "ReadValue", "opset6", attributes, (Port(port.id),), (read,)
        )
        edges = [
            Edge(edge.from_layer, read.id, edge.to_layer, edge.to_port)
            if edge.from_layer == state.id
            else edge
            for edge in edges
        ]
        edges.append(Edge(source.from_layer, source.from_port, state.id, port.id))
        taken = last.inputs[0].id
        nodes[last.id] = Node(
            last.id,
            f"{variable}/Assign",
            "Assign",
            "opset6",
            {"variable_id": variable},
            last.inputs,
            (Port(taken + 1, port.element_type),),
        )
    return replace(model, graph=replace(graph, nodes=tuple(nodes.values()), edges=tuple(edges)))


def _plain(name: str) -> str:
    return name.removesuffix(":0")
