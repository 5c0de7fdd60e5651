"""The rule about values that OpenVINO 2026.4's CPU computes in the memory of their operands."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import backwards
from loopscope.checks.rule import OPENVINO, Finding, Rule
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.ir.model import LayerId, Node, OutputRef
from loopscope.ir.shape import static

_RESHAPING = frozenset({"Squeeze", "Unsqueeze", "Reshape"})
_SKIPPED_TYPES = _RESHAPING | {"Tanh", "SoftMax", "Softmax"}
_IN_PLACE_TYPES = frozenset({"Add", "Subtract", "Multiply"})


def state_in_a_slice(subject: Subject) -> Iterator[Finding]:
    """A carried value is computed in the memory of a slice, which the next slice overwrites.

    What it does:
        Looks for back edges whose Result is a sum, difference or product, or the Tanh or SoftMax of
        one. The first operand is a reshaped slice that nothing else reads. The second operand is a
        Parameter or a MatMul.
    Why it matters:
        OpenVINO's CPU writes the result over its first operand if nothing else reads that operand.
        It loads the next slices before it copies along the back edges. The carried value is then
        the next slice, wrong from the second iteration on.
    Example that fails:
        x + state goes back to state, where x is a row of a sliced matrix, without its first axis
    Example that passes:
        state + x
    """
    for region in subject.iterating:
        if subject.trips(region) == static(1):
            continue
        for edge in region.body.back_edges:
            operation = _operation_over_slice(subject, region, edge.from_layer)
            if operation is not None:
                yield Finding(
                    subject.where(region.within, operation),
                    "OpenVINO's CPU stores this result in the memory of the slice and overwrites "
                    "it with the next slice before carrying it: wrong from iteration 1 on.",
                    found="a slice as the first operand",
                    expected="the slice as the second operand",
                    advice="Loopscope carries the computed value; for OpenVINO exchange the "
                    "operands.",
                )


def _operation_over_slice(subject: Subject, region: CheckedRegion, result: LayerId) -> Node | None:
    """Return the operation that computes a carried Result from a slice that nothing else reads, or
    None.
    """
    operation = _single_reader_origin(region, _result_source(region, result), _SKIPPED_TYPES)
    if operation is None or operation.type not in _IN_PLACE_TYPES:
        return None
    first, second = (*region.body.graph.sources.get(operation.id, ()), None, None)[:2]
    slice_node = _single_reader_origin(region, first, _RESHAPING)
    other = None if second is None else region.body.graph.by_id.get(second.layer)
    if (
        slice_node is None
        or slice_node.type != "Parameter"
        or (first is not None and first.layer == slice_node.id)
    ):
        return None
    if (
        other is None
        or other.type not in ("Parameter", "MatMul")
        or not subject.parameter(region, slice_node.id).shape.is_static
    ):
        return None
    return (
        operation
        if any(
            entry.internal == slice_node.id and entry.axis is not None
            for entry in region.body.inputs
        )
        else None
    )


def _single_reader_origin(
    region: CheckedRegion, source: OutputRef | None, types: frozenset[str]
) -> Node | None:
    """Return the producer of a tensor, skipping operations of these types.

    The result is None if a tensor on the way has several readers.
    """
    graph = region.body.graph
    for tensor, node in backwards(graph, source):
        if len(graph.consumers.get(tensor, ())) != 1:
            return None
        if node.type not in types:
            return node
    return None


def _result_source(region: CheckedRegion, layer: LayerId) -> OutputRef | None:
    return (region.body.graph.sources.get(layer) or (None,))[0]


RULES = (Rule("LS920", "state-in-a-slice", Severity.WARNING, state_in_a_slice, runtimes=OPENVINO),)
