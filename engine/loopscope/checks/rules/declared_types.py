"""Rules about element types and shapes: contradictions with operations, and wrong declarations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from loopscope.checks.diagnostic import Severity
from loopscope.checks.propagate import Contradiction, propagate
from loopscope.checks.rule import CheckedRegion, Finding, Rule, Subject
from loopscope.ir.address import ROOT, PlacedGraph
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Node, Port
from loopscope.ops.declare import Known, Operation, Role


def _contradictions(
    subject: Subject, *, alive: bool, of_types: bool | None
) -> Iterator[tuple[PlacedGraph, Node, Contradiction]]:
    places = {place.address: place for place in subject.places}
    for contradiction in subject.propagated.contradictions:
        if (contradiction.graph not in subject.never_run) is alive and of_types in (
            None,
            contradiction.of_types,
        ):
            yield (
                places[contradiction.graph],
                places[contradiction.graph].graph.by_id[contradiction.layer],
                contradiction,
            )


def _describe_inputs(inputs: Sequence[Known]) -> str:
    return ", ".join(f"{known.element_type or '?'} {known.shape}" for known in inputs[:8])


def _finding(
    subject: Subject, place: PlacedGraph, node: Node, contradiction: Contradiction, advice: str
) -> Finding:
    operation = subject.operation(node)
    return Finding(
        subject.where(place, node),
        f"The inputs contradict {operation.title if operation else node.type}: "
        f"{contradiction.message}.",
        found=f"inputs {_describe_inputs(subject.inputs(place, node))}",
        expected="inputs that the operation is defined for",
        advice=advice,
    )


def type_contradiction(subject: Subject) -> Iterator[Finding]:
    """The element types of a layer's inputs contradict its operation.

    What it does:
        Propagates element types from Parameters and constants through the model, and applies every
        operation's type rule.
    Why it matters:
        The operation is not defined for these types. OpenVINO refuses such a model.
    Example that fails:
        an Add of f32 and i64
    Example that passes:
        a Convert of the i64 to f32 before the Add
    """
    for place, node, contradiction in _contradictions(subject, alive=True, of_types=True):
        yield _finding(
            subject,
            place,
            node,
            contradiction,
            "Convert the inputs to types that the operation supports.",
        )


def shape_contradiction(subject: Subject) -> Iterator[Finding]:
    """The shapes of a layer's inputs contradict its operation.

    What it does:
        Propagates shapes and small constants through the model, and applies every operation's shape
        rule.
    Why it matters:
        The operation is not defined for these shapes and fails when it runs. OpenVINO refuses such
        a model.
    Example that fails:
        an Add of shapes [2,3] and [2,4]
    Example that passes:
        an Add of shapes [2,3] and [1,3]
    """
    for place, node, contradiction in _contradictions(subject, alive=True, of_types=False):
        yield _finding(
            subject,
            place,
            node,
            contradiction,
            "Trace these shapes to their origin; the model may also require another input shape.",
        )


def contradiction_that_never_runs(subject: Subject) -> Iterator[Finding]:
    """A layer contradicts its operation, but never runs.

    What it does:
        Looks for contradictions in bodies that cannot run because a condition or trip count is
        constant.
    Why it matters:
        The layer would fail if the constant changed. OpenVINO may refuse such a model.
    Example that fails:
        an Add of f32 and i64 in the else branch of an If whose condition is constant true
    Example that passes:
        the same with a Convert
    """
    for place, node, contradiction in _contradictions(subject, alive=False, of_types=None):
        yield _finding(
            subject, place, node, contradiction, "Harmless while the layer does not run."
        )


def type_not_supported(subject: Subject) -> Iterator[Finding]:
    """An input has an element type that the specification does not list for the operation.

    What it does:
        Compares the known element type of every input with those in the operation's specification.
        Inputs that ONNX requires to have equal types are compared with each other. Conditions and
        trip counts of IR are checked by other rules, such as LS512 and LS605.
    Why it matters:
        Runtimes may refuse the model, or compute something else.
    Example that fails:
        a SoftMax of i32
    Example that passes:
        a SoftMax of f32
    """
    contradicted = {
        (contradiction.graph, contradiction.layer)
        for contradiction in subject.propagated.contradictions
    }
    for place, node in subject.nodes():
        operation = subject.operation(node)
        if (
            operation is None
            or (operation.role is not Role.COMPUTE and subject.is_openvino)
            or (place.address, node.id) in contradicted
        ):
            continue
        unsupported = [
            _unsupported(subject, place, node, operation, index, known)
            for index, known in enumerate(subject.inputs(place, node))
            if known.element_type is not None
            and known.element_type not in operation.types[min(index, len(operation.types) - 1)]
        ]
        yield from unsupported or _differing_types(subject, place, node, operation)


def _differing_types(
    subject: Subject, place: PlacedGraph, node: Node, operation: Operation
) -> Iterator[Finding]:
    """Yield a finding if two inputs that must have one type have different types."""
    first: dict[str, tuple[int, ElementType]] = {}
    inputs = subject.propagated.mixed.get((place.address, node.id)) or subject.inputs(place, node)
    for index, known in enumerate(inputs if operation.alike else ()):
        name = operation.alike[min(index, len(operation.alike) - 1)]
        if not name or known.element_type is None:
            continue
        other, expected = first.setdefault(name, (index, known.element_type))
        if known.element_type is not expected:
            yield Finding(
                subject.where(place, node, f"input {index}"),
                f"Inputs {other} and {index} of {operation.title} are {expected} and "
                f"{known.element_type}, but must have one type.",
                found=f"{expected} and {known.element_type}",
                expected=f"one type, named {name} in the specification",
                advice="ONNX Runtime does not open such a model; convert one of them with a Cast.",
            )
            return


def _unsupported(
    subject: Subject, place: PlacedGraph, node: Node, operation: Operation, index: int, known: Known
) -> Finding:
    allowed = sorted(
        str(element_type) for element_type in operation.types[min(index, len(operation.types) - 1)]
    )
    return Finding(
        subject.where(place, node, f"input {index}"),
        f"Input {index} of {operation.title} is {known.element_type}, which its specification "
        "does not list.",
        found=str(known.element_type),
        expected=", ".join(allowed[:12]) + (", ..." if len(allowed) > 12 else ""),
        advice="Loopscope computes it in this type; convert the input to be safe.",
    )


def _declared_outputs(subject: Subject) -> Iterator[tuple[PlacedGraph, Node, int, Port, Known]]:
    """Yield each declared output with the propagated knowledge about it.

    Parameters, constants, Results and nodes with bodies are excluded; other rules check them.
    """
    for place, node in subject.nodes():
        if node.bodies or node.type in ("Parameter", "Const", "Result"):
            continue
        for index, port in enumerate(node.outputs):
            yield place, node, index, port, subject.propagated.output(place.address, node.id, index)


_ADVICE = {
    "openvino": "The declaration is ignored, as in OpenVINO.",
    "onnx": "Loopscope ignores the declaration; ONNX Runtime does not open such a model. Declare "
    "the actual type, or add a Cast.",
}


def declared_type_differs(subject: Subject) -> Iterator[Finding]:
    """An output port declares another element type than the operation produces.

    What it does:
        Compares the precision of every output port with the element type that follows from the
        inputs.
    Why it matters:
        The file was edited by hand, or a tool was wrong. Loopscope and OpenVINO use the computed
        type; ONNX Runtime does not open such a model.
    Example that fails:
        <port id="2" precision="I64"/> as output of an Add of f32
    Example that passes:
        <port id="2" precision="FP32"/>
    """
    for place, node, index, port, known in _declared_outputs(subject):
        if (place.address, node.id) in subject.propagated.mixed:
            continue  # LS704 reports the operands, which are the cause
        if (
            port.element_type is not None
            and known.element_type is not None
            and port.element_type is not known.element_type
        ):
            yield Finding(
                subject.where(place, node, f"output {index}"),
                f"Output {index} is declared {port.element_type}, but it is {known.element_type}.",
                found=f"precision {port.element_type}",
                expected=str(known.element_type),
                advice=_ADVICE[subject.model.dialect],
            )


def declared_shape_differs(subject: Subject) -> Iterator[Finding]:
    """An output port declares another shape than the operation produces.

    What it does:
        Compares the dimensions of every output port with the shape that follows from the inputs.
    Why it matters:
        The file was edited by hand, or a tool was wrong. Loopscope and OpenVINO use the computed
        shape.
    Example that fails:
        <dim>7</dim> for the output of an Add of shapes [3] and [3]
    Example that passes:
        <dim>3</dim>
    """
    for place, node, index, port, known in _declared_outputs(subject):
        if port.shape.intersect(known.shape) is None:
            yield Finding(
                subject.where(place, node, f"output {index}"),
                f"Output {index} is declared {port.shape}, but it is {known.shape}.",
                found=f"dimensions {port.shape}",
                expected=str(known.shape),
                advice="The declaration is ignored, as in OpenVINO.",
            )


def _contradicts(port: Port, known: Known) -> bool:
    """Return True if the declaration of a port contradicts the propagated type or shape."""
    differs = port.element_type is not None and known.element_type not in (None, port.element_type)
    return differs or port.shape.intersect(known.shape) is None


def parameter_declared_differs(subject: Subject) -> Iterator[Finding]:
    """A body Parameter declares another type or shape than its input has.

    What it does:
        Compares element type and shape of every body Parameter with those of the tensor that its
        port map entry passes.
    Why it matters:
        The passed tensor determines the type. OpenVINO first reads the body as declared, and may
        refuse the file.
    Example that fails:
        <data element_type="i64" shape="7"/> for a Parameter that receives f32 [3]
    Example that passes:
        <data element_type="f32" shape="3"/>
    """
    for region in subject.regions:
        for node in region.body.graph.parameters:
            known = subject.parameter(region, node.id)
            port = node.outputs[0] if node.outputs else Port(0)
            if _contradicts(port, known):
                declared = f"{port.element_type or '?'} {port.shape}"
                received = f"{known.element_type or '?'} {known.shape}"
                yield Finding(
                    subject.where(region.body_place, node),
                    f"The Parameter is declared {declared}, but receives {received}.",
                    found=f"declared {declared}",
                    expected=received,
                    advice="The received tensor determines type and shape; correct the "
                    "declaration.",
                )


def _has_wrong_declaration(subject: Subject, region: CheckedRegion) -> bool:
    """Return True if a Parameter of a body declares a type or shape that it cannot receive."""
    parameters = region.body.graph.parameters
    return any(
        _contradicts(
            node.outputs[0] if node.outputs else Port(0), subject.parameter(region, node.id)
        )
        for node in parameters
    )


def body_contradicts_itself(subject: Subject) -> Iterator[Finding]:
    """A body is contradictory as declared, because a Parameter is declared wrongly.

    What it does:
        If a Parameter of a body declares another type or shape than it receives, propagates the
        declared types and shapes through the body.
    Why it matters:
        OpenVINO reads a body as declared before it considers the inputs, and refuses such a file.
    Example that fails:
        a body that multiplies two Parameters, one declared i64 and one f32, though both receive f32
    Example that passes:
        both declared f32
    """
    for region in subject.regions if subject.is_openvino else ():
        if not _has_wrong_declaration(subject, region):
            continue
        declared = propagate(replace(subject.model, graph=region.body.graph), subject.catalogue)
        for contradiction in declared.contradictions:
            if contradiction.graph != ROOT:
                continue
            node = region.body.graph.by_id[contradiction.layer]
            inputs = declared.inputs(ROOT, region.body.graph.sources[node.id])
            operation = subject.operation(node)
            yield Finding(
                subject.where(region.body_place, node),
                f"The declared Parameters of the {region.part} contradict "
                f"{operation.title if operation else node.type}: {contradiction.message}.",
                found=f"inputs {_describe_inputs(inputs)}",
                expected="Parameters declared as they are fed",
                advice="Correct element_type or shape of the Parameters of the body.",
            )


RULES = (
    Rule("LS701", "type-contradiction", Severity.ERROR, type_contradiction, before_running=True),
    Rule("LS702", "shape-contradiction", Severity.ERROR, shape_contradiction),
    Rule("LS703", "contradiction-that-never-runs", Severity.WARNING, contradiction_that_never_runs),
    Rule("LS704", "type-not-supported", Severity.WARNING, type_not_supported),
    Rule("LS705", "declared-type-differs", Severity.WARNING, declared_type_differs),
    Rule("LS706", "declared-shape-differs", Severity.WARNING, declared_shape_differs),
    Rule("LS707", "parameter-declared-differs", Severity.WARNING, parameter_declared_differs),
    Rule(
        "LS708",
        "body-contradicts-itself",
        Severity.ERROR,
        body_contradicts_itself,
        before_running=True,
    ),
)
