"""Rules about what a layer is: unknown operations, their inputs and outputs, their attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import Finding, Rule
from loopscope.checks.subject import Subject
from loopscope.errors import listed, shorten
from loopscope.ir.model import IF, LOOP, SCAN, SEQUENCE_MAP, TENSOR_ITERATOR, Node
from loopscope.ir.walk import PlacedGraph
from loopscope.ops.declare import REQUIRED, AttributeProblem, Role, typed

_PLACES = 5


def unknown_operation(subject: Subject) -> Iterator[Finding]:
    """An operation type that Loopscope does not know.

    What it does:
        Looks up the type of every layer among the operations; one diagnostic for each unknown type, naming its layers.
    Why it matters:
        What these layers compute is unknown. The model opens and draws, but cannot be run.
    Example that fails:
        <layer type="Addd" version="opset1" .../>
    Example that passes:
        <layer type="Add" version="opset1" .../>
    """
    found: dict[str, list[tuple[PlacedGraph, Node]]] = {}
    for place, node in subject.nodes():
        if subject.operation(node) is None and not subject.catalogue.elsewhere(
            node.type, node.opset
        ):
            found.setdefault(node.type, []).append((place, node))
    total = sum(len(layers) for layers in found.values())
    for kind, layers in found.items():
        addresses = [subject.where(*layer).address for layer in layers[:_PLACES]]
        more = f" and {len(layers) - _PLACES} more" if len(layers) > _PLACES else ""
        everything = f"{total} layer{'s' if total > 1 else ''} of {len(found)} type{'s' if len(found) > 1 else ''}"
        state = "is drawn and not run" if _is_search(layers[0][1]) else "is unknown"
        yield Finding(
            subject.where(*layers[0]),
            f"Operation {shorten(kind, 60)!r} ({shorten(layers[0][1].opset, 40)}) {state}; "
            f"the model has {everything} that cannot be run: {listed(list(found))}.",
            found=f"{len(layers)} layer{'s' if len(layers) > 1 else ''}: {', '.join(shorten(address) for address in addresses)}{more}",
            expected="an operation of opset1 to opset17"
            if subject.is_openvino
            else "an operation that Loopscope knows",
            advice=_advice(layers[0][1]),
        )


def _advice(node: Node) -> str:
    if not node.opset.startswith("com.microsoft"):
        return "Check the spelling; an operation of your own is added with --ops FILE.py, or in Python by loopscope.ops.install."
    if node.opset.startswith("com.microsoft.nchwc"):
        return _LAID_OUT
    return _SEARCH if _is_search(node) else _FUSED


def _is_search(node: Node) -> bool:
    return node.opset.startswith("com.microsoft ") and node.type in _SEARCHES


_LAID_OUT = (
    "ONNX Runtime has laid out its numbers for one kind of processor: optimize the model again with ORT_ENABLE_EXTENDED "
    "instead of ORT_ENABLE_ALL, or open it as it was before."
)


_SEARCHES = ("GreedySearch", "BeamSearch", "Sampling", "WhisperBeamSearch")
_SEARCH = (
    "Of ONNX Runtime's searches, those over a decoder alone are run (model_type 0, caches of known heads as inputs 3 and up), and "
    "BeamSearch over T5's encoder and decoder (model_type 1), with ONNX opset 11 or later, without a penalty of presence: export the "
    "graphs by themselves, or the model with one of these."
)


_FUSED = (
    "It is ONNX Runtime's own, and not among those that are computed here (loopscope ops com.microsoft lists them): open the model as it "
    "was before ONNX Runtime changed it, where you have that, or add it as an operation of your own with --ops FILE.py."
)


def operation_not_in_opset(subject: Subject) -> Iterator[Finding]:
    """An operation is known, but not in the opset that the layer names.

    What it does:
        Looks for layers whose type exists in other opsets than their version says.
    Why it matters:
        The opset decides which version of an operation is meant. OpenVINO refuses such a file.
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
                f"{one.title} in opset{one.opsets[0]} to opset{one.opsets[1]}"
                if subject.is_openvino
                else f"{one.title} from opset {one.version} on"
                for one in versions
            ]
            yield Finding(
                subject.where(place, node),
                f"{shorten(node.opset, 40)!r} holds no operation {shorten(node.type, 60)!r}.",
                found=f"version {shorten(node.opset, 40)!r}",
                expected="; ".join(ranges[:8]),
                advice="Correct the version of the layer."
                if subject.is_openvino
                else "Correct the opset that the model imports.",
            )


def bad_attribute(subject: Subject) -> Iterator[Finding]:
    """An attribute is missing, or has a value that the operation does not allow.

    What it does:
        Reads every attribute of every layer as its operation declares it.
    Why it matters:
        The operation cannot be computed without it.
    Example that fails:
        <data auto_broadcast="bogus"/> in an Add
    Example that passes:
        <data auto_broadcast="numpy"/>
    """
    bodies = {region.within.address for region in subject.regions if region.node.type in (IF, LOOP)}
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
        # What feeds a body decides: OpenVINO writes it so, and in If and Loop it reads a Parameter
        # that says nothing as well.
        unsaid = "dynamic" if place.address in bodies else None
        if operation.role is Role.PARAMETER and node.attributes.get("element_type", unsaid) in (
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
                found=_spelled(node),
                expected=", ".join(
                    one.name + (" (required)" if one.default is REQUIRED else "")
                    for one in operation.attributes[:20]
                ),
                advice=f"Correct <data> of the layer; see the specification of {operation.title}."
                if subject.is_openvino
                else "",
            )


def _is_typed_by_port(node: Node) -> bool:
    """A Parameter or Const says what it is in its port too; what was built in Python says it
    only there.
    """
    return node.constant is not None or (
        "element_type" not in node.attributes
        and bool(node.outputs)
        and node.outputs[0].element_type is not None
    )


def _spelled(node: Node) -> str:
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
    """A layer has an attribute that its operation does not have.

    What it does:
        Compares the names of a layer's attributes with those of its operation (of OpenVINO, or in a domain of ONNX itself).
    Why it matters:
        It may be a slip of the pen, or of another opset, where the attribute changes the result. OpenVINO ignores it, and so does
        Loopscope; ONNX Runtime refuses the model.
    Example that fails:
        <data axis="1" foo="2"/> in a Concat; the attribute axes in a ReduceMean of ONNX from opset 18 on, where axes are an input
    Example that passes:
        <data axis="1"/>
    """
    for place, node in subject.nodes():
        operation = subject.operation(node)
        if (
            operation is None
            or not node.attributes
            or operation.role is not Role.COMPUTE
            or not _is_declared(subject, node)
        ):
            continue
        unknown = sorted(
            name
            for name in node.attributes.keys() - {one.name for one in operation.attributes}
            if name[:2] != "__"
        )
        if unknown:
            known = [attribute.name for attribute in operation.attributes]
            yield Finding(
                subject.where(place, node),
                f"{operation.title} has no attribute {listed(unknown)}.",
                found=_spelled(node),
                expected=", ".join(known[:20]) or "no attributes",
                advice="It is ignored, as OpenVINO does."
                if subject.is_openvino
                else _of_other_opsets(subject, node, unknown),
            )


def _is_declared(subject: Subject, node: Node) -> bool:
    """Whether all attributes of an operation are known: those of com.microsoft are as far as a
    kernel here has them.
    """
    return subject.is_openvino or node.opset.startswith("ai.onnx")


def _of_other_opsets(subject: Subject, node: Node, unknown: Sequence[str]) -> str:
    elsewhere = subject.catalogue.elsewhere(node.type, node.opset)
    having = [
        one.title
        for one in elsewhere
        if {attribute.name for attribute in one.attributes}.issuperset(unknown)
    ]
    other = (
        f" {having[-1]} has it: was the opset raised or lowered without converting the node?"
        if having
        else ""
    )
    return f"It is ignored here, and ONNX Runtime refuses the model.{other}"


def wrong_number_of_inputs(subject: Subject) -> Iterator[Finding]:
    """A layer has more or fewer inputs than its operation takes.

    What it does:
        Counts the input ports of every layer.
    Why it matters:
        The operation is not defined for that many. OpenVINO refuses such a file.
    Example that fails:
        an Add with three input ports
    Example that passes:
        an Add with two input ports
    """
    for place, node in subject.nodes():
        operation = subject.operation(node)
        if operation is None:
            continue
        least, most = operation.inputs
        count = len(node.inputs)
        if count < least or (most is not None and count > most):
            yield Finding(
                subject.where(place, node),
                f"{operation.title} has {count} input{'' if count == 1 else 's'}, expected {_range(least, most)}.",
                found=f"{count} input ports",
                expected=f"{_range(least, most)} input ports",
                advice="Correct the ports and edges of the layer, or its version: versions of an operation may take different inputs.",
            )


def _range(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least}"
    return str(least) if least == most else f"{least} to {most}"


def output_that_does_not_exist(subject: Subject) -> Iterator[Finding]:
    """A layer declares more outputs than its operation has.

    What it does:
        Counts the output ports of every layer whose operation has a fixed number of outputs.
    Why it matters:
        The additional ports never get a value. OpenVINO refuses such a file.
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
                f"{operation.title} has {operation.outputs} output{plural}, the layer declares {len(node.outputs)}.",
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
    """A Loop, TensorIterator or If lacks a body.

    What it does:
        Looks for the body of each Loop and TensorIterator, and for both bodies of each If.
    Why it matters:
        There is nothing to run. An If has both a then_body and an else_body, even where one only hands values on.
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
    """A layer has no output port, but its operation computes something.

    What it does:
        Looks for layers without output ports whose operation computes outputs.
    Why it matters:
        What is computed cannot go anywhere. OpenVINO drops such a layer, and everything that only feeds it.
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
            f"{operation.title} has {operation.outputs} output{plural}, the layer declares none.",
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
