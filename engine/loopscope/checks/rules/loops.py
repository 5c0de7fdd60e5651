"""Rules of Loop-5: trip count, conditions, iteration number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import Finding, Rule, Subject
from loopscope.errors import Where
from loopscope.ir.element_type import FLOATS, INDEX_TYPES, ElementType
from loopscope.ops.declare import Known

_CONDITION_TYPES = frozenset({ElementType.BOOLEAN, ElementType.U8})

_REDUCE_ADVICE = "Reduce it to one value (ReduceLogicalAnd, Squeeze, Gather)."
_INVALID_COUNT_TYPES = FLOATS | {
    ElementType.BOOLEAN,
    ElementType.STRING,
    ElementType.I8,
    ElementType.U8,
}


def no_execution_condition(subject: Subject) -> Iterator[Finding]:
    """A Loop's body has no condition for the next iteration.

    What it does:
        Looks for a port map output with purpose="execution_condition" in every Loop.
    Why it matters:
        Nothing determines whether another iteration follows. OpenVINO refuses such a file.
    Example that fails:
        a Loop's port_map without purpose="execution_condition"
    Example that passes:
        <output external_port_id="-1" internal_layer_id="9" purpose="execution_condition"/>
    """
    if not subject.is_openvino:
        return
    for region in subject.loops:
        if not any(entry.purpose == "execution_condition" for entry in region.body.outputs):
            yield Finding(
                subject.where(region.place, region.node),
                "The Loop has no execution condition.",
                found=f"{len(region.body.outputs)} port map outputs, none with purpose "
                "execution_condition",
                expected="one output with this purpose",
                advice="Map a boolean Result of the body; a loop that only counts needs a "
                "constant true.",
            )


def several_execution_conditions(subject: Subject) -> Iterator[Finding]:
    """A Loop has several execution conditions.

    What it does:
        Counts the port map outputs with purpose="execution_condition".
    Why it matters:
        A single value determines whether another iteration follows. OpenVINO reads such a file.
    Example that fails:
        two outputs with purpose="execution_condition"
    Example that passes:
        one output with purpose="execution_condition"
    """
    for region in subject.loops:
        conditions = [
            entry for entry in region.body.outputs if entry.purpose == "execution_condition"
        ]
        if len(conditions) > 1:
            yield Finding(
                subject.where(region.place, region.node),
                f"The Loop has {len(conditions)} execution conditions.",
                found=f"Results {', '.join(str(entry.internal) for entry in conditions[:8])}",
                expected="one",
                advice="The first one is used.",
            )


def _conditions(subject: Subject) -> Iterator[tuple[Where, str, Known]]:
    """Yield place, title and knowledge for the initial and the execution condition of every
    Loop.
    """
    for region in subject.loops:
        outer = subject.outer(region)
        if len(outer) > 1:
            yield (
                subject.where(region.place, region.node, "input 1"),
                "The initial condition",
                outer[1],
            )
        entry = next(
            (entry for entry in region.body.outputs if entry.purpose == "execution_condition"), None
        )
        node = region.body.graph.by_id.get(entry.internal) if entry else None
        if node is not None:
            yield (
                subject.where(region.body_place, node),
                "The execution condition",
                subject.parameter(region, node.id),
            )


def condition_not_boolean(subject: Subject) -> Iterator[Finding]:
    """A Loop's condition is not a boolean.

    What it does:
        Checks the element types of the initial condition (input 1) and of the body's condition
        Result.
    Why it matters:
        The specification requires boolean. OpenVINO fails on types other than boolean and u8.
    Example that fails:
        a condition of f32
    Example that passes:
        a condition of boolean
    """
    for where, what, known in _conditions(subject):
        if known.element_type is not None and known.element_type not in _CONDITION_TYPES:
            yield _type_finding(
                where, what, known, "boolean", "Compare the value with zero (NotEqual) first."
            )


def condition_of_bytes(subject: Subject) -> Iterator[Finding]:
    """A Loop's condition is u8 instead of boolean.

    What it does:
        Checks the element types of the initial condition (input 1) and of the body's condition
        Result.
    Why it matters:
        The specification requires boolean. OpenVINO also reads and runs u8. For ONNX see LS704.
    Example that fails:
        a condition of u8
    Example that passes:
        a condition of boolean
    """
    for where, what, known in _conditions(subject) if subject.is_openvino else ():
        if known.element_type is ElementType.U8:
            yield _type_finding(where, what, known, "boolean", "Every value except 0 is true.")


def _type_finding(where: Where, what: str, known: Known, expected: str, advice: str) -> Finding:
    return Finding(
        where,
        f"{what} is {known.element_type}, expected {expected}.",
        found=str(known.element_type),
        expected=expected,
        advice=advice,
    )


def condition_shape(subject: Subject) -> Iterator[Finding]:
    """A Loop's condition is not a single value.

    What it does:
        Checks the shapes of the initial condition (input 1) and of the body's condition Result.
    Why it matters:
        The condition must be a scalar or one element. OpenVINO refuses other shapes; ONNX Runtime
        accepts one element of any shape.
    Example that fails:
        a condition of shape [2], or [1,1] in IR
    Example that passes:
        a condition of shape [] or [1]
    """
    for where, what, known in _conditions(subject):
        yield from _shape_findings(subject, where, what, known, _REDUCE_ADVICE)


def _shape_findings(
    subject: Subject, where: Where, what: str, known: Known, advice: str
) -> Iterator[Finding]:
    if may_be_one_value(subject, known):
        return
    yield Finding(
        where,
        f"{what} has shape {known.shape}, expected a scalar or one element.",
        found=f"shape {known.shape}",
        expected="shape [] or [1]" if subject.is_openvino else "one element",
        advice=advice,
    )


def may_be_one_value(subject: Subject, known: Known) -> bool:
    """Return True if a condition or count can have exactly one element. OpenVINO also requires at
    most one dimension.
    """
    dimensions = known.shape.dimensions
    if dimensions is None:
        return True
    return all(length.contains(1) for length in dimensions) and (
        len(dimensions) < 2 or not subject.is_openvino
    )


def _trip_counts(subject: Subject) -> Iterator[tuple[Where, Known]]:
    for region in subject.loops:
        outer = subject.outer(region)
        if outer:
            yield subject.where(region.place, region.node, "input 0"), outer[0]


def trip_count_type(subject: Subject) -> Iterator[Finding]:
    """A Loop's trip count is not an integer.

    What it does:
        Checks the element type of input 0 of every Loop.
    Why it matters:
        The specification requires i32 or i64. OpenVINO fails on floating-point numbers, booleans
        and 8-bit integers.
    Example that fails:
        a trip count of f32
    Example that passes:
        a trip count of i64
    """
    for where, known in _trip_counts(subject):
        if known.element_type in _INVALID_COUNT_TYPES:
            yield _type_finding(where, "The trip count", known, "i32 or i64", "Convert it to i64.")


def unusual_trip_count_type(subject: Subject) -> Iterator[Finding]:
    """A Loop's trip count is an integer, but neither i32 nor i64.

    What it does:
        Checks the element type of input 0 of every Loop.
    Why it matters:
        The specification requires i32 or i64. OpenVINO also runs other integer types. For ONNX see
        LS704.
    Example that fails:
        a trip count of u64
    Example that passes:
        a trip count of i64
    """
    for where, known in _trip_counts(subject) if subject.is_openvino else ():
        if (
            known.element_type is not None
            and known.element_type not in INDEX_TYPES | _INVALID_COUNT_TYPES
        ):
            yield _type_finding(
                where, "The trip count", known, "i32 or i64", "The value is used unchanged."
            )


def trip_count_shape(subject: Subject) -> Iterator[Finding]:
    """A Loop's trip count is not a single value.

    What it does:
        Checks the shape of input 0 of every Loop.
    Why it matters:
        The trip count must be a scalar or one element. OpenVINO refuses other shapes; ONNX Runtime
        accepts one element of any shape.
    Example that fails:
        a trip count of shape [2], or [1,1] in IR
    Example that passes:
        a trip count of shape [] or [1]
    """
    for where, known in _trip_counts(subject):
        yield from _shape_findings(
            subject,
            where,
            "The trip count",
            known,
            "Select one element (Gather), or apply Squeeze.",
        )


def _iteration_numbers(subject: Subject) -> Iterator[tuple[Where, Known]]:
    """Yield the declared type and shape of each Parameter that receives the iteration number."""
    for region in subject.loops:
        uses = Counter(entry.internal for entry in region.body.inputs)
        for entry in region.body.inputs:
            node = region.body.graph.by_id.get(entry.internal)
            if (
                entry.is_iteration_number
                and uses[entry.internal] == 1
                and node is not None
                and node.outputs
            ):
                port = node.outputs[0]
                yield subject.where(region.body_place, node), Known(port.element_type, port.shape)


def iteration_number_type(subject: Subject) -> Iterator[Finding]:
    """The Parameter for the iteration number is not an integer.

    What it does:
        Checks the declared element type of the Parameter with purpose="current_iteration".
    Why it matters:
        The specification requires i32 or i64. OpenVINO fails on floating-point numbers, booleans
        and 8-bit integers.
    Example that fails:
        <data element_type="f32" shape=""/>
    Example that passes:
        <data element_type="i64" shape=""/>
    """
    for where, known in _iteration_numbers(subject):
        if known.element_type in _INVALID_COUNT_TYPES:
            yield _type_finding(
                where,
                "The iteration number",
                known,
                "i32 or i64",
                "Declare it as i64, and convert it in the body.",
            )


def unusual_iteration_number_type(subject: Subject) -> Iterator[Finding]:
    """The Parameter for the iteration number is an integer, but neither i32 nor i64.

    What it does:
        Checks the declared element type of the Parameter with purpose="current_iteration".
    Why it matters:
        The specification requires i32 or i64. OpenVINO also runs other integer types.
    Example that fails:
        <data element_type="u64" shape=""/>
    Example that passes:
        <data element_type="i64" shape=""/>
    """
    for where, known in _iteration_numbers(subject):
        if (
            known.element_type is not None
            and known.element_type not in INDEX_TYPES | _INVALID_COUNT_TYPES
        ):
            yield _type_finding(
                where,
                "The iteration number",
                known,
                "i32 or i64",
                "The Parameter receives the number in its declared type.",
            )


def iteration_number_shape(subject: Subject) -> Iterator[Finding]:
    """The Parameter for the iteration number is not a single value.

    What it does:
        Checks the declared shape of the Parameter with purpose="current_iteration".
    Why it matters:
        The iteration number is a scalar or one element. OpenVINO refuses anything else.
    Example that fails:
        <data element_type="i64" shape="1,1"/>
    Example that passes:
        <data element_type="i64" shape=""/>
    """
    for where, known in _iteration_numbers(subject):
        yield from _shape_findings(
            subject,
            where,
            "The iteration number",
            known,
            "Declare it as a scalar, and reshape it in the body.",
        )


RULES = (
    Rule(
        "LS511",
        "no-execution-condition",
        Severity.ERROR,
        no_execution_condition,
        before_running=True,
    ),
    Rule(
        "LS512", "condition-not-boolean", Severity.ERROR, condition_not_boolean, before_running=True
    ),
    Rule("LS513", "condition-shape", Severity.ERROR, condition_shape, before_running=True),
    Rule("LS514", "trip-count-type", Severity.ERROR, trip_count_type, before_running=True),
    Rule("LS515", "trip-count-shape", Severity.ERROR, trip_count_shape, before_running=True),
    Rule(
        "LS516", "iteration-number-type", Severity.ERROR, iteration_number_type, before_running=True
    ),
    Rule(
        "LS517",
        "iteration-number-shape",
        Severity.ERROR,
        iteration_number_shape,
        before_running=True,
    ),
    Rule("LS518", "several-execution-conditions", Severity.WARNING, several_execution_conditions),
    Rule("LS519", "condition-of-bytes", Severity.NOTE, condition_of_bytes),
    Rule("LS520", "unusual-trip-count-type", Severity.NOTE, unusual_trip_count_type),
    Rule("LS521", "unusual-iteration-number-type", Severity.NOTE, unusual_iteration_number_type),
)
