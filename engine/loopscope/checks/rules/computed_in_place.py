"""Rules about values that OpenVINO 2026.4's CPU computes in the memory of what they are computed
from.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import backwards
from loopscope.checks.rule import OPENVINO, Finding, Rule
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.ir.model import LayerId, Node, OutputRef
from loopscope.ir.shape import static

_RESHAPING = frozenset({"Squeeze", "Unsqueeze", "Reshape"})
_BEHIND = _RESHAPING | {"Tanh", "SoftMax", "Softmax"}
_WRITES_OVER_ITS_FIRST = frozenset({"Add", "Subtract", "Multiply"})


def state_in_a_slice(subject: Subject) -> Iterator[Finding]:
    """A carried value is computed in the memory of a part, which the next part overwrites first.

    What it does:
        Looks for back edges whose Result is a sum, difference or product, or its Tanh or SoftMax, with a sliced input in another shape
        as the first operand, which nothing else reads, and a Parameter or a MatMul as the second.
    Why it matters:
        OpenVINO's CPU writes the result over its first operand where nothing else reads that. Then it takes the next parts, and copies
        along the back edges afterwards: what is carried is the next part, wrong from the second iteration on.
    Example that fails:
        x + state goes back to state, where x is a row of a matrix that is sliced, without its first axis
    Example that passes:
        state + x
    """
    for region in subject.iterating:
        if subject.trips(region) == static(1):
            continue
        for edge in region.body.back_edges:
            operation = _over_a_part(subject, region, edge.from_layer)
            if operation is not None:
                yield Finding(
                    subject.where(region.within, operation),
                    "OpenVINO's CPU writes it over the part, and the next part over it before it is carried: wrong from iteration 1 on.",
                    found="a part as the first operand",
                    expected="the part as the second operand",
                    advice="Here the next iteration gets what was computed; for OpenVINO exchange the operands.",
                )


def _over_a_part(subject: Subject, region: CheckedRegion, result: LayerId) -> Node | None:
    """The operation whose result is carried, and whose first operand is a part that nothing else
    reads.
    """
    behind = _through(region, _from(region, result), _BEHIND)
    if behind is None or behind.type not in _WRITES_OVER_ITS_FIRST:
        return None
    first, second = (*region.body.graph.sources.get(behind.id, ()), None, None)[:2]
    part, other = (
        _through(region, first, _RESHAPING),
        None if second is None else region.body.graph.by_id.get(second.layer),
    )
    if part is None or part.type != "Parameter" or (first is not None and first.layer == part.id):
        return None
    if (
        other is None
        or other.type not in ("Parameter", "MatMul")
        or not subject.parameter(region, part.id).shape.is_static
    ):
        return None
    return (
        behind
        if any(one.internal == part.id and one.axis is not None for one in region.body.inputs)
        else None
    )


def _through(region: CheckedRegion, source: OutputRef | None, types: frozenset[str]) -> Node | None:
    """The node that a tensor comes from, before operations of these types; None where one of the
    tensors on the way has several readers.
    """
    graph = region.body.graph
    for tensor, node in backwards(graph, source):
        if len(graph.consumers.get(tensor, ())) != 1:
            return None
        if node.type not in types:
            return node
    return None


def _from(region: CheckedRegion, layer: LayerId) -> OutputRef | None:
    return (region.body.graph.sources.get(layer) or (None,))[0]


RULES = (Rule("LS920", "state-in-a-slice", Severity.WARNING, state_in_a_slice, runtimes=OPENVINO),)
