"""Rules about names in ONNX files for which ONNX Runtime 1.32 refuses to open a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import dependencies
from loopscope.checks.rule import ONNXRUNTIME, Finding, Rule, Subject
from loopscope.errors import Where, shorten
from loopscope.ir.address import PlacedGraph
from loopscope.ir.model import LayerId, Node

_MAY_HIDE = frozenset({"Parameter", "Const"})
"""Types of nodes in a body that may have the name of an outer value: inputs and initializers."""
_CONSTANTS = frozenset({"Const", "Constant"})


@dataclass(frozen=True, eq=False)
class _Scope:
    """The names that one graph of an ONNX file defines."""

    subject: Subject
    place: PlacedGraph
    outer: _Scope | None
    """Scope of the outer graph; None for the outermost graph and for functions, which have a
    separate namespace.
    """

    @cached_property
    def captures(self) -> frozenset[LayerId]:
        return captures(self.place)

    @cached_property
    def names(self) -> list[tuple[str, Node]]:
        """Each defined name with its node, in file order."""
        nodes = [node for node in self.place.graph.nodes if node.id not in self.captures]
        return [
            (name, node) for node in nodes for port in node.outputs for name in port.names if name
        ]

    @cached_property
    def first(self) -> Mapping[str, tuple[int, Node]]:
        """First node that defines each name, with its position among the nodes."""
        positions = {node.id: position for position, node in enumerate(self.place.graph.nodes)}
        return {name: (positions[node.id], node) for name, node in reversed(self.names)}

    def outer_maker(self, name: str) -> tuple[PlacedGraph, Node] | None:
        """Return the outer node that defines a name before the node that contains this graph, or
        None.
        """
        inner, scope = self, self.outer
        while scope is not None:
            maker, holder = scope.first.get(name), inner.place.owner
            if maker is not None and holder is not None and scope.is_before(maker, holder):
                return scope.place, maker[1]
            inner, scope = scope, scope.outer
        return None

    def is_before(self, maker: tuple[int, Node], holder: Node) -> bool:
        """Return True if a node precedes another in the file, or feeds it in an unsorted file."""
        position, node = maker
        return position < self._holders[holder.id] or node.id in dependencies(
            self.place.graph, holder.id
        )

    @cached_property
    def _holders(self) -> Mapping[LayerId, int]:
        return {
            node.id: position for position, node in enumerate(self.place.graph.nodes) if node.bodies
        }


def captures(place: PlacedGraph) -> frozenset[LayerId]:
    """Return the Parameters of a body that represent values of outer graphs."""
    owner, body = place.owner, place.body
    if owner is None or body is None or owner.is_function:
        return frozenset()
    carried = {edge.to_layer for edge in body.back_edges}
    outer = dict(enumerate(port.names for port in owner.inputs))
    unchanged = [
        entry for entry in body.inputs if entry.axis is None and entry.internal not in carried
    ]
    by_id = place.graph.by_id
    return frozenset(
        entry.internal
        for entry in unchanged
        if outer.get(entry.external) == (by_id[entry.internal].name,)
    )


def _scopes(subject: Subject) -> Iterator[_Scope]:
    """Yield the scopes of an ONNX model; a function only at its first call."""
    if subject.is_openvino:
        return
    holders = {
        id(node): place for place in subject.places for node in place.graph.nodes if node.bodies
    }
    scopes: dict[int, _Scope] = {}
    functions: set[tuple[str, str]] = set()
    for place in subject.places:
        owner = place.owner
        if owner is None:
            scope = _Scope(subject, place, None)
        else:
            outer = scopes.get(id(holders[id(owner)].graph))
            key = owner.opset, owner.type
            if outer is None or (owner.is_function and key in functions):
                continue
            if owner.is_function:
                functions.add(key)
            scope = _Scope(subject, place, None if owner.is_function else outer)
        scopes[id(place.graph)] = scope
        yield scope


def name_made_twice(subject: Subject) -> Iterator[Finding]:
    """Two values of an ONNX file have the same name.

    What it does:
        Looks for names that two nodes, inputs or initializers of one graph define. It also looks
        for nodes of a body, branch or function that define a name of an outer graph. Inputs and
        initializers of a body may hide an outer name.
    Why it matters:
        ONNX requires static single assignment, and ONNX Runtime refuses to open such a file.
    Example that fails:
        t = Relu (x) outside, and t = Add (v, v) in the body of a Loop that follows
    Example that passes:
        the same with t_inner = Add (v, v) in the body
    """
    for scope in _scopes(subject):
        yield from _duplicate_names(subject, scope)
        yield from _duplicate_results(subject, scope.place)


def _duplicate_names(subject: Subject, scope: _Scope) -> Iterator[Finding]:
    place, makers = scope.place, scope.names
    in_function = place.owner is not None and place.owner.is_function
    seen: dict[str, Node] = {}
    for name, node in makers:
        if name in seen:
            if not (in_function and node.type == "Parameter"):
                yield _duplicate_finding(subject, place, node, name, place, seen[name])
            continue
        seen[name] = node
        if (
            scope.outer is not None
            and node.type not in _MAY_HIDE
            and (outer := scope.outer_maker(name))
        ):
            yield _duplicate_finding(subject, place, node, name, *outer)


def _duplicate_finding(
    subject: Subject, place: PlacedGraph, node: Node, name: str, other: PlacedGraph, maker: Node
) -> Finding:
    """Return the finding for a name that ``node`` defines after ``maker``."""
    address = f"{other.address}/{other.labels[maker.id]}"
    inner = (
        "the inner value is used inside"
        if place is not other
        else "each node reads the last value before it"
    )
    short_name = shorten(name, 60)
    verdict = "ONNX Runtime refuses to open the model"
    if place.owner is None and node.type in _CONSTANTS:
        # ONNX Runtime converts Constant nodes to initializers, and allows duplicates in the
        # outermost graph.
        opened = {"Parameter": "ONNX Runtime uses the constant as the default of the input"}
        opened |= dict.fromkeys(_CONSTANTS, "ONNX Runtime uses the last one")
        verdict = opened.get(maker.type, verdict)
    return Finding(
        subject.where(place, node),
        f"The name {short_name!r} is defined twice, here and by {address}: {verdict}.",
        found=f"{short_name!r} defined by {address} and by {place.address}/{place.labels[node.id]}",
        expected="a unique name for each value",
        advice=f"In Loopscope {inner}; rename one of the two values.",
    )


def _duplicate_results(subject: Subject, place: PlacedGraph) -> Iterator[Finding]:
    if place.owner is None or not place.owner.is_function:
        return
    seen: set[str] = set()
    for node in place.graph.results:
        if node.name in seen:
            yield Finding(
                subject.where(place, node),
                f"Two outputs of the function are named {shorten(node.name, 60)!r}: ONNX Runtime "
                "refuses to open the model.",
                found="one name for two outputs",
                expected="a unique name for each output",
                advice="In Loopscope both outputs have the same value; insert an Identity before "
                "one of them.",
            )
        seen.add(node.name)


def outer_value_given_back(subject: Subject) -> Iterator[Finding]:
    """A body or branch of an ONNX file returns an outer value unchanged.

    What it does:
        Looks for outputs of Loop, Scan, If and SequenceMap bodies that are a value of an outer
        graph. Outputs of functions that are an input of the function are included.
    Why it matters:
        ONNX Runtime refuses to open a model with a subgraph that returns a value that none of its
        nodes computes.
    Example that fails:
        then_branch = () => (x) where x is an input of the model
    Example that passes:
        the same with y = Identity (x) and => (y)
    """
    for scope in _scopes(subject):
        place = scope.place
        owner = place.owner
        if owner is None or owner.is_foreign:
            continue
        inputs = (
            {node.id for node in place.graph.parameters} if owner.is_function else scope.captures
        )
        for number, result in enumerate(place.graph.results):
            source = next(iter(place.graph.sources.get(result.id, ())), None)
            if source is None or source.layer not in inputs:
                continue
            name = shorten(place.graph.by_id[source.layer].name, 60)
            part = "function" if owner.is_function else _part_name(place)
            value = "its input" if owner.is_function else "the outer value"
            yield Finding(
                subject.where(place, result),
                f"Output {number} of the {part} is {value} {name!r} unchanged: ONNX Runtime "
                "refuses to open the model.",
                found=f"{name} itself",
                expected=f"a node of the {part} between them, such as Identity ({name})",
                advice="In Loopscope the output is that value; for ONNX Runtime insert an "
                "Identity.",
            )


def _part_name(place: PlacedGraph) -> str:
    return (
        "body" if place.body is None or place.body.name == "body" else f"{place.body.name} branch"
    )


def initializer_twice(subject: Subject) -> Iterator[Finding]:
    """A graph of an ONNX file has two initializers with the same name.

    What it does:
        Looks for names that several initializers of one graph, dense or sparse, have.
    Why it matters:
        ONNX Runtime refuses to open a model with such initializers in a body or branch. In the
        outermost graph it uses the last one.
    Example that fails:
        <float[2] w = {1, 2}, float[2] w = {1, 2}> in the body of a Loop
    Example that passes:
        the same initializer written once
    """
    for scope in _scopes(subject):
        place = scope.place
        for name in dict.fromkeys(place.graph.replaced_initializers):
            count = place.graph.replaced_initializers.count(name) + 1
            inside = place.owner is not None
            verdict = (
                "ONNX Runtime refuses to open the model"
                if inside
                else "ONNX Runtime uses the last one"
            )
            yield Finding(
                Where(subject.model.file, address=place.address),
                f"The initializer {shorten(name, 60)!r} occurs "
                f"{'twice' if count == 2 else f'{count} times'} in this graph: {verdict}.",
                found=f"{count} initializers named {shorten(name, 60)!r}",
                expected="one initializer per name",
                advice="Loopscope uses the last one and does not read the others; delete them.",
            )


RULES = (
    Rule("LS940", "name-made-twice", Severity.WARNING, name_made_twice, runtimes=ONNXRUNTIME),
    Rule(
        "LS941",
        "outer-value-given-back",
        Severity.WARNING,
        outer_value_given_back,
        runtimes=ONNXRUNTIME,
    ),
    Rule("LS942", "initializer-twice", Severity.WARNING, initializer_twice, runtimes=ONNXRUNTIME),
)
