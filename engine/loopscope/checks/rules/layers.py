"""Rules about layers: unknown operations, inputs and outputs, attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import Finding, Rule, Subject
from loopscope.errors import listed, shorten
from loopscope.ir.address import PlacedGraph
from loopscope.ir.model import IF, LOOP, SCAN, SEQUENCE_MAP, TENSOR_ITERATOR, Node
from loopscope.ops.declare import REQUIRED, AttributeProblem, Role, typed

_MAX_PLACES = 5


def unknown_operation(subject: Subject) -> Iterator[Finding]:
    """Loopscope does not support an operation type of the model.

    What it does:
        Looks up the type of every layer in the catalogue. One diagnostic per unknown type lists its
        layers.
    Why it matters:
        The computation of these layers is unknown. The model opens and can be drawn, but it cannot
        be run.
    Example that fails:
        <layer type="Addd" version="opset1" .../>
    Example that passes:
        <layer type="Add" version="opset1" .../>
    """
    unknown: dict[str, list[tuple[PlacedGraph, Node]]] = {}
    for place, node in subject.nodes():
        if subject.operation(node) is None and not subject.catalogue.elsewhere(
            node.type, node.opset
        ):
            unknown.setdefault(node.type, []).append((place, node))
    total = sum(len(layers) for layers in unknown.values())
    for type, layers in unknown.items():
        addresses = [subject.where(*layer).address for layer in layers[:_MAX_PLACES]]
        more = f" and {len(layers) - _MAX_PLACES} more" if len(layers) > _MAX_PLACES else ""
        total_words = (
            f"{total} layer{'s' if total > 1 else ''} of {len(unknown)} "
            f"type{'s' if len(unknown) > 1 else ''}"
        )
        state = "can be drawn but not run" if _is_search(layers[0][1]) else "is unknown"
        yield Finding(
            subject.where(*layers[0]),
            f"Operation {shorten(type, 60)!r} ({shorten(layers[0][1].opset, 40)}) {state}; "
            f"the model has {total_words} that cannot be run: {listed(list(unknown))}.",
            found=f"{len(layers)} layer{'s' if len(layers) > 1 else ''}: "
            f"{', '.join(shorten(address) for address in addresses)}{more}",
            expected="an operation of opset1 to opset17"
            if subject.is_openvino
            else "an operation that Loopscope knows",
            advice=_advice(layers[0][1]),
        )


def _advice(node: Node) -> str:
    if not node.opset.startswith("com.microsoft"):
        return (
            "Check the spelling. Add a custom operation with --ops FILE.py, or in Python with "
            "loopscope.ops.install."
        )
    if node.opset.startswith("com.microsoft.nchwc"):
        return _LAYOUT_ADVICE
    return _SEARCH_ADVICE if _is_search(node) else _FUSED_ADVICE


def _is_search(node: Node) -> bool:
    return node.opset.startswith("com.microsoft ") and node.type in _SEARCHES


_LAYOUT_ADVICE = (
    "ONNX Runtime changed the data layout for one kind of processor: optimize the model again "
    "with ORT_ENABLE_EXTENDED instead of ORT_ENABLE_ALL, or open the original model."
)


_SEARCHES = ("GreedySearch", "BeamSearch", "Sampling", "WhisperBeamSearch")
_SEARCH_ADVICE = (
    "Loopscope runs ONNX Runtime's searches over a single decoder (model_type 0, caches with a "
    "known number of heads as inputs 3 and up), BeamSearch over T5's encoder and decoder "
    "(model_type 1), and WhisperBeamSearch without outputs cross_qk and non_speech_probs, with "
    "ONNX opset 11 or later and without a presence penalty: export the graphs separately, or the "
    "model with one of these searches."
)


_FUSED_ADVICE = (
    "This operation belongs to ONNX Runtime and is not supported (loopscope ops com.microsoft "
    "lists the supported ones). If ONNX Runtime optimized the model, open the original model; if "
    "an exporter wrote the operation, export it with ONNX's own, or add a custom operation with "
    "--ops FILE.py."
)


def operation_not_in_opset(subject: Subject) -> Iterator[Finding]:
    """An operation exists, but not in the opset that the layer declares.

    What it does:
        Looks for layers whose type exists only in other opsets.
    Why it matters:
        The opset determines the version of an operation. OpenVINO refuses such a file.
    Example that fails:
        <layer type="Loop" version="opset1" .../>
    Example that passes:
        <layer type="Loop" version="opset5" .../>
    """
    for place, node in subject.nodes():
        versions = (
            subject.catalogue.elsewhere(node.type, node.opset)
            if subject.operation(node) is None
            else ()
        )
        if versions:
            ranges = [
                f"{version.title} in opset{version.opsets[0]} to opset{version.opsets[1]}"
                if subject.is_openvino
                else f"{version.title} from opset {version.version} on"
                for version in versions
            ]
            yield Finding(
                subject.where(place, node),
                f"{shorten(node.opset, 40)!r} does not have the operation "
                f"{shorten(node.type, 60)!r}.",
                found=f"version {shorten(node.opset, 40)!r}",
                expected="; ".join(ranges[:8]),
                advice="Correct the version of the layer."
                if subject.is_openvino
                else "Correct the opset that the model imports.",
            )


def bad_attribute(subject: Subject) -> Iterator[Finding]:
    """An attribute is missing or has an invalid value.

    What it does:
        Parses every attribute of every layer as its operation declares it.
    Why it matters:
        The operation cannot be computed without a valid attribute.
    Example that fails:
        <data auto_broadcast="bogus"/> in an Add
    Example that passes:
        <data auto_broadcast="numpy"/>
    """
    bodies = {
        region.body_place.address for region in subject.regions if region.node.type in (IF, LOOP)
    }
    for place, node in subject.nodes():
        operation = subject.operation(node)
        # The value of an ONNX Constant is in the node itself.
        if (
            operation is None
            or not operation.attributes
            or (node.constant is not None and not subject.is_openvino)
        ):
            continue
        if operation.role in (Role.PARAMETER, Role.CONSTANT) and _is_typed_by_port(node):
            continue
        # The input of a body determines the type: OpenVINO writes "dynamic", and in If and Loop it
        # also reads a Parameter without a type.
        default_type = "dynamic" if place.address in bodies else None
        if operation.role is Role.PARAMETER and node.attributes.get(
            "element_type", default_type
        ) in (
            "dynamic",
            "undefined",
        ):
            continue
        try:
            typed(operation, node.attributes)
        except AttributeProblem as problem:
            yield Finding(
                subject.where(place, node),
                f"{str(problem)[:1].upper()}{str(problem)[1:]}.",
                found=_attributes_xml(node),
                expected=", ".join(
                    attribute.name + (" (required)" if attribute.default is REQUIRED else "")
                    for attribute in operation.attributes[:20]
                ),
                advice=f"Correct <data> of the layer; see the specification of {operation.title}."
                if subject.is_openvino
                else "",
            )


def _is_typed_by_port(node: Node) -> bool:
    """Return True if the port declares the type of a Parameter or Const. Models built in Python
    declare it only there.
    """
    return node.constant is not None or (
        "element_type" not in node.attributes
        and bool(node.outputs)
        and node.outputs[0].element_type is not None
    )


def _attributes_xml(node: Node) -> str:
    return (
        shorten(
            " ".join(
                f'{name}="{shorten(str(text), 40)}"'
                for name, text in list(node.attributes.items())[:20]
            )
        )
        or "no attributes"
    )


def unknown_attribute(subject: Subject) -> Iterator[Finding]:
    """A layer has an attribute that its operation does not define.

    What it does:
        Compares the attribute names of each layer with those of its operation, for OpenVINO and for
        the domains of ONNX itself.
    Why it matters:
        The attribute may be misspelled, or belong to another opset, where it changes the result.
        OpenVINO and Loopscope ignore it. ONNX Runtime refuses the model.
    Example that fails:
        <data axis="1" foo="2"/> in a Concat; axes as attribute of a ReduceMean of ONNX opset 18 or
        later, where axes are an input
    Example that passes:
        <data axis="1"/>
    """
    for place, node in subject.nodes():
        operation = subject.operation(node)
        if (
            operation is None
            or not node.attributes
            or operation.role is not Role.COMPUTE
            or not _knows_all_attributes(subject, node)
        ):
            continue
        unknown = sorted(
            name
            for name in node.attributes.keys()
            - {attribute.name for attribute in operation.attributes}
            if name[:2] != "__"
        )
        if unknown:
            known = [attribute.name for attribute in operation.attributes]
            yield Finding(
                subject.where(place, node),
                f"{operation.title} has no attribute {listed(unknown)}.",
                found=_attributes_xml(node),
                expected=", ".join(known[:20]) or "no attributes",
                advice="The attribute is ignored, as in OpenVINO."
                if subject.is_openvino
                else _unknown_attribute_advice(subject, node, unknown),
            )


def _knows_all_attributes(subject: Subject, node: Node) -> bool:
    """Return True if all attributes of an operation are known. Operations of com.microsoft list
    only those that the kernel uses.
    """
    return subject.is_openvino or node.opset.startswith("ai.onnx")


def _unknown_attribute_advice(subject: Subject, node: Node, unknown: Sequence[str]) -> str:
    elsewhere = subject.catalogue.elsewhere(node.type, node.opset)
    matching = [
        version.title
        for version in elsewhere
        if {attribute.name for attribute in version.attributes}.issuperset(unknown)
    ]
    other = (
        f" {matching[-1]} has it: was the opset changed without converting the node?"
        if matching
        else ""
    )
    return f"Loopscope ignores the attribute; ONNX Runtime refuses the model.{other}"


def wrong_number_of_inputs(subject: Subject) -> Iterator[Finding]:
    """A layer has more or fewer inputs than its operation allows.

    What it does:
        Counts the input ports of every layer.
    Why it matters:
        The operation is not defined for this number of inputs. OpenVINO refuses such a file.
    Example that fails:
        an Add with three input ports
    Example that passes:
        an Add with two input ports
    """
    for place, node in subject.nodes():
        operation = subject.operation(node)
        if operation is None:
            continue
        lower, upper = operation.inputs
        count = len(node.inputs)
        if count < lower or (upper is not None and count > upper):
            yield Finding(
                subject.where(place, node),
                f"{operation.title} has {count} input{'' if count == 1 else 's'}, expected "
                f"{_range_words(lower, upper)}.",
                found=f"{count} input ports",
                expected=f"{_range_words(lower, upper)} input ports",
                advice="Correct the ports and edges of the layer, or its version: versions of an "
                "operation may have different inputs.",
            )


def _range_words(lower: int, upper: int | None) -> str:
    if upper is None:
        return f"at least {lower}"
    return str(lower) if lower == upper else f"{lower} to {upper}"


def output_that_does_not_exist(subject: Subject) -> Iterator[Finding]:
    """A layer declares more outputs than its operation has.

    What it does:
        Counts the output ports of every layer whose operation has a fixed number of outputs.
    Why it matters:
        The additional ports never receive a value. OpenVINO refuses such a file.
    Example that fails:
        an Add with two output ports
    Example that passes:
        an Add with one output port
    """
    for place, node in subject.nodes():
        operation = subject.operation(node)
        if operation is None or operation.outputs is None:
            continue
        if len(node.outputs) > operation.outputs:
            plural = "" if operation.outputs == 1 else "s"
            yield Finding(
                subject.where(place, node),
                f"{operation.title} has {operation.outputs} output{plural}, but the layer "
                f"declares {len(node.outputs)}.",
                found=f"{len(node.outputs)} output ports",
                expected=f"at most {operation.outputs}",
                advice="Remove the ports that do not exist, and the edges from them.",
            )


_BODIES = {
    LOOP: ("body",),
    TENSOR_ITERATOR: ("body",),
    IF: ("then", "else"),
    SCAN: ("body",),
    SEQUENCE_MAP: ("body",),
}


def missing_body(subject: Subject) -> Iterator[Finding]:
    """A Loop, TensorIterator or If has a missing body.

    What it does:
        Looks for the body of each Loop and TensorIterator, and for both bodies of each If.
    Why it matters:
        There is nothing to run. An If has a then_body and an else_body, even if one of them only
        passes values on.
    Example that fails:
        an If with a then_body only
    Example that passes:
        an If with a then_body and an else_body
    """
    for place, node in subject.nodes():
        expected = _BODIES.get(node.type, ()) if subject.is_control_flow(node) else ()
        present = {body.name for body in node.bodies}
        missing = [name for name in expected if name not in present]
        if missing:
            elements = [name if name == "body" else f"{name}_body" for name in missing]
            yield Finding(
                subject.where(place, node),
                f"This {node.type} has no {' and no '.join(elements)}.",
                found=f"bodies: {', '.join(sorted(present)) or 'none'}",
                expected=f"bodies: {', '.join(expected)}",
                advice="The file is incomplete: convert the original model again.",
            )


def missing_output(subject: Subject) -> Iterator[Finding]:
    """A layer has no output port although its operation computes outputs.

    What it does:
        Looks for layers without output ports whose operation computes outputs.
    Why it matters:
        The computed value cannot be used. OpenVINO removes such a layer, and everything that feeds
        only this layer.
    Example that fails:
        a ReLU without <output>
    Example that passes:
        a ReLU with one output port
    """
    for place, node in subject.nodes():
        operation = subject.operation(node)
        if (
            operation is None
            or operation.role is not Role.COMPUTE
            or not operation.outputs
            or node.outputs
        ):
            continue
        plural = "" if operation.outputs == 1 else "s"
        yield Finding(
            subject.where(place, node),
            f"{operation.title} has {operation.outputs} output{plural}, but the layer declares "
            "none.",
            found="no output port",
            expected=f"{operation.outputs} output port{plural}",
            advice="Add the port, or remove the layer and the edges to it.",
        )


RULES = (
    Rule("LS301", "unknown-operation", Severity.ERROR, unknown_operation, before_running=True),
    Rule(
        "LS302",
        "operation-not-in-opset",
        Severity.ERROR,
        operation_not_in_opset,
        before_running=True,
    ),
    Rule("LS303", "bad-attribute", Severity.ERROR, bad_attribute, before_running=True),
    Rule(
        "LS304",
        "wrong-number-of-inputs",
        Severity.ERROR,
        wrong_number_of_inputs,
        before_running=True,
    ),
    Rule(
        "LS305",
        "output-that-does-not-exist",
        Severity.ERROR,
        output_that_does_not_exist,
        before_running=True,
    ),
    Rule("LS306", "missing-body", Severity.ERROR, missing_body, before_running=True),
    Rule("LS307", "unknown-attribute", Severity.WARNING, unknown_attribute),
    Rule("LS308", "missing-output", Severity.ERROR, missing_output, before_running=True),
)
