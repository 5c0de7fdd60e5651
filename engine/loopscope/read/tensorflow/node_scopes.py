"""Scopes of calls, loops and branches, and devices, which OpenVINO's conversion drops.

OpenVINO replaces a call by the nodes of the function, and the names of these nodes do not show the
call. A copy of the function for each call, whose nodes are named after it, keeps calls visible.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from loopscope.ir.address import encode, graphs
from loopscope.ir.graph_messages import MESSAGES
from loopscope.ir.model import Model, ModelGraph, Node
from loopscope.ir.replace import replace
from loopscope.read.tensorflow.graph_file import GraphDefFile, node_name

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_TRACED_FUNCTION_NAME = re.compile(r"__(?:inference|forward)_(.*?)(?:_\d+)?")
"""Name that tf.function gives to a traced function; the first group is the Python name."""
_WRAPPER = re.compile(
    r"(signature_wrapper|restored_function_body|pruned|wrapped_model|serving)\w*|_*call_*|serve"
)
"""Python names of functions that TensorFlow and Keras write around those of users, a copy for each
signature.
"""
_MAX_NODES = 50_000
"""Limit on the nodes of all copies."""


class _NotCopied(Exception):
    """Calls whose functions are not copied: recursive ones, or more than ``_MAX_NODES`` nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class CallScopes:
    """A graph in which every scoped call has a function of its own."""

    graph: Any
    functions: Mapping[str, str]
    """Readable function name by scope, in the order of the calls."""


def with_call_scopes(graph: Any) -> CallScopes | None:
    """Return the GraphDef with a copy of the function for each call of those that are called more
    than once.

    None if there are none, or they cannot be copied. Calls in the bodies of loops and branches are
    not changed.
    """
    copied = MESSAGES["GraphDef"]()
    copied.CopyFrom(graph)
    functions = {function.signature.name: function for function in graph.library.function}
    work = _Work(functions, Counter(), {node.name.split("/")[0] for node in graph.node})
    try:
        work.count(copied.node, frozenset())
        if not any(map(work.is_scoped, work.calls)):
            return None
        work.rename_calls(copied.node, "")
    except _NotCopied:
        return None
    copied.library.function.extend(work.copies)
    return CallScopes(copied, work.scopes)


def with_declared_calls(model: Model, functions: Mapping[str, str]) -> Model:
    """Return the model whose ``rt_info`` declares the groups of nodes of each call, as that of
    ``builder.function``.
    """
    groups = [
        (f"{place.address}/{encode(f'{scope}/')}*", name)
        for place in graphs(model)
        for scope, name in functions.items()
        if any(node.name.startswith(f"{scope}/") for node in place.graph.nodes)
    ]
    if not groups:
        return model
    own = {
        "functions": {f"call_{number}": group for number, (group, _) in enumerate(groups)},
        "function_names": {f"call_{number}": name for number, (_, name) in enumerate(groups)},
    }
    return replace(model, rt_info={**model.rt_info, "loopscope": own})


@dataclass(slots=True, eq=False)
class _Work:
    functions: Mapping[str, Any]
    calls: Counter[str]
    """Number of calls of each readable name."""
    used_scopes: set[str]
    scopes: dict[str, str] = field(default_factory=dict)
    copies: list[Any] = field(default_factory=list)
    number_of_nodes: int = 0

    def count(self, nodes: Any, callers: frozenset[str]) -> None:
        """Count the calls in nodes, and in the functions that they call."""
        for _, name in self._calls_in(nodes):
            self.number_of_nodes += len(self.functions[name].node_def)
            if name in callers or self.number_of_nodes > _MAX_NODES:
                raise _NotCopied
            self.calls[readable_name(name)] += 1
            self.count(self.functions[name].node_def, callers | {name})

    def rename_calls(self, nodes: Any, prefix: str) -> None:
        """Replace the function of each call by a copy; ``prefix`` is the scope around the nodes."""
        for node, name in self._calls_in(nodes):
            label = readable_name(name)
            scope = prefix
            if self.is_scoped(label):
                scope = self._free_scope(f"{prefix}{label}")
                self.scopes[scope] = label
                scope += "/"
            copy = self._copy(self.functions[name], scope)
            self.copies.append(copy)
            if node.op in _CALLS:
                node.attr["f"].func.name = copy.signature.name
            else:
                node.op = copy.signature.name
            self.rename_calls(copy.node_def, scope)

    def is_scoped(self, label: str) -> bool:
        """Return True if calls of a readable name get scopes."""
        return self.calls[label] > 1 and _WRAPPER.fullmatch(label) is None

    def _calls_in(self, nodes: Any) -> Iterator[tuple[Any, str]]:
        for node in nodes:
            name = node.attr["f"].func.name if node.op in _CALLS else node.op
            if name in self.functions:
                yield node, name

    def _free_scope(self, preferred: str) -> str:
        scope, number = preferred, 0
        while scope in self.used_scopes:
            number += 1
            scope = f"{preferred}_{number}"
        self.used_scopes.add(scope)
        return scope

    def _copy(self, function: Any, scope: str) -> Any:
        """Return the function under a new name, with its nodes in a scope."""
        copy = MESSAGES["FunctionDef"]()
        copy.CopyFrom(function)
        copy.signature.name = f"{function.signature.name}_call_{len(self.copies)}"
        if copy.signature.name in self.functions:
            raise _NotCopied
        arguments = {argument.name for argument in function.signature.input_arg}

        def renamed(text: str) -> str:
            control = "^" if text.startswith("^") else ""
            name, colon, output = text.removeprefix("^").partition(":")
            if name in arguments and not control:
                return text
            return f"{control}{scope}{name}{colon}{output}"

        for node in copy.node_def:
            node.name = f"{scope}{node.name}"
            inputs = [renamed(text) for text in node.input]
            del node.input[:]
            node.input.extend(inputs)
        for outputs in (copy.ret, copy.control_ret):
            for key, text in list(outputs.items()):
                outputs[key] = renamed(text)
        return copy


def readable_name(function: str) -> str:
    """Return the Python name of a traced function.

    >>> readable_name("__inference_step_226"), readable_name("my_function")
    ('step', 'my_function')
    """
    match = _TRACED_FUNCTION_NAME.fullmatch(function)
    return match[1] if match and match[1] else function


DEVICE = "device"
_GENERATED_NAME = re.compile(r"(If|Loop|TensorIterator)_\d+(_\d+)*")
"""Names that OpenVINO generates for new nodes."""
_V1_OUTPUT = re.compile(r"(Merge|Exit|Switch)(_\d+)?")
_MAX_PARTS = 32


def with_origins(model: Model, source: GraphDefFile) -> Model:
    """Return the model with loops and branches named by their scope, and node devices in
    ``rt_info``.
    """
    functions = (node for function in source.graph.library.function for node in function.node_def)
    nodes = {node.name: node.device for group in (functions, source.graph.node) for node in group}
    return replace(model, graph=_rename_graph(model.graph, nodes))


def _rename_graph(graph: ModelGraph, devices: Mapping[str, str]) -> ModelGraph:
    used_names = {node.name for node in graph.nodes}
    nodes = []
    for node in graph.nodes:
        if node.bodies:
            node = replace(
                node,
                bodies=tuple(
                    replace(body, graph=_rename_graph(body.graph, devices)) for body in node.bodies
                ),
            )
            scope = _scope(node) if _GENERATED_NAME.fullmatch(node.name) else ""
            if scope and scope not in used_names:
                used_names.add(scope)
                node = replace(node, name=scope)
        device = _device(node.name, devices)
        if device:
            node = replace(node, rt_info={**node.rt_info, DEVICE: device})
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _scope(node: Node) -> str:
    """Return the TensorFlow scope in which a loop or branch was built; "" if it is unknown."""
    for port in node.outputs:
        for name in port.names:
            scope, _, last = node_name(name).rpartition("/")
            if scope and _V1_OUTPUT.fullmatch(last):
                return scope
    inside = [
        inner.name.split("/")[:-1]
        for body in node.bodies
        for inner in body.graph.nodes
        if inner.type not in ("Parameter", "Result", "Const") and "/" in inner.name
    ]
    common = inside[0] if inside else []
    for scopes in inside:
        length = next(
            (
                place
                for place, pair in enumerate(zip(common, scopes, strict=False))
                if pair[0] != pair[1]
            ),
            len(scopes),
        )
        common = common[:length]
    while common and common[-1] in ("then_branch", "else_branch", "body", "cond_branch"):
        common = common[:-1]
    return "/".join(common)


def _device(name: str, devices: Mapping[str, str]) -> str:
    """Return the device of a node; in a body, the names of outer calls may precede the node's own
    name.
    """
    parts = name.split("/")
    tails = ("/".join(parts[start:]) for start in range(min(len(parts), _MAX_PARTS)))
    return next((device for tail in tails if (device := devices.get(tail)) is not None), "")
