"""Rules about names in ONNX files, for which ONNX Runtime 1.32 refuses to open a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import dependencies
from loopscope.checks.rule import ONNXRUNTIME, Finding, Rule
from loopscope.checks.subject import Subject
from loopscope.errors import Where, shorten
from loopscope.ir.model import LayerId, Node
from loopscope.ir.walk import PlacedGraph

_MAY_HIDE = frozenset({"Parameter", "Const"})
"""Inputs and initializers of a body may have the name of a value outside."""
_CONSTANTS = frozenset({"Const", "Constant"})


@dataclass(frozen=True, eq=False)
class _Scope:
    """The names that one graph of an ONNX file makes."""

    subject: Subject
    place: PlacedGraph
    outer: _Scope | None
    """None for the outermost graph and for functions, whose names are their own."""

    @cached_property
    def captures(self) -> frozenset[LayerId]:
        return captures(self.place)

    @cached_property
    def names(self) -> list[tuple[str, Node]]:
        """Every name with the node that makes it, in the order of the file."""
        nodes = [node for node in self.place.graph.nodes if node.id not in self.captures]
        return [
            (name, node) for node in nodes for port in node.outputs for name in port.names if name
        ]

    @cached_property
    def first(self) -> Mapping[str, tuple[int, Node]]:
        """The first maker of each name, with its position among the nodes."""
        positions = {node.id: position for position, node in enumerate(self.place.graph.nodes)}
        return {name: (positions[node.id], node) for name, node in reversed(self.names)}

    def outer_maker(self, name: str) -> tuple[PlacedGraph, Node] | None:
        """The node of a graph around that makes a name before the node that holds this graph."""
        inner, scope = self, self.outer
        while scope is not None:
            maker, holder = scope.first.get(name), inner.place.owner
            if maker is not None and holder is not None and scope.is_before(maker, holder):
                return scope.place, maker[1]
            inner, scope = scope, scope.outer
        return None

    def is_before(self, maker: tuple[int, Node], holder: Node) -> bool:
        """True if a node is in front of another in the file, or feeds it in a file that is not
        sorted.
        """
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
    """Return the Parameters of a body that stand for values of the graphs around it."""
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
        one.internal for one in unchanged if outer.get(one.external) == (by_id[one.internal].name,)
    )


def _scopes(subject: Subject) -> Iterator[_Scope]:
    """Yield the scopes of an ONNX model, each function at its first call only."""
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
    """Two places of an ONNX file make a value of the same name.

    What it does:
        Looks for names that two nodes, inputs or initializers of one graph make, and for nodes of a body, branch or function that make a
        name which a graph around them makes before. Inputs and initializers of a body may hide a name from outside.
    Why it matters:
        ONNX requires static single assignment, and ONNX Runtime refuses to open such a file.
    Example that fails:
        t = Relu (x) outside, and t = Add (v, v) in the body of a Loop that follows
    Example that passes:
        the same with t_inner = Add (v, v) in the body
    """
    for scope in _scopes(subject):
        yield from _made_here(subject, scope)
        yield from _results_of_function(subject, scope.place)


def _made_here(subject: Subject, scope: _Scope) -> Iterator[Finding]:
    place, makers = scope.place, scope.names
    in_function = place.owner is not None and place.owner.is_function
    seen: dict[str, Node] = {}
    for name, node in makers:
        if name in seen:
            if not (in_function and node.type == "Parameter"):
                yield _made_twice(subject, place, node, name, place, seen[name])
            continue
        seen[name] = node
        if (
            scope.outer is not None
            and node.type not in _MAY_HIDE
            and (outer := scope.outer_maker(name))
        ):
            yield _made_twice(subject, place, node, name, *outer)


def _made_twice(
    subject: Subject, place: PlacedGraph, node: Node, name: str, other: PlacedGraph, maker: Node
) -> Finding:
    """Describe a name that ``node`` makes after ``maker``."""
    address = f"{other.address}/{other.labels[maker.id]}"
    inner = (
        "the inner value counts inside"
        if place is not other
        else "each node reads the last value before it"
    )
    shown = shorten(name, 60)
    verdict = "ONNX Runtime refuses to open the model"
    if place.owner is None and node.type in _CONSTANTS:
        # ONNX Runtime makes initializers of Constant nodes, and allows them twice in the outermost
        # graph.
        opened = {"Parameter": "ONNX Runtime takes the constant for the default of the input"}
        opened |= dict.fromkeys(_CONSTANTS, "ONNX Runtime takes the last one")
        verdict = opened.get(maker.type, verdict)
    return Finding(
        subject.where(place, node),
        f"The name {shown!r} is made twice, here and by {address}: {verdict}.",
        found=f"{shown!r} made by {address} and by {place.address}/{place.labels[node.id]}",
        expected="a name of its own for each value",
        advice=f"Here {inner}; rename one of the two values.",
    )


def _results_of_function(subject: Subject, place: PlacedGraph) -> Iterator[Finding]:
    if place.owner is None or not place.owner.is_function:
        return
    seen: set[str] = set()
    for node in place.graph.results:
        if node.name in seen:
            yield Finding(
                subject.where(place, node),
                f"Two outputs of the function have the name {shorten(node.name, 60)!r}: ONNX Runtime refuses to open the model.",
                found="one name for two outputs",
                expected="a name of its own for each output",
                advice="Here both outputs are the same value; put an Identity before one of them.",
            )
        seen.add(node.name)


def outer_value_given_back(subject: Subject) -> Iterator[Finding]:
    """A body or branch of an ONNX file gives a value from outside as it is.

    What it does:
        Looks for outputs of Loop, Scan, If and SequenceMap bodies that are a value of a graph around them, and for outputs of functions
        that are an input of the function.
    Why it matters:
        ONNX Runtime refuses to open a model whose subgraph returns a value that no node of the subgraph makes.
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
            part = "function" if owner.is_function else _part(place)
            value = "its input" if owner.is_function else "the outer value"
            yield Finding(
                subject.where(place, result),
                f"Output {number} of the {part} is {value} {name!r} as it is: ONNX Runtime refuses to open the model.",
                found=f"{name} itself",
                expected=f"a node of the {part} in between, such as Identity ({name})",
                advice="Here the output is that value; for ONNX Runtime put an Identity in between.",
            )


def _part(place: PlacedGraph) -> str:
    return (
        "body" if place.body is None or place.body.name == "body" else f"{place.body.name} branch"
    )


def initializer_twice(subject: Subject) -> Iterator[Finding]:
    """A graph of an ONNX file has two initializers of the same name.

    What it does:
        Looks for names that the initializers of one graph, dense or sparse, have more than once.
    Why it matters:
        ONNX Runtime refuses to open a model that has them in a body or branch. In the outermost graph it takes the last one.
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
                else "ONNX Runtime takes the last one"
            )
            yield Finding(
                Where(subject.model.file, address=place.address),
                f"The initializer {shorten(name, 60)!r} is there {'twice' if count == 2 else f'{count} times'} in this graph: {verdict}.",
                found=f"{count} initializers of the name {shorten(name, 60)!r}",
                expected="one initializer of each name",
                advice="Here the last one counts, and the data of the others is not read; delete the others.",
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
