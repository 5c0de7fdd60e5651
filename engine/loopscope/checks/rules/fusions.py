"""Rules about loops that a runtime replaces, or that a converter has changed (measured on
OpenVINO 2026.4 CPU and its PyTorch frontend).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loopscope.checks import trips
from loopscope.checks.diagnostic import Severity
from loopscope.checks.known import computed, of_constant, same, scalar_value
from loopscope.checks.order import backwards, dependencies, order
from loopscope.checks.propagate import propagate
from loopscope.checks.region import bindings
from loopscope.checks.rule import OPENVINO, Finding, Rule
from loopscope.checks.rules.suspicious import execution_condition, trip_count
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.ir.address import ROOT
from loopscope.ir.model import Edge, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import NOTHING_KNOWN, AttributeProblem, Known, typed

_LENGTHS = frozenset(
    {"Convert", "Gather", "Reshape", "Slice", "Squeeze", "StridedSlice", "Unsqueeze"}
)
"""Operations that pick a length out of a shape."""
_GIVEN = frozenset({"Const", "Constant", "Parameter"})
"""What a body hands on without computing it."""
_NUMBERS = frozenset(
    {
        "Abs",
        "Add",
        "Cast",
        "Div",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "ReduceMax",
        "ReduceMin",
        "ReduceSum",
        "Sub",
    }
)
_TRUTHS = frozenset(
    {
        "And",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "Identity",
        "Less",
        "LessOrEqual",
        "Not",
        "Or",
        "Where",
        "Xor",
    }
)
_PARTS = frozenset({"Gather", "Reshape", "Shape", "Size", "Slice", "Squeeze", "Unsqueeze"})
_OF_CONDITIONS = _NUMBERS | _TRUTHS | _PARTS
"""Operations of ONNX that conditions are computed with, none of which makes a large tensor of
small ones.
"""
_NO_LIMIT = 2**31 - 1
"""The trip count from which OpenVINO's PyTorch frontend means no limit; a negative one means
none either.
"""


def fused_recurrence(subject: Subject) -> Iterator[Finding]:
    """A Loop is a gated delta net that does not visit all slices.

    What it does:
        Looks for the cell of linear attention, as exporters write it, in a Loop whose trip count is not the length of the sliced inputs, or
        whose condition is not constant true.
    Why it matters:
        OpenVINO's CPU runs such a Loop as one GatedDeltaNet, which reads all slices, whatever the trip count and the condition say.
    Example that fails:
        trip count 5, sliced inputs of 16 parts
    Example that passes:
        trip count Gather(ShapeOf(value), 2), condition constant true
    """
    for region in subject.loops:
        if not is_gated_delta_net(region):
            continue
        again, count = execution_condition(subject, region), trip_count(subject, region)
        parts = trips.of_slices(region.body, subject.outer(region))
        if again is not None and scalar_value(again) is not True:
            found = "a condition that the body computes"
        elif count is not None and not (parts.is_static and parts.length == count) and count >= 0:
            found = f"trip count {count:,}"
        elif count is None and not _is_a_length(region.place.graph, region.node):
            found = "a trip count that is no length of a tensor"
        else:
            continue
        yield Finding(
            subject.where(region.place, region.node, "input 0"),
            "OpenVINO's CPU runs this Loop as one GatedDeltaNet: that reads all slices, whatever the trip count and the condition say.",
            found=found,
            expected="a trip count that is the length of the sliced inputs, and a condition that is constant true",
            advice="Here the Loop ends where it says. Slice the inputs to the length that is meant, to get the same everywhere.",
        )


def is_gated_delta_net(region: CheckedRegion) -> bool:
    """Whether the body updates a state as S * exp(g) + k * delta, and writes sum(S * q) into its
    output with ScatterUpdate.
    """
    graph = region.within.graph
    ends = [
        _skipped(graph, source.layer)
        for node in graph.nodes
        if node.type == "Result"
        for source in graph.sources[node.id]
        if source
    ]
    written = next((node for node in ends if node.type == "ScatterUpdate"), None)
    state = next((node for node in ends if node.type == "Add"), None)
    if written is None or state is None:
        return False
    total = _operands(graph, written)[2:3]
    products = [
        product
        for node in total
        if node.type == "ReduceSum"
        for product in _operands(graph, node)[:1]
    ]
    reads_state = any(
        state.id in [one.id for one in _operands(graph, product)]
        for product in products
        if product.type == "Multiply"
    )
    terms = _operands(graph, state)
    decays = any(_is_decayed(graph, term) for term in terms)
    return reads_state and decays and [term.type for term in terms] == ["Multiply", "Multiply"]


def _is_decayed(graph: ModelGraph, product: Node) -> bool:
    spread = (one for one in _operands(graph, product) if one.type == "Unsqueeze")
    return any(inner.type == "Exp" for one in spread for inner in _operands(graph, one)[:1])


def _operands(graph: ModelGraph, node: Node) -> Sequence[Node]:
    return [
        _skipped(graph, source.layer) for source in graph.sources[node.id] if source is not None
    ]


def _skipped(graph: ModelGraph, layer: LayerId) -> Node:
    """The node that computes a value, whatever its type was converted to."""
    node = graph.by_id[layer]
    for _, node in backwards(graph, OutputRef(layer, 0)):
        if node.type != "Convert":
            break
    return node


def _is_a_length(graph: ModelGraph, loop: Node) -> bool:
    """Whether a Loop's trip count is picked out of a shape."""
    for _, node in backwards(graph, _first(graph, loop)):
        if node.type not in _LENGTHS:
            return node.type == "ShapeOf"
    return False


def _first(graph: ModelGraph, node: Node) -> OutputRef | None:
    """What feeds a node's first input; None also where a damaged file has left it no inputs."""
    return next(iter(graph.sources[node.id]), None)


def while_as_do_while(subject: Subject) -> Iterator[Finding]:
    """A Loop without a trip count asks its condition only after the first iteration.

    What it does:
        Looks for Loops without a trip count whose first condition is a Const, true, and whose body compares what it carries. The condition
        is computed on the initial values, as far as these are known: where it is true, there is nothing to note. A first condition that
        is computed, if only from constants, asks before the first iteration: nothing to note either.
    Why it matters:
        OpenVINO's PyTorch frontend makes such a Loop of torch.while_loop: where the condition is false at the start, PyTorch runs
        0 iterations and this Loop 1.
    Example that fails:
        trip count -1, first condition constant true, condition i < n in the body
    Example that passes:
        i < n as first condition too
    """
    for region in subject.loops:
        count, starts, again = (
            trip_count(subject, region),
            scalar_value(subject.outer(region)[1]),
            execution_condition(subject, region),
        )
        if (
            count is None
            or 0 <= count < _NO_LIMIT
            or starts is not True
            or again is None
            or scalar_value(again) is not None
        ):
            continue
        if _asks_first(region) or not _asks_what_it_carries(region):
            continue
        first = scalar_value(condition_on_initial_values(subject, region))
        if first:
            continue
        where = subject.where(region.place, region.node, "input 1")
        expected = "the same condition before the first iteration, if the source is a while loop"
        if first is None:
            yield Finding(
                where,
                "This Loop runs at least once; a while loop that it was converted from may run 0 times.",
                found="a first condition that is constant true, and a condition that the body computes from what it carries",
                expected=expected,
                advice="It is right where the source is a do-while loop; else compute the condition before the Loop too.",
            )
        else:
            yield Finding(
                where,
                "This Loop runs once although its condition is false on the initial values: a while loop runs 0 times, one fewer.",
                found="a first condition that is constant true, and a condition that is false on the initial values",
                expected=expected,
                advice="Compute the condition before the Loop too, unless the source is a do-while loop.",
                severity=Severity.WARNING,
            )


def condition_on_initial_values(subject: Subject, region: CheckedRegion) -> Known:
    """Compute what is known of a Loop's condition if it is asked of the initial values, before the
    first iteration.

    The body computes the condition from the values that it hands on: the initial value takes the
    place of each of them.
    """
    graph = region.body.graph
    initial = bindings(region.node, region.body, subject.outer(region), None)
    condition = next(
        entry.internal for entry in region.body.outputs if entry.purpose == "execution_condition"
    )
    handed: dict[OutputRef, Known] = {}
    for edge in region.body.back_edges:
        source = next(iter(graph.sources.get(edge.from_layer, ())), None)
        if (
            source is None
            or edge.from_layer == condition
            or graph.by_id[source.layer].type in _GIVEN
        ):
            continue
        value = initial.get(edge.to_layer, NOTHING_KNOWN)
        handed[source] = (
            value if source not in handed or same(value, handed[source]) else NOTHING_KNOWN
        )
    free = max(graph.by_id, default=0) + 1
    entering = {source: LayerId(number) for number, source in enumerate(handed, free)}
    ports = {
        OutputRef(node.id, index): (node.id, port.id)
        for node in graph.nodes
        for index, port in enumerate(node.outputs)
    }
    cut = {ports[source]: layer for source, layer in entering.items() if source in ports}
    edges = tuple(
        edge
        if (layer := cut.get((edge.from_layer, edge.from_port))) is None
        else Edge(layer, 0, edge.to_layer, edge.to_port)
        for edge in graph.edges
    )
    parameters = tuple(
        Node(layer, f"initial {layer}", "Parameter", outputs=(Port(0),))
        for layer in entering.values()
    )
    asked = ModelGraph((*graph.nodes, *parameters), edges)
    needed = {condition, *dependencies(asked, condition)}
    asked = ModelGraph(
        tuple(node for node in asked.nodes if node.id in needed),
        tuple(edge for edge in edges if edge.to_layer in needed),
    )
    values = {**initial, **{layer: handed[source] for source, layer in entering.items()}}
    if subject.is_openvino:
        return propagate(replace(subject.model, graph=asked), subject.catalogue, values).output(
            ROOT, condition
        )
    return _folded(subject, asked, values)[condition]


def _folded(
    subject: Subject, graph: ModelGraph, values: Mapping[LayerId, Known]
) -> Mapping[LayerId, Known]:
    """Compute the first output of each node from known inputs: ONNX has no rules by which
    propagation could do so.
    """
    known: dict[LayerId, Known] = {}
    for layer in order(graph).layers:
        node, sources = graph.by_id[layer], graph.sources[layer]
        inputs = [
            known[source.layer] if source is not None and not source.output else NOTHING_KNOWN
            for source in sources
        ]
        if node.type == "Parameter":
            known[layer] = values.get(layer, NOTHING_KNOWN)
        elif node.constant is not None:
            known[layer] = of_constant(node)
        elif node.type == "Result":
            known[layer] = inputs[0] if inputs else NOTHING_KNOWN
        else:
            known[layer] = _computed(subject, node, inputs)
    return known


def _computed(subject: Subject, node: Node, inputs: Sequence[Known]) -> Known:
    operation = subject.operation(node)
    if (
        operation is None
        or not operation.pure
        or node.type not in _OF_CONDITIONS
        or len(node.outputs) != 1
    ):
        return NOTHING_KNOWN
    try:
        attributes = typed(operation, node.attributes)
    except (AttributeProblem, TypeError, LookupError):
        return NOTHING_KNOWN
    return computed(operation, inputs, attributes, [Known(shape=PartialShape(()))])[0]


def _asks_first(region: CheckedRegion) -> bool:
    """Whether the first condition is computed in the model, as ``0 < 20`` is where the source
    tests before it runs.
    """
    graph = region.place.graph
    source = next(iter(graph.sources[region.node.id][1:]), None)
    return source is not None and graph.by_id[source.layer].type not in ("Const", "Parameter")


def _asks_what_it_carries(region: CheckedRegion) -> bool:
    graph = region.within.graph
    condition = next(
        entry.internal for entry in region.body.outputs if entry.purpose == "execution_condition"
    )
    carried = {edge.to_layer for edge in region.body.back_edges if edge.from_layer != condition}
    return not dependencies(graph, condition).isdisjoint(carried)


RULES = (
    Rule("LS930", "fused-recurrence", Severity.WARNING, fused_recurrence, runtimes=OPENVINO),
    Rule("LS931", "while-as-do-while", Severity.NOTE, while_as_do_while),
)
