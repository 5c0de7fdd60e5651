"""The graphs of an ONNX model as a list of scopes.

Each scope lists its own names, the functions that it calls, and its captures from outer scopes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, filterfalse
from operator import attrgetter, getitem, methodcaller
from typing import Any, cast

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from loopscope.errors import ReadError, Where, shorten
from loopscope.ir.address import encode
from loopscope.ir.model import FOREIGN, BodyName, ForeignBody, GraphPlace
from loopscope.read.file_limits import ReadLimits
from loopscope.read.onnx.inference import Inferred
from loopscope.read.onnx.node_attributes import (
    WHOLE,
    AttributeMap,
    attributes_of,
    node_details,
    resolve_attributes,
)
from loopscope.read.onnx.rewritten_operations import (
    expand_batched_scan,
    expand_function,
    helper_functions,
    is_batched_scan,
)
from loopscope.read.onnx.scope import FunctionKey, NodeColumns, Scope, ScopedNode, node_of
from loopscope.read.onnx.searches import GRAPH_DOMAIN, SEARCH_DOMAIN, SEARCHES, search
from loopscope.read.onnx.split_weights import NO_VIEWS, WeightViews

BODIES: Mapping[str, Mapping[str, BodyName]] = {
    "Loop": {"body": "body"},
    "Scan": {"body": "body"},
    "SequenceMap": {"body": "body"},
    "If": {"then_branch": "then", "else_branch": "else"},
}
"""Operations whose graphs are run as bodies: the body name of each graph attribute."""


@dataclass(slots=True, eq=False)
class ScopeReader:
    """Reader of all scopes of a model, each before the scopes inside it."""

    model: ModelProto
    file: str
    limits: ReadLimits
    inferred: Inferred
    views: WeightViews = NO_VIEWS
    """Data of large tensors, which was not parsed."""
    scopes: list[Scope] = field(default_factory=list[Scope])
    nodes: int = 0
    functions: dict[FunctionKey, FunctionProto] = field(
        default_factory=dict[FunctionKey, FunctionProto]
    )
    places: list[GraphPlace] = field(default_factory=list[GraphPlace])
    """Places of the graphs that are in the file."""
    numbered: int = 0
    """Number of nodes in these graphs so far."""
    types_with_scopes: set[str] = field(default_factory=set[str])
    """Operation types that are checked for scopes inside: those of ``BODIES``, and functions."""

    def read(self) -> Sequence[Scope]:
        """Return all scopes, each before the scopes inside it.

        ``ReadError`` for recursive functions and for models beyond the limits.
        """
        for function in self.model.functions:
            self._check_texts(
                (function.name, function.domain, function.overload, *function.attribute)
            )
        self.functions = {
            (_domain(item.domain), item.name, item.overload): item
            for item in (*self.model.functions, *helper_functions())
        }
        self.types_with_scopes = {*BODIES, *(name for _, name, _ in self.functions)}
        outermost = _graph_scope(self.model.graph, None, _opsets(self.model.opset_import), {})
        outermost.views, outermost.inferred = self.views, self.inferred
        outermost.trail = None, ()
        self.scopes.append(outermost)
        done = 0
        while done < len(self.scopes):
            self._open(self.scopes[done])
            done += 1
        for scope in reversed(self.scopes):
            _find_captures(scope)
        return self.scopes

    def _open(self, scope: Scope) -> None:
        if scope.depth > self.limits.depth:
            raise self._refused(
                f"graphs are nested deeper than {self.limits.depth}, the limit 'depth'"
            )
        # A slice of a protobuf container is a list, made four times as fast as by list().
        nodes = scope.proto.node[:]
        self.nodes += len(nodes)
        if self.nodes > self.limits.nodes:
            raise self._refused(
                f"the model has more nodes than {self.limits.nodes:,}, the limit 'nodes'"
                " (functions count where called)"
            )
        self._number_nodes(scope, len(nodes))
        own = (scope.name, *scope.inputs, *scope.outputs, *scope.initializers)
        names, types, domains = ([*map(column, nodes)] for column in (_NAME, _OPERATION, _DOMAIN))
        inputs, outputs = (
            cast("list[list[str]]", [*map(getitem, map(column, nodes), WHOLE)])
            for column in (_INPUTS, _OUTPUTS)
        )
        attributes = attributes_of(nodes, scope.attributes)
        self._check_texts(
            [*own, *names, *types, *domains, *chain(*inputs), *chain(*outputs), *chain(*attributes)]
        )
        opsets = [
            *map(
                {
                    domain: _with_version(_domain(domain), scope.opsets) for domain in {*domains}
                }.__getitem__,
                domains,
            )
        ]
        scope.columns = columns = NodeColumns(
            names, types, opsets, inputs, outputs, attributes, details=node_details(nodes)
        )
        for number in self._nodes_with_scopes(types, attributes):
            call = ScopedNode(
                nodes[number],
                names[number],
                types[number],
                opsets[number],
                inputs[number],
                outputs[number],
                attributes[number],
            )
            self._enter_all(scope, number, call, _domain(domains[number]))
            columns.within[number] = call
            opsets[number], inputs[number], attributes[number] = (
                call.opset,
                call.inputs,
                call.attributes,
            )

    def _number_nodes(self, scope: Scope, nodes: int) -> None:
        """Number the graph and its nodes if they are in the file."""
        if scope.trail is not None:
            scope.first_source = self.numbered + 1
            self.places.append(GraphPlace(scope.first_source, *scope.trail))
            scope.source = len(self.places)
            self.numbered += nodes

    def _nodes_with_scopes(
        self, types: Sequence[str], attributes: Sequence[AttributeMap]
    ) -> Iterable[int]:
        """Return the indices of the nodes that may have scopes inside them."""
        numbers: set[int] = set()
        if not self.types_with_scopes.isdisjoint(types):
            numbers.update(
                number for number, kind in enumerate(types) if kind in self.types_with_scopes
            )
        if not _GRAPHS.isdisjoint(
            map(_TYPE, chain.from_iterable(map(_VALUES, filter(None, attributes))))
        ):
            numbers.update(
                number for number, values in enumerate(attributes) if values and _has_graphs(values)
            )
        return sorted(numbers)

    def _enter_all(self, scope: Scope, number: int, call: ScopedNode, domain: str) -> None:
        """Add the scopes inside a node whose operation is a function or has graphs."""
        node, kind, attributes = call.proto, call.type, call.attributes
        version = scope.opsets.get(domain, 0)
        self._check_texts((node.overload,))
        key = (domain, kind, node.overload)
        if key in self.functions:
            self._enter_function(scope, call, key)
        elif kind in BODIES and domain == _ONNX:
            batched = is_batched_scan(node, version, attributes)
            if batched:
                typed = _typed_node(scope, number, node)
                try:
                    call.proto = expand_batched_scan(
                        typed, resolve_attributes(typed.attribute, scope.attributes)
                    )
                except ValueError as error:
                    raise self._refused(
                        f"node {shorten(call.name or kind, 60)!r}: {error}"
                    ) from error
                call.is_batched = True
                call.inputs = list(call.proto.input)
                call.attributes = resolve_attributes(call.proto.attribute, scope.attributes)
            self._enter_bodies(scope, call, None if batched else number)
        elif (
            domain == GRAPH_DOMAIN
            and "graph" in attributes
            and attributes["graph"].type == AttributeProto.GRAPH
        ):
            self._enter_graph(scope, call)
        elif _has_graphs(attributes):
            self._enter_expanded(scope, call, version)
        call.captures_from = len(call.inputs)

    def _enter_function(self, scope: Scope, call: ScopedNode, key: FunctionKey) -> None:
        if key in scope.callers:
            raise self._refused(f"function {shorten(key[1], 60)!r} calls itself")
        function = self.functions[key]
        defaults = {attribute.name: attribute for attribute in function.attribute_proto}
        inner = _function_scope(
            function, scope.depth + 1, {**defaults, **call.attributes}, (*scope.callers, key)
        )
        indices = [n for n, item in enumerate(self.model.functions) if item is function]
        inner.trail = (indices[0], ()) if indices else None
        call.opset = f"function {key[0]}"
        call.is_function = True
        missing = len(function.input) - len(call.inputs)
        call.inputs += [""] * missing
        del call.inputs[len(function.input) :]
        self._enter(call, "body", inner)

    def _enter_bodies(self, scope: Scope, call: ScopedNode, number: int | None) -> None:
        """Add the bodies of a Loop, Scan, SequenceMap or If.

        ``number`` is the node's index, by which the typed copies of its bodies are found later. It
        is None if the bodies have types already.
        """
        for attribute, body in BODIES[call.type].items():
            graph = call.attributes.get(attribute)
            if graph is not None and graph.HasField("g"):
                inner = _graph_scope(graph.g, scope, scope.opsets, scope.attributes)
                if number is not None:
                    inner.place = number, attribute
                    if scope.trail is not None:
                        function, path = scope.trail
                        inner.trail = function, (*path, inner.place)
                    inner.views = scope.views.bodies.get(inner.place, NO_VIEWS)
                self._enter(call, body, inner)
        minimum = 2 if call.type == "Loop" else 1
        call.inputs += [""] * (minimum - len(call.inputs))

    def _enter_expanded(self, scope: Scope, call: ScopedNode, version: int) -> None:
        """Add the body of an operation with graphs that is defined by a function, with the graphs
        in it.

        If ONNX does not define such a function, the graphs become bodies that are never run.
        """
        types = [scope.type_of(name) for name in call.inputs]
        # Wait for the inferred types before another request to the worker process.
        _ = self.inferred.graph
        if call.proto.domain == "com.microsoft" and call.type in SEARCHES:
            function = search(call.proto, call.attributes, scope.opsets[_ONNX])
        else:
            function = expand_function(call.proto, call.attributes, version, types)
        if function is None:
            self._enter_foreign(scope, call)
            return
        inner = _function_scope(
            function, scope.depth + 1, {**scope.attributes, **call.attributes}, scope.callers
        )
        # The graphs capture names of the scopes around them, and use their opsets.
        inner.parent = scope
        inner.opsets = {
            domain: version
            for domain, version in scope.opsets.items()
            if domain not in (GRAPH_DOMAIN, SEARCH_DOMAIN)
        }
        while call.outputs and not call.outputs[-1]:
            call.outputs.pop()
        call.opset = f"function {_domain(call.proto.domain)}"
        call.is_function = True
        self._enter(call, "body", inner)

    def _enter_graph(self, scope: Scope, call: ScopedNode) -> None:
        """Add the graph as the body of a function: the node passes its inputs to the graph."""
        inner = _graph_scope(call.attributes["graph"].g, scope, scope.opsets, scope.attributes)
        call.opset, call.is_function = f"function {GRAPH_DOMAIN}", True
        call.inputs += [""] * (len(inner.inputs) - len(call.inputs))
        self._enter(call, "body", inner)

    def _enter_foreign(self, scope: Scope, call: ScopedNode) -> None:
        """Add every graph as a body that is named like its attribute; the opset says that it is not
        run.
        """
        call.opset += FOREIGN
        call.is_foreign = True
        for attribute in call.attributes.values():
            several = [
                graph for graph in attribute.graphs if attribute.type == AttributeProto.GRAPHS
            ]
            names = (
                [attribute.name]
                if not several
                else [f"{attribute.name}_{number}" for number in range(len(several))]
            )
            graphs = several or (
                [attribute.g]
                if attribute.type == AttributeProto.GRAPH and attribute.HasField("g")
                else []
            )
            for name, graph in zip(names, graphs, strict=False):
                body = _unused(
                    ForeignBody(encode(name) or "graph"),
                    [name_in_use for name_in_use, _ in call.inner],
                )
                self._enter(call, body, _graph_scope(graph, scope, scope.opsets, scope.attributes))

    def _enter(self, call: ScopedNode, body: BodyName, inner: Scope) -> None:
        call.inner = (*call.inner, (body, inner))
        self.scopes.append(inner)

    def _check_texts(self, texts: Sequence[Any]) -> None:
        """Raise ``ReadError`` for a name that is too long or not UTF-8.

        protobuf returns bytes for a string that is not UTF-8.
        """
        try:
            joined = "".join(texts)  # TypeError: one of the texts is bytes
            if len(joined) <= self.limits.name or max(map(len, texts)) <= self.limits.name:
                return
        except TypeError:
            pass
        for text in texts:
            if isinstance(text, bytes):
                raise self._refused(f"the name {text[:40]!r} is not text in UTF-8")
            if len(text) > self.limits.name:
                name = shorten(text, 40)
                raise self._refused(
                    f"a name has {len(text)} characters ({name!r}),"
                    f" more than the limit 'name' of {self.limits.name}"
                )

    def _refused(self, message: str) -> ReadError:
        return ReadError(message, Where(self.file))


_ONNX = "ai.onnx"
_NAME, _OPERATION, _DOMAIN, _INPUTS, _OUTPUTS, _TYPE = map(
    attrgetter, ("name", "op_type", "domain", "input", "output", "type")
)
_VALUES = methodcaller("values")
_GRAPHS = frozenset((int(AttributeProto.GRAPH), int(AttributeProto.GRAPHS)))


def _has_graphs(attributes: AttributeMap) -> bool:
    return not _GRAPHS.isdisjoint([attribute.type for attribute in attributes.values()])


def _unused(name: ForeignBody, used_names: Sequence[str]) -> ForeignBody:
    """Return ``name``, with a number appended if it is in ``used_names``."""
    number, candidate = 1, name
    while candidate in used_names:
        number, candidate = number + 1, ForeignBody(f"{name}_{number + 1}")
    return candidate


def _domain(domain: str) -> str:
    return domain or _ONNX


def _opsets(imports: Iterable[object]) -> dict[str, int]:
    opsets = {
        _domain(getattr(item, "domain", "")): int(getattr(item, "version", 0)) for item in imports
    }
    opsets.setdefault(_ONNX, 1)
    return opsets


def _with_version(domain: str, opsets: Mapping[str, int]) -> str:
    return f"{domain} {opsets[domain]}" if domain in opsets else domain


def _typed_node(scope: Scope, number: int, node: NodeProto) -> NodeProto:
    """Return the node with the inferred types in its bodies, or the node itself if they are
    unknown.
    """
    return node_of(scope.typed(), number) or node


def _graph_scope(
    graph: GraphProto, parent: Scope | None, opsets: Mapping[str, int], attributes: AttributeMap
) -> Scope:
    initializers = {
        *(value.name for value in graph.initializer[:]),
        *(value.values.name for value in graph.sparse_initializer[:]),
    }
    # Files of IR version 3 list every initializer among the inputs.
    inputs = [value.name for value in graph.input[:] if value.name not in initializers]
    depth, callers = (parent.depth + 1, parent.callers) if parent else (0, ())
    outputs = [value.name for value in graph.output[:]]
    return Scope(graph.name, inputs, outputs, graph, parent, depth, opsets, attributes, callers)


def _function_scope(
    function: FunctionProto, depth: int, attributes: AttributeMap, callers: tuple[FunctionKey, ...]
) -> Scope:
    opsets = _opsets(function.opset_import)
    return Scope(
        function.name,
        list(function.input),
        list(function.output),
        function,
        None,
        depth,
        opsets,
        attributes,
        callers,
    )


def _find_captures(scope: Scope) -> None:
    """Set a scope's captures: names used in it but defined around it. Inner scopes are already
    done.
    """
    columns = scope.columns
    for call in columns.within.values():
        call.inputs += dict.fromkeys(
            chain.from_iterable([inner.captures for _, inner in call.inner])
        )
    if scope.parent is None:
        return
    local = {*scope.inputs, *scope.initializers, "", *chain.from_iterable(columns.outputs)}
    used = chain(chain.from_iterable(columns.inputs), scope.outputs)
    scope.captures = dict.fromkeys(filterfalse(local.__contains__, used))
