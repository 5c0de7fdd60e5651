"""Rules about names and kinds of values in ONNX files, for which ONNX Runtime 1.32 refuses to open a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from engine.check.diagnostic import Severity
from engine.check.order import dependencies
from engine.check.rule import ONNXRUNTIME, Finding, Rule
from engine.check.subject import Region, Subject
from engine.errors import Where, shorten
from engine.ir.model import LOOP, SCAN, LayerId, Node, Port, Source
from engine.ir.walk import PlacedGraph

_OUTPUT_FORMS: Mapping[str, str] = {
    "SequenceConstruct": "sequence",
    "SequenceEmpty": "sequence",
    "SequenceErase": "sequence",
    "SequenceInsert": "sequence",
    "SplitToSequence": "sequence",
    "SequenceAt": "tensor",
    "ConcatFromSequence": "tensor",
    "SequenceLength": "tensor",
    "OptionalHasElement": "tensor",
    "Constant": "tensor",
    "Const": "tensor",
}
"""The kind of value that an operation gives whatever it takes; an operation that takes tensors only gives tensors."""
_MAY_HIDE = frozenset({"Parameter", "Const"})
"""Inputs and initializers of a body may have the name of a value outside."""
_CONSTANTS = frozenset({"Const", "Constant"})
_TAKES_SEQUENCE = frozenset({"SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength", "ConcatFromSequence"})
_KINDS = {"tensor": "a tensor", "sequence": "a sequence", "map": "a map", "optional": "an optional", "optional sequence": "an optional"}


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
        return [(name, node) for node in nodes for port in node.outputs for name in port.names if name]

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
        """True if a node is in front of another in the file, or feeds it in a file that is not sorted."""
        position, node = maker
        return position < self._holders[holder.id] or node.id in dependencies(self.place.graph, holder.id)

    @cached_property
    def _holders(self) -> Mapping[LayerId, int]:
        return {node.id: position for position, node in enumerate(self.place.graph.nodes) if node.bodies}


def captures(place: PlacedGraph) -> frozenset[LayerId]:
    """Return the Parameters of a body that stand for values of the graphs around it."""
    owner, body = place.owner, place.body
    if owner is None or body is None or owner.is_function:
        return frozenset()
    carried = {edge.to_layer for edge in body.back_edges}
    outer = dict(enumerate(port.names for port in owner.inputs))
    unchanged = [entry for entry in body.inputs if entry.axis is None and entry.internal not in carried]
    by_id = place.graph.by_id
    return frozenset(one.internal for one in unchanged if outer.get(one.external) == (by_id[one.internal].name,))


def _scopes(subject: Subject) -> Iterator[_Scope]:
    """Yield the scopes of an ONNX model, each function at its first call only."""
    if subject.is_openvino:
        return
    holders = {id(node): place for place in subject.places for node in place.graph.nodes if node.bodies}
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
        if scope.outer is not None and node.type not in _MAY_HIDE and (outer := scope.outer_maker(name)):
            yield _made_twice(subject, place, node, name, *outer)


def _made_twice(subject: Subject, place: PlacedGraph, node: Node, name: str, other: PlacedGraph, maker: Node) -> Finding:
    """Describe a name that ``node`` makes after ``maker``."""
    address = f"{other.address}/{other.labels[maker.id]}"
    inner = "the inner value counts inside" if place is not other else "each node reads the last value before it"
    shown = shorten(name, 60)
    verdict = "ONNX Runtime refuses to open the model"
    if place.owner is None and node.type in _CONSTANTS:
        # ONNX Runtime makes initializers of Constant nodes, and allows them twice in the outermost graph.
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
        inputs = {node.id for node in place.graph.parameters} if owner.is_function else scope.captures
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
    return "body" if place.body is None or place.body.name == "body" else f"{place.body.name} branch"


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
            verdict = "ONNX Runtime refuses to open the model" if inside else "ONNX Runtime takes the last one"
            yield Finding(
                Where(subject.model.file, address=place.address),
                f"The initializer {shorten(name, 60)!r} is there {'twice' if count == 2 else f'{count} times'} in this graph: {verdict}.",
                found=f"{count} initializers of the name {shorten(name, 60)!r}",
                expected="one initializer of each name",
                advice="Here the last one counts, and the data of the others is not read; delete the others.",
            )


def tensor_or_container(subject: Subject) -> Iterator[Finding]:
    """A value of an ONNX file is a tensor in one place and a sequence or optional in another.

    What it does:
        Compares the kinds (tensor, sequence, optional) of a carried value when it enters, inside the body and when it comes back, of the
        outputs of both branches of an If, and of declared outputs; and asks that outputs and inputs of a Scan and the collected outputs
        of a Loop are tensors.
    Why it matters:
        A value has one kind in ONNX. ONNX Runtime refuses to open a file in which they differ.
    Example that fails:
        a Loop carries a sequence, and its body gives Add (x, x) back
    Example that passes:
        the body gives SequenceInsert (s, x) back
    """
    if subject.is_openvino:
        return
    for region in subject.regions:
        if region.node.type in (LOOP, SCAN):
            yield from _carried(subject, region)
            yield from _only_tensors(subject, region)
    for place, node in subject.ifs:
        yield from _branches(subject, place, node)
    for place in subject.places:
        if any(_is_of_containers(node) for node in place.graph.nodes):
            for node in place.graph.nodes:
                yield from _declared(subject, place, node) if node.type == "Result" else _operands(subject, place, node)


def _carried(subject: Subject, region: Region) -> Iterator[Finding]:
    outer = region.place.graph.sources.get(region.node.id, ())
    for edge in region.body.back_edges:
        parameter, result = (region.body.graph.by_id.get(layer) for layer in (edge.to_layer, edge.from_layer))
        if parameter is None or result is None:
            continue
        entry = region.entry_of.get(edge.to_layer)
        initial = outer[entry.external] if entry is not None and 0 <= entry.external < len(outer) else None
        kinds = {
            "the initial value": _kind_of(subject, region.place, initial),
            "the input of the body": _declared_kind(parameter.outputs[0]) if parameter.outputs else "",
            "the output of the body": _kind_of_result(subject, region.within, result),
        }
        yield from _apart(subject, region.place, region.node, f"The carried value {shorten(parameter.name, 60)!r}", kinds)


def _branches(subject: Subject, place: PlacedGraph, node: Node) -> Iterator[Finding]:
    first, second = subject.regions_of(node)[:2]
    for number, (one, other) in enumerate(zip(first.body.graph.results, second.body.graph.results, strict=False)):
        kinds = {
            f"the {first.part}": _kind_of_result(subject, first.within, one),
            f"the {second.part}": _kind_of_result(subject, second.within, other),
        }
        yield from _apart(subject, place, node, f"Output {number} of the If", kinds)


def _only_tensors(subject: Subject, region: Region) -> Iterator[Finding]:
    """Find what a Scan takes or gives, and what a Loop collects, that is not a tensor."""
    graph, is_scan = region.body.graph, region.node.type == SCAN
    carried = {edge.from_layer for edge in region.body.back_edges}
    for entry in region.body.outputs:
        result = graph.by_id.get(entry.internal)
        if result is None or (result.id in carried and not is_scan):
            continue
        kind = _kind_of_result(subject, region.within, result)
        if kind not in ("", "tensor") and (entry.axis is not None or is_scan):
            yield Finding(
                subject.where(region.place, region.node),
                f"The body gives {_KINDS[kind]} as {shorten(result.name, 60)!r}, not a tensor: ONNX Runtime refuses to open the model.",
                found=_KINDS[kind],
                expected="a tensor",
                advice="Carry the sequence through a Loop, or give its tensors.",
            )


def _is_of_containers(node: Node) -> bool:
    is_maker = _OUTPUT_FORMS.get(node.type) == "sequence" or node.type in _TAKES_SEQUENCE or node.type == "Optional"
    return is_maker or any(port.form != "tensor" for port in (*node.inputs, *node.outputs))


def _operands(subject: Subject, place: PlacedGraph, node: Node) -> Iterator[Finding]:
    """Find inputs of an operation that are of another kind than the operation takes."""
    operation = None if node.bodies else subject.operation(node)
    takes_tensors = operation is not None and operation.only_tensors
    sources = place.graph.sources.get(node.id, ()) if takes_tensors or node.type in _TAKES_SEQUENCE else ()
    for index, source in enumerate(sources):
        kind = _kind_of(subject, place, source)
        expected = "tensor" if takes_tensors or index else "sequence"
        if kind and kind != expected:
            yield Finding(
                subject.where(place, node, f"input {index}"),
                f"Input {index} is {_KINDS[kind]}, and {node.type} takes {_KINDS[expected]}: ONNX Runtime refuses to open the model.",
                found=_KINDS[kind],
                expected=_KINDS[expected],
                advice="Take the tensor out of it first (SequenceAt, OptionalGetElement), or make the sequence that is expected.",
            )


def _declared(subject: Subject, place: PlacedGraph, result: Node) -> Iterator[Finding]:
    declared = _declared_kind(result.inputs[0]) if result.inputs else ""
    source = next(iter(place.graph.sources.get(result.id, ())), None)
    kinds = {"its declaration": declared, "the node that makes it": _kind_of(subject, place, source)}
    yield from _apart(subject, place, result, f"The output {shorten(result.name, 60)!r}", kinds)


def _apart(subject: Subject, place: PlacedGraph, node: Node, value: str, kinds: Mapping[str, str]) -> Iterator[Finding]:
    known = {where: _KINDS[kind] for where, kind in kinds.items() if kind}
    if len(set(known.values())) < 2:
        return
    (first, one), (second, other) = next((a, b) for a in known.items() for b in known.items() if a[1] != b[1])
    yield Finding(
        subject.where(place, node),
        f"{value} is {one} in {first} and {other} in {second}: ONNX gives a value one kind.",
        found=", ".join(f"{kind} in {where}" for where, kind in known.items()),
        expected="the same kind in all places",
        advice="ONNX Runtime refuses to open most such models; convert one of the values.",
    )


def _kind_of_result(subject: Subject, place: PlacedGraph, result: Node) -> str:
    return _kind_of(subject, place, next(iter(place.graph.sources.get(result.id, ())), None))


def _kind_of(subject: Subject, place: PlacedGraph, source: Source | None) -> str:
    """Return the kind of a value: by its operation where that decides it, else as declared; empty when it is not known."""
    if source is None:
        return ""
    graph = place.graph
    node = graph.by_id[source.layer]
    for _ in graph.nodes:
        if node.type != "Identity" or not (before := graph.sources[node.id][:1]) or before[0] is None:
            break
        source, node = before[0], graph.by_id[before[0].layer]
    if node.type in _OUTPUT_FORMS:
        return _OUTPUT_FORMS[node.type]
    if node.type == "Optional":
        return "optional"
    operation = None if node.bodies else subject.operation(node)
    if operation is not None and operation.only_tensors and node.type not in ("Parameter", "Result"):
        return "tensor"
    return _declared_kind(node.outputs[source.output]) if source.output < len(node.outputs) else ""


def _declared_kind(port: Port) -> str:
    """Return the kind that a port declares; empty where the file says nothing."""
    return "" if port.form == "tensor" and port.element_type is None else port.form


RULES = (
    Rule("LS940", "name-made-twice", Severity.WARNING, name_made_twice, runtimes=ONNXRUNTIME),
    Rule("LS941", "outer-value-given-back", Severity.WARNING, outer_value_given_back, runtimes=ONNXRUNTIME),
    Rule("LS942", "initializer-twice", Severity.WARNING, initializer_twice, runtimes=ONNXRUNTIME),
    Rule("LS943", "tensor-or-container", Severity.WARNING, tensor_or_container, runtimes=ONNXRUNTIME),
)
