"""The rule about kinds of values (tensors, sequences, optionals) in ONNX files for which ONNX
Runtime 1.32 refuses to open a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import ONNXRUNTIME, CheckedRegion, Finding, Rule, Subject
from loopscope.errors import shorten
from loopscope.ir.address import PlacedGraph
from loopscope.ir.model import LOOP, SCAN, Node, OutputRef, Port

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
"""Kind of the output for operations that produce it from any input. Other operations with tensor
inputs only produce tensors.
"""
_TAKES_SEQUENCE = frozenset(
    {"SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength", "ConcatFromSequence"}
)
KINDS = {
    "tensor": "a tensor",
    "sequence": "a sequence",
    "map": "a map",
    "optional": "an optional",
    "optional sequence": "an optional",
}
"""Kind of a value as a noun with its article."""


def tensor_or_container(subject: Subject) -> Iterator[Finding]:
    """A value of an ONNX file is a tensor in one place and a sequence or optional in another.

    What it does:
        Compares the kinds (tensor, sequence, optional) of a carried value: its initial value, the
        input and the output of the body. It also compares the outputs of both branches of an If,
        and declared outputs with their nodes. Inputs and outputs of a Scan, and concatenated
        outputs of a Loop, must be tensors.
    Why it matters:
        A value has one kind in ONNX. ONNX Runtime refuses to open a file with different kinds.
    Example that fails:
        a Loop carries a sequence, and its body returns Add (x, x)
    Example that passes:
        the body returns SequenceInsert (s, x)
    """
    if subject.is_openvino:
        return
    for region in subject.regions:
        if region.node.type in (LOOP, SCAN):
            yield from _carried_kinds(subject, region)
            yield from _non_tensors(subject, region)
    for place, node in subject.ifs:
        yield from _branch_kinds(subject, place, node)
    for place in subject.places:
        if any(_uses_containers(node) for node in place.graph.nodes):
            for node in place.graph.nodes:
                yield from (
                    _declared_kinds(subject, place, node)
                    if node.type == "Result"
                    else _wrong_operands(subject, place, node)
                )


def _carried_kinds(subject: Subject, region: CheckedRegion) -> Iterator[Finding]:
    outer = region.place.graph.sources.get(region.node.id, ())
    for edge in region.body.back_edges:
        parameter, result = (
            region.body.graph.by_id.get(layer) for layer in (edge.to_layer, edge.from_layer)
        )
        if parameter is None or result is None:
            continue
        entry = region.entry_of.get(edge.to_layer)
        initial = (
            outer[entry.external]
            if entry is not None and 0 <= entry.external < len(outer)
            else None
        )
        kinds = {
            "the initial value": _kind_of(subject, region.place, initial),
            "the input of the body": _declared_kind(parameter.outputs[0])
            if parameter.outputs
            else "",
            "the output of the body": _kind_of_result(subject, region.body_place, result),
        }
        yield from _differing_kinds(
            subject,
            region.place,
            region.node,
            f"The carried value {shorten(parameter.name, 60)!r}",
            kinds,
        )


def _branch_kinds(subject: Subject, place: PlacedGraph, node: Node) -> Iterator[Finding]:
    first, second = subject.regions_of(node)[:2]
    for number, (then_result, else_result) in enumerate(
        zip(first.body.graph.results, second.body.graph.results, strict=False)
    ):
        kinds = {
            f"the {first.part}": _kind_of_result(subject, first.body_place, then_result),
            f"the {second.part}": _kind_of_result(subject, second.body_place, else_result),
        }
        yield from _differing_kinds(subject, place, node, f"Output {number} of the If", kinds)


def _non_tensors(subject: Subject, region: CheckedRegion) -> Iterator[Finding]:
    """Yield a finding for each output of a Scan, or concatenated output of a Loop, that is not a
    tensor.
    """
    graph, is_scan = region.body.graph, region.node.type == SCAN
    carried = {edge.from_layer for edge in region.body.back_edges}
    for entry in region.body.outputs:
        result = graph.by_id.get(entry.internal)
        if result is None or (result.id in carried and not is_scan):
            continue
        kind = _kind_of_result(subject, region.body_place, result)
        if kind not in ("", "tensor") and (entry.axis is not None or is_scan):
            yield Finding(
                subject.where(region.place, region.node),
                f"The body returns {KINDS[kind]} as {shorten(result.name, 60)!r}, not a tensor: "
                "ONNX Runtime refuses to open the model.",
                found=KINDS[kind],
                expected="a tensor",
                advice="Carry the sequence through a Loop, or return its tensors.",
            )


def _uses_containers(node: Node) -> bool:
    is_maker = (
        _OUTPUT_FORMS.get(node.type) == "sequence"
        or node.type in _TAKES_SEQUENCE
        or node.type == "Optional"
    )
    return is_maker or any(port.form != "tensor" for port in (*node.inputs, *node.outputs))


def _wrong_operands(subject: Subject, place: PlacedGraph, node: Node) -> Iterator[Finding]:
    """Yield a finding for each input of another kind than the operation expects."""
    operation = None if node.bodies else subject.operation(node)
    takes_tensors = operation is not None and operation.only_tensors
    sources = (
        place.graph.sources.get(node.id, ())
        if takes_tensors or node.type in _TAKES_SEQUENCE
        else ()
    )
    for index, source in enumerate(sources):
        kind = _kind_of(subject, place, source)
        expected = "tensor" if takes_tensors or index else "sequence"
        if kind and kind != expected:
            yield Finding(
                subject.where(place, node, f"input {index}"),
                f"Input {index} is {KINDS[kind]}, but {node.type} expects {KINDS[expected]}: "
                "ONNX Runtime refuses to open the model.",
                found=KINDS[kind],
                expected=KINDS[expected],
                advice="Extract the tensor first (SequenceAt, OptionalGetElement), or build the "
                "expected sequence.",
            )


def _declared_kinds(subject: Subject, place: PlacedGraph, result: Node) -> Iterator[Finding]:
    declared = _declared_kind(result.inputs[0]) if result.inputs else ""
    source = next(iter(place.graph.sources.get(result.id, ())), None)
    kinds = {
        "its declaration": declared,
        "its node": _kind_of(subject, place, source),
    }
    yield from _differing_kinds(
        subject, place, result, f"The output {shorten(result.name, 60)!r}", kinds
    )


def _differing_kinds(
    subject: Subject, place: PlacedGraph, node: Node, value: str, kinds: Mapping[str, str]
) -> Iterator[Finding]:
    known = {where: KINDS[kind] for where, kind in kinds.items() if kind}
    if len(set(known.values())) < 2:
        return
    (first, first_kind), (second, second_kind) = next(
        (left, right) for left in known.items() for right in known.items() if left[1] != right[1]
    )
    yield Finding(
        subject.where(place, node),
        f"{value} is {first_kind} in {first} and {second_kind} in {second}: an ONNX value has one "
        "kind.",
        found=", ".join(f"{kind} in {where}" for where, kind in known.items()),
        expected="the same kind in all places",
        advice="ONNX Runtime refuses to open most such models; convert one of the values.",
    )


def _kind_of_result(subject: Subject, place: PlacedGraph, result: Node) -> str:
    return _kind_of(subject, place, next(iter(place.graph.sources.get(result.id, ())), None))


def _kind_of(subject: Subject, place: PlacedGraph, source: OutputRef | None) -> str:
    """Return the kind of a value: determined by its operation, otherwise as declared; "" if
    unknown.
    """
    if source is None:
        return ""
    graph = place.graph
    node = graph.by_id[source.layer]
    for _ in graph.nodes:
        if (
            node.type != "Identity"
            or not (before := graph.sources[node.id][:1])
            or before[0] is None
        ):
            break
        source, node = before[0], graph.by_id[before[0].layer]
    operation = None if node.bodies else subject.operation(node)
    if (
        operation is not None
        and operation.only_tensors
        and node.type not in ("Parameter", "Result")
    ):
        return "tensor"
    return kind_of_output(node, source.output)


def kind_of_output(node: Node, output: int) -> str:
    """Return the kind of an output: determined by its operation, otherwise as declared; "" if
    unknown.
    """
    if node.type in _OUTPUT_FORMS:
        return _OUTPUT_FORMS[node.type]
    if node.type == "Optional":
        return "optional"
    return _declared_kind(node.outputs[output]) if output < len(node.outputs) else ""


def _declared_kind(port: Port) -> str:
    """Return the declared kind of a port, or "" if the file does not declare it."""
    return "" if port.form == "tensor" and port.element_type is None else port.form


RULES = (
    Rule(
        "LS943", "tensor-or-container", Severity.WARNING, tensor_or_container, runtimes=ONNXRUNTIME
    ),
)
