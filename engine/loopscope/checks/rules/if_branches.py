"""Rules of If-8: the condition, and equal outputs of both branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import OPENVINO, Finding, Rule, Subject
from loopscope.checks.rules.loops import may_be_one_value
from loopscope.ir.address import PlacedGraph
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import IF, Node
from loopscope.ops.declare import Known


def _conditions(subject: Subject) -> Iterator[tuple[PlacedGraph, Node, Known]]:
    for place, node in subject.ifs:
        if node.inputs:
            yield place, node, subject.input(place, node, 0)


def condition_not_boolean(subject: Subject) -> Iterator[Finding]:
    """An If's condition is not a boolean.

    What it does:
        Checks the element type of input 0 of every If.
    Why it matters:
        The specification requires boolean. OpenVINO accepts any type, but its CPU reads only the
        first byte: 2.0 and 256 are false.
    Example that fails:
        a condition of f32
    Example that passes:
        a condition of boolean
    """
    for place, node, known in _conditions(subject):
        if known.element_type not in (None, ElementType.BOOLEAN):
            yield Finding(
                subject.where(place, node, "input 0"),
                f"The condition is {known.element_type}, expected boolean.",
                found=str(known.element_type),
                expected="boolean",
                advice="Loopscope treats every value except 0 as true; compare with zero "
                "(NotEqual) to get equal results everywhere.",
            )


def condition_shape(subject: Subject) -> Iterator[Finding]:
    """An If's condition cannot be a single value.

    What it does:
        Checks the shape of input 0 of every If.
    Why it matters:
        A single value selects the branch. OpenVINO refuses a condition with more than one
        dimension, and uses the first of several elements. ONNX Runtime accepts one element of any
        shape. An empty condition selects nothing.
    Example that fails:
        a condition of shape [0], of shape [1,1] in IR, or of shape [2] in ONNX
    Example that passes:
        a condition of shape [] or [1]
    """
    for place, node, known in _conditions(subject):
        if not may_be_one_value(subject, known) and not _has_several_elements(subject, known):
            yield _shape_finding(
                subject,
                place,
                node,
                known,
                "Reduce it to one value (ReduceLogicalAnd, Squeeze, Gather).",
            )


def condition_of_several(subject: Subject) -> Iterator[Finding]:
    """An If's condition has several elements.

    What it does:
        Checks the shape of input 0 of every If.
    Why it matters:
        The specification requires one element. OpenVINO accepts several and uses the first.
    Example that fails:
        a condition of shape [2]
    Example that passes:
        a condition of shape [] or [1]
    """
    for place, node, known in _conditions(subject):
        if _has_several_elements(subject, known):
            yield _shape_finding(
                subject, place, node, known, "The first element is used, as in OpenVINO."
            )


def _has_several_elements(subject: Subject, known: Known) -> bool:
    """Return True if a condition is a list of several elements (OpenVINO uses the first)."""
    dimensions = known.shape.dimensions
    return (
        subject.is_openvino
        and dimensions is not None
        and len(dimensions) == 1
        and dimensions[0].least > 1
    )


def _shape_finding(
    subject: Subject, place: PlacedGraph, node: Node, known: Known, advice: str
) -> Finding:
    return Finding(
        subject.where(place, node, "input 0"),
        f"The condition has shape {known.shape}, expected a scalar or one element.",
        found=f"shape {known.shape}",
        expected="shape [] or [1]" if subject.is_openvino else "one element",
        advice=advice,
    )


def branch_without_result(subject: Subject) -> Iterator[Finding]:
    """A branch of an If has no Result.

    What it does:
        Checks that both bodies of every If have a Result.
    Why it matters:
        A branch without a Result has no value for the outputs of the If. OpenVINO refuses such a
        file.
    Example that fails:
        a then_body that ends in an Add
    Example that passes:
        a then_body that ends in a Result
    """
    for place, node in subject.ifs:
        for body in node.bodies:
            if not body.graph.results:
                yield Finding(
                    subject.where(place, node),
                    f"The {body.name} branch has no Result.",
                    found=f"{len(body.graph.nodes)} layers, none of them a Result",
                    expected="at least one Result",
                    advice="Add a Result for each output of the If.",
                )


def branch_output_counts(subject: Subject) -> Iterator[Finding]:
    """The branches of an If have different numbers of outputs.

    What it does:
        Compares the numbers of port map outputs of both branches.
    Why it matters:
        An output of the If would have a value in one branch only. OpenVINO refuses such a file.
    Example that fails:
        two <output> in then_port_map, one in else_port_map
    Example that passes:
        two in each
    """
    for place, node in subject.ifs:
        counts = {body.name: len(body.outer_outputs) for body in node.bodies}
        if len(set(counts.values())) > 1:
            spelled = ", ".join(f"{name} {count}" for name, count in counts.items())
            yield Finding(
                subject.where(place, node),
                f"The branches have different numbers of outputs: {spelled}.",
                found=spelled,
                expected=f"{len(node.outputs)} each",
                advice="Map a Result of each branch to every output.",
            )


def branch_output_types(subject: Subject) -> Iterator[Finding]:
    """The branches of an If produce an output of different element types.

    What it does:
        Compares the known element types of matching outputs of both branches.
    Why it matters:
        The consumers of the output can be valid for one of the types only. OpenVINO refuses such a
        file.
    Example that fails:
        output 0 is f32 in the then branch and i32 in the else branch
    Example that passes:
        f32 in both
    """
    for place, node, index, knowledge in _outputs(subject):
        types = [known.element_type for known in knowledge]
        if None not in types and len(set(types)) > 1:
            spelled = " and ".join(
                f"{element_type} in the {body.name} branch"
                for element_type, body in zip(types, node.bodies, strict=True)
            )
            yield Finding(
                subject.where(place, node, f"output {index}"),
                f"Output {index} is {spelled}.",
                found=", ".join(str(element_type) for element_type in types),
                expected="one element type",
                advice="Convert one of them in its branch.",
            )


def branch_output_ranks(subject: Subject) -> Iterator[Finding]:
    """The branches of an If produce an output with different numbers of dimensions.

    What it does:
        Compares the known ranks of matching outputs of both branches.
    Why it matters:
        The rank of the output is unknown, and OpenVINO's CPU refuses to run such a model.
    Example that fails:
        output 0 has shape [3] in the then branch and [1,3] in the else branch
    Example that passes:
        shapes [1,3] and [2,3]
    """
    for place, node, index, knowledge in _outputs(subject):
        ranks = [known.shape.rank for known in knowledge]
        if None not in ranks and len(set(ranks)) > 1:
            spelled = " and ".join(
                f"{known.shape} in the {body.name} branch"
                for known, body in zip(knowledge, node.bodies, strict=True)
            )
            yield Finding(
                subject.where(place, node, f"output {index}"),
                f"Output {index} has shape {spelled}.",
                found=", ".join(f"rank {rank}" for rank in ranks),
                expected="one rank",
                advice="Loopscope runs it; for OpenVINO reshape one of them in its branch.",
            )


def _outputs(subject: Subject) -> Iterator[tuple[PlacedGraph, Node, int, list[Known]]]:
    """Yield each output of each If whose condition is not constant, with the knowledge about it in
    each branch.
    """
    for place, node in subject.ifs:
        regions = subject.regions_of(node)
        if any(region.body_place.address in subject.never_run for region in regions):
            continue
        for index in range(min(len(body.outer_outputs) for body in node.bodies)):
            knowledge = [
                subject.parameter(region, region.body.outer_outputs[index].internal)
                for region in regions
            ]
            yield place, node, index, knowledge


def result_of_two_outputs(subject: Subject) -> Iterator[Finding]:
    """A port map of an If maps one Result to two outputs.

    What it does:
        Looks for a Result that several outputs of then_port_map, or of else_port_map, refer to.
    Why it matters:
        OpenVINO refuses such a file. (In the port map of a Loop it accepts them.)
    Example that fails:
        two <output> with internal_layer_id="4" in then_port_map
    Example that passes:
        a separate Result for each output
    """
    for region in subject.regions if subject.is_openvino else ():
        if region.node.type != IF:
            continue
        for layer, count in Counter(entry.internal for entry in region.body.outer_outputs).items():
            if count > 1:
                yield Finding(
                    subject.where(region.place, region.node, f"{region.body.name} layer {layer}"),
                    f"{count} outputs of the {region.part} are mapped from Result {layer}.",
                    found=f"{count} port map outputs with internal_layer_id {layer}",
                    expected="a separate Result for each output",
                    advice="Correct internal_layer_id, or add a Result that the same layer feeds.",
                )


def if_without_outputs(subject: Subject) -> Iterator[Finding]:
    """An If has no outputs.

    What it does:
        Looks for If nodes without an output port whose branches have no output either.
    Why it matters:
        The specification requires at least one output. The values that the branches compute are
        lost. OpenVINO reads such a file.
    Example that fails:
        an If without <output>, and port maps without outputs
    Example that passes:
        an If with one output port, and an output in each port map
    """
    for place, node in subject.ifs:
        if not node.outputs and not any(body.outer_outputs for body in node.bodies):
            yield Finding(
                subject.where(place, node),
                "The If has no outputs.",
                found="no output port, and no output in its port maps",
                expected="at least one",
                advice="It runs, but its values are unused; map a Result of each branch to an "
                "output, or remove the If.",
            )


RULES = (
    Rule(
        "LS601", "branch-without-result", Severity.ERROR, branch_without_result, before_running=True
    ),
    Rule(
        "LS602", "branch-output-counts", Severity.ERROR, branch_output_counts, before_running=True
    ),
    Rule("LS603", "branch-output-types", Severity.ERROR, branch_output_types, before_running=True),
    Rule("LS604", "if-condition-shape", Severity.ERROR, condition_shape, before_running=True),
    Rule("LS605", "if-condition-not-boolean", Severity.WARNING, condition_not_boolean),
    Rule("LS606", "if-condition-of-several", Severity.WARNING, condition_of_several),
    Rule("LS607", "branch-output-ranks", Severity.WARNING, branch_output_ranks, runtimes=OPENVINO),
    Rule(
        "LS608", "result-of-two-outputs", Severity.ERROR, result_of_two_outputs, before_running=True
    ),
    Rule("LS609", "if-without-outputs", Severity.WARNING, if_without_outputs),
)
