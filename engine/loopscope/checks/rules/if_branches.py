"""Rules of If-8: the condition, and two branches that give the same outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import OPENVINO, Finding, Rule
from loopscope.checks.rules.loops import may_be_one_value
from loopscope.checks.subject import Subject
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import IF, Node
from loopscope.ir.walk import PlacedGraph
from loopscope.ops.declare import Known


def _conditions(subject: Subject) -> Iterator[tuple[PlacedGraph, Node, Known]]:
    for place, node in subject.ifs:
        if node.inputs:
            yield place, node, subject.input(place, node, 0)


def condition_not_boolean(subject: Subject) -> Iterator[Finding]:
    """An If's condition is not a boolean.

    What it does:
        Looks at the element type of input 0 of every If.
    Why it matters:
        The specification asks for boolean. OpenVINO reads anything, but its CPU looks at the first byte only: 2.0 and 256 are false.
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
                advice="Anything but 0 counts as true here; compare with zero (NotEqual) to get the same everywhere.",
            )


def condition_shape(subject: Subject) -> Iterator[Finding]:
    """An If's condition can be no single value.

    What it does:
        Looks at the shape of input 0 of every If.
    Why it matters:
        One value decides. OpenVINO refuses a condition with more than one dimension, and takes the first of several elements; ONNX Runtime
        takes one element of any shape. Without an element there is nothing to decide by.
    Example that fails:
        a condition of shape [0], of shape [1,1] in IR, or of shape [2] in ONNX
    Example that passes:
        a condition of shape [] or [1]
    """
    for place, node, known in _conditions(subject):
        if not may_be_one_value(subject, known) and not _is_several(subject, known):
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
        Looks at the shape of input 0 of every If.
    Why it matters:
        The specification asks for one element. OpenVINO reads several, and looks at the first.
    Example that fails:
        a condition of shape [2]
    Example that passes:
        a condition of shape [] or [1]
    """
    for place, node, known in _conditions(subject):
        if _is_several(subject, known):
            yield _shape_finding(
                subject, place, node, known, "The first element decides, as in OpenVINO."
            )


def _is_several(subject: Subject, known: Known) -> bool:
    """Whether a condition is a list of several elements, of which OpenVINO takes the first."""
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
        Looks for a Result in both bodies of every If.
    Why it matters:
        A branch without a Result gives the If nothing to hand out. OpenVINO refuses such a file.
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
    """The branches of an If give different numbers of outputs.

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
                f"The branches give different numbers of outputs: {spelled}.",
                found=spelled,
                expected=f"{len(node.outputs)} each",
                advice="Map a Result of each branch to every output.",
            )


def branch_output_types(subject: Subject) -> Iterator[Finding]:
    """The branches of an If give an output of different element types.

    What it does:
        Compares the element types of matching outputs of both branches, where they are known.
    Why it matters:
        Whatever uses the output can be right for one of them only. OpenVINO refuses such a file.
    Example that fails:
        output 0 is f32 in the then branch and i32 in the else branch
    Example that passes:
        f32 in both
    """
    for place, node, index, found in _outputs(subject):
        types = [known.element_type for known in found]
        if None not in types and len(set(types)) > 1:
            spelled = " and ".join(
                f"{one} in the {body.name} branch"
                for one, body in zip(types, node.bodies, strict=True)
            )
            yield Finding(
                subject.where(place, node, f"output {index}"),
                f"Output {index} is {spelled}.",
                found=", ".join(str(one) for one in types),
                expected="one element type",
                advice="Convert one of them in its branch.",
            )


def branch_output_ranks(subject: Subject) -> Iterator[Finding]:
    """The branches of an If give an output of different numbers of dimensions.

    What it does:
        Compares the ranks of matching outputs of both branches, where they are known.
    Why it matters:
        The common shape has no known rank, which OpenVINO's CPU refuses to run.
    Example that fails:
        output 0 has shape [3] in the then branch and [1,3] in the else branch
    Example that passes:
        shapes [1,3] and [2,3]
    """
    for place, node, index, found in _outputs(subject):
        ranks = [known.shape.rank for known in found]
        if None not in ranks and len(set(ranks)) > 1:
            spelled = " and ".join(
                f"{known.shape} in the {body.name} branch"
                for known, body in zip(found, node.bodies, strict=True)
            )
            yield Finding(
                subject.where(place, node, f"output {index}"),
                f"Output {index} has shape {spelled}.",
                found=", ".join(f"rank {rank}" for rank in ranks),
                expected="one rank",
                advice="It runs here; for OpenVINO reshape one of them in its branch.",
            )


def _outputs(subject: Subject) -> Iterator[tuple[PlacedGraph, Node, int, list[Known]]]:
    """Each output of each If whose condition is not constant, with what is known of it in each
    branch.
    """
    for place, node in subject.ifs:
        regions = subject.regions_of(node)
        if any(region.within.address in subject.never_run for region in regions):
            continue
        for index in range(min(len(body.outer_outputs) for body in node.bodies)):
            found = [
                subject.parameter(region, region.body.outer_outputs[index].internal)
                for region in regions
            ]
            yield place, node, index, found


def result_of_two_outputs(subject: Subject) -> Iterator[Finding]:
    """A port map of an If makes two outputs of one Result.

    What it does:
        Looks for a Result that several outputs of then_port_map, or of else_port_map, name.
    Why it matters:
        OpenVINO refuses such a file (in the port map of a Loop it takes them).
    Example that fails:
        two <output> with internal_layer_id="4" in then_port_map
    Example that passes:
        a Result of its own for each output
    """
    for region in subject.regions if subject.is_openvino else ():
        if region.node.type != IF:
            continue
        for layer, count in Counter(entry.internal for entry in region.body.outer_outputs).items():
            if count > 1:
                yield Finding(
                    subject.where(region.place, region.node, f"{region.body.name} layer {layer}"),
                    f"{count} outputs of the {region.part} are made of Result {layer}.",
                    found=f"{count} port map outputs with internal_layer_id {layer}",
                    expected="a Result of its own for each output",
                    advice="Correct internal_layer_id, or add a Result that the same layer feeds.",
                )


def if_without_outputs(subject: Subject) -> Iterator[Finding]:
    """An If gives nothing.

    What it does:
        Looks for If nodes without an output port whose branches give no output either.
    Why it matters:
        The specification asks for at least one output: what the branches compute is lost. OpenVINO reads such a file.
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
                advice="It runs, and nothing of it is used; map a Result of each branch to an output, or remove the If.",
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
