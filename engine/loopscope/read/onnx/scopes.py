"""The graphs of an ONNX model as scopes: what each defines, which functions it calls, and what
it takes from the scopes around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, filterfalse
from operator import attrgetter, getitem, methodcaller
from typing import cast

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from loopscope.errors import ReadError, Where, shorten
from loopscope.ir.address import encode
from loopscope.ir.model import FOREIGN, BodyName, ForeignBody
from loopscope.read.file_limits import ReadLimits
from loopscope.read.onnx.attributes import WHOLE, Given, given, given_of
from loopscope.read.onnx.batched import functions, is_batched, with_loop_over_batch
from loopscope.read.onnx.expand_functions import written_out
from loopscope.read.onnx.inference import Inferred
from loopscope.read.onnx.scope import Calls, FunctionKey, Scope, ScopedNode, node_of
from loopscope.read.onnx.searches import GRAPHS, OURS, SEARCHES, search
from loopscope.read.onnx.split_weights import NOTHING, Held

BODIES: Mapping[str, Mapping[str, BodyName]] = {
    "Loop": {"body": "body"},
    "Scan": {"body": "body"},
    "SequenceMap": {"body": "body"},
    "If": {"then_branch": "then", "else_branch": "else"},
}
"""The operations with graphs that run: attribute to body name."""


@dataclass(slots=True, eq=False)
class Survey:
    """All scopes of a model, an outer one before those inside it."""

    model: ModelProto
    file: str
    limits: ReadLimits
    inferred: Inferred
    held: Held = NOTHING
    """Of large tensors the data, which was not parsed."""
    scopes: list[Scope] = field(default_factory=list[Scope])
    nodes: int = 0
    functions: dict[FunctionKey, FunctionProto] = field(
        default_factory=dict[FunctionKey, FunctionProto]
    )
    unlike_others: set[str] = field(default_factory=set[str])
    """What operations that have scopes inside are called, but for those whose attributes say so."""

    def read(self) -> Sequence[Scope]:
        """``ReadError`` for functions that call themselves, and for models beyond the limits."""
        for function in self.model.functions:
            self._check_texts(
                (function.name, function.domain, function.overload, *function.attribute)
            )
        self.functions = {
            (_domain(one.domain), one.name, one.overload): one
            for one in (*self.model.functions, *functions())
        }
        self.unlike_others = {*BODIES, *(name for _, name, _ in self.functions)}
        outermost = _graph_scope(self.model.graph, None, _opsets(self.model.opset_import), {})
        outermost.held, outermost.inferred = self.held, self.inferred
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
        nodes = scope.proto.node[:]  # a slice: four times as fast as list(), here and below
        self.nodes += len(nodes)
        if self.nodes > self.limits.nodes:
            raise self._refused(
                f"the model has more nodes than {self.limits.nodes:,}, the limit 'nodes' (functions count where called)"
            )
        own = (scope.name, *scope.inputs, *scope.outputs, *scope.initializers)
        names, types, domains = ([*map(column, nodes)] for column in (_NAME, _OPERATION, _DOMAIN))
        inputs, outputs = (
            cast("list[list[str]]", [*map(getitem, map(column, nodes), WHOLE)])
            for column in (_INPUTS, _OUTPUTS)
        )
        attributes = given_of(nodes, scope.attributes)
        self._check_texts(
            [*own, *names, *types, *domains, *chain(*inputs), *chain(*outputs), *chain(*attributes)]
        )
        opsets = [
            *map(
                {one: _with_version(_domain(one), scope.opsets) for one in {*domains}}.__getitem__,
                domains,
            )
        ]
        scope.calls = calls = Calls(names, types, opsets, inputs, outputs, attributes)
        for number in self._with_scopes(types, attributes):
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
            calls.within[number] = call
            opsets[number], inputs[number], attributes[number] = call.opset, call.inputs, call.given

    def _with_scopes(self, types: Sequence[str], attributes: Sequence[Given]) -> Iterable[int]:
        """The numbers of the nodes that may have scopes inside them."""
        numbers: set[int] = set()
        if not self.unlike_others.isdisjoint(types):
            numbers.update(
                number for number, kind in enumerate(types) if kind in self.unlike_others
            )
        if not _GRAPHS.isdisjoint(
            map(_TYPE, chain.from_iterable(map(_VALUES, filter(None, attributes))))
        ):
            numbers.update(
                number for number, found in enumerate(attributes) if found and _has_graphs(found)
            )
        return sorted(numbers)

    def _enter_all(self, scope: Scope, number: int, call: ScopedNode, domain: str) -> None:
        """The scopes inside a node, where its operation is a function or has graphs."""
        node, kind, attributes = call.proto, call.type, call.given
        version = scope.opsets.get(domain, 0)
        self._check_texts((node.overload,))
        key = (domain, kind, node.overload)
        if key in self.functions:
            self._enter_function(scope, call, key)
        elif kind in BODIES and domain == _ONNX:
            batched = is_batched(node, version, attributes)
            if batched:
                typed = _typed_node(scope, number, node)
                try:
                    call.proto = with_loop_over_batch(
                        typed, given(typed.attribute, scope.attributes)
                    )
                except ValueError as error:
                    raise self._refused(
                        f"node {shorten(call.name or kind, 60)!r}: {error}"
                    ) from error
                call.inputs = list(call.proto.input)
                call.given = given(call.proto.attribute, scope.attributes)
            self._enter_bodies(scope, call, None if batched else number)
        elif (
            domain == GRAPHS
            and "graph" in attributes
            and attributes["graph"].type == AttributeProto.GRAPH
        ):
            self._enter_graph(scope, call)
        elif _has_graphs(attributes):
            self._enter_written_out(scope, call, version)
        call.captures_from = len(call.inputs)

    def _enter_function(self, scope: Scope, call: ScopedNode, key: FunctionKey) -> None:
        if key in scope.callers:
            raise self._refused(f"function {shorten(key[1], 60)!r} calls itself")
        function = self.functions[key]
        defaults = {one.name: one for one in function.attribute_proto}
        inner = _function_scope(
            function, scope.depth + 1, {**defaults, **call.given}, (*scope.callers, key)
        )
        call.opset = f"function {key[0]}"
        call.is_function = True
        missing = len(function.input) - len(call.inputs)
        call.inputs += [""] * missing
        del call.inputs[len(function.input) :]
        self._enter(call, "body", inner)

    def _enter_bodies(self, scope: Scope, call: ScopedNode, number: int | None) -> None:
        """``number``: that of the node, by which its bodies are found again among those with
        types; None where they have them already.
        """
        for attribute, body in BODIES[call.type].items():
            found = call.given.get(attribute)
            if found is not None and found.HasField("g"):
                inner = _graph_scope(found.g, scope, scope.opsets, scope.attributes)
                if number is not None:
                    inner.place = number, attribute
                    inner.held = scope.held.bodies.get(inner.place, NOTHING)
                self._enter(call, body, inner)
        least = 2 if call.type == "Loop" else 1
        call.inputs += [""] * (least - len(call.inputs))

    def _enter_written_out(self, scope: Scope, call: ScopedNode, version: int) -> None:
        """As a function, with the graphs written into it; where ONNX has none, nothing would run
        its graphs: they are there to be read.
        """
        types = [scope.type_of(name) for name in call.inputs]
        _ = self.inferred.graph  # before anything else is asked of another process
        if call.proto.domain == "com.microsoft" and call.type in SEARCHES:
            function = search(call.proto, call.given, scope.opsets[_ONNX])
        else:
            function = written_out(call.proto, call.given, version, types)
        if function is None:
            self._enter_foreign(scope, call)
            return
        inner = _function_scope(
            function, scope.depth + 1, {**scope.attributes, **call.given}, scope.callers
        )
        # What the graphs capture, and the operations that they mean, are those around them.
        inner.parent = scope
        inner.opsets = {
            domain: version
            for domain, version in scope.opsets.items()
            if domain not in (GRAPHS, OURS)
        }
        while call.outputs and not call.outputs[-1]:
            call.outputs.pop()
        call.opset = f"function {_domain(call.proto.domain)}"
        call.is_function = True
        self._enter(call, "body", inner)

    def _enter_graph(self, scope: Scope, call: ScopedNode) -> None:
        """As a function: the node hands its inputs to the graph."""
        inner = _graph_scope(call.given["graph"].g, scope, scope.opsets, scope.attributes)
        call.opset, call.is_function = f"function {GRAPHS}", True
        call.inputs += [""] * (len(inner.inputs) - len(call.inputs))
        self._enter(call, "body", inner)

    def _enter_foreign(self, scope: Scope, call: ScopedNode) -> None:
        """Every graph as a body that is called like its attribute; the opset says that it is not
        run.
        """
        call.opset += FOREIGN
        call.is_foreign = True
        for attribute in call.given.values():
            several = [
                graph for graph in attribute.graphs if attribute.type == AttributeProto.GRAPHS
            ]
            names = (
                [attribute.name]
                if not several
                else [f"{attribute.name}_{number}" for number in range(len(several))]
            )
            held = several or (
                [attribute.g]
                if attribute.type == AttributeProto.GRAPH and attribute.HasField("g")
                else []
            )
            for name, graph in zip(names, held, strict=False):
                body = _unused(
                    ForeignBody(encode(name) or "graph"), [taken for taken, _ in call.inner]
                )
                self._enter(call, body, _graph_scope(graph, scope, scope.opsets, scope.attributes))

    def _enter(self, call: ScopedNode, body: BodyName, inner: Scope) -> None:
        call.inner = (*call.inner, (body, inner))
        self.scopes.append(inner)

    def _check_texts(self, texts: Sequence[str | bytes]) -> None:
        try:
            joined = "".join(texts)  # type: ignore[arg-type]  # bytes among them are what is looked for
            if len(joined) <= self.limits.name or max(map(len, texts)) <= self.limits.name:
                return
        except TypeError:
            pass
        for text in texts:
            # The protobuf package gives bytes where it cannot decode.
            if isinstance(text, bytes):
                raise self._refused(f"the name {text[:40]!r} is not text in UTF-8")
            if len(text) > self.limits.name:
                name = shorten(text, 40)
                raise self._refused(
                    f"a name has {len(text)} characters ({name!r}), more than the limit 'name' of {self.limits.name}"
                )

    def _refused(self, message: str) -> ReadError:
        return ReadError(message, Where(self.file))


_ONNX = "ai.onnx"
_NAME, _OPERATION, _DOMAIN, _INPUTS, _OUTPUTS, _TYPE = map(
    attrgetter, ("name", "op_type", "domain", "input", "output", "type")
)
_VALUES = methodcaller("values")
_GRAPHS = frozenset((int(AttributeProto.GRAPH), int(AttributeProto.GRAPHS)))


def _has_graphs(attributes: Given) -> bool:
    return not _GRAPHS.isdisjoint([one.type for one in attributes.values()])


def _unused(name: ForeignBody, taken: Sequence[str]) -> ForeignBody:
    """The name, or with a number behind it where another body has it."""
    number, found = 1, name
    while found in taken:
        number, found = number + 1, ForeignBody(f"{name}_{number + 1}")
    return found


def _domain(domain: str) -> str:
    return domain or _ONNX


def _opsets(imports: Iterable[object]) -> dict[str, int]:
    opsets = {
        _domain(getattr(one, "domain", "")): int(getattr(one, "version", 0)) for one in imports
    }
    opsets.setdefault(_ONNX, 1)
    return opsets


def _with_version(domain: str, opsets: Mapping[str, int]) -> str:
    return f"{domain} {opsets[domain]}" if domain in opsets else domain


def _typed_node(scope: Scope, number: int, node: NodeProto) -> NodeProto:
    """A node of a graph with the types in its bodies, as far as they were inferred."""
    return node_of(scope.typed(), number) or node


def _graph_scope(
    graph: GraphProto, parent: Scope | None, opsets: Mapping[str, int], attributes: Given
) -> Scope:
    initializers = {
        *(one.name for one in graph.initializer[:]),
        *(one.values.name for one in graph.sparse_initializer[:]),
    }
    # Files of IR version 3 list every initializer among the inputs.
    inputs = [one.name for one in graph.input[:] if one.name not in initializers]
    depth, callers = (parent.depth + 1, parent.callers) if parent else (0, ())
    outputs = [one.name for one in graph.output[:]]
    return Scope(graph.name, inputs, outputs, graph, parent, depth, opsets, attributes, callers)


def _function_scope(
    function: FunctionProto, depth: int, attributes: Given, callers: tuple[FunctionKey, ...]
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
    """What a scope takes from those around it; the scopes inside it are done already."""
    calls = scope.calls
    for call in calls.within.values():
        call.inputs += dict.fromkeys(
            chain.from_iterable([inner.captures for _, inner in call.inner])
        )
    if scope.parent is None:
        return
    local = {*scope.inputs, *scope.initializers, "", *chain.from_iterable(calls.outputs)}
    used = chain(chain.from_iterable(calls.inputs), scope.outputs)
    scope.captures = dict.fromkeys(filterfalse(local.__contains__, used))
