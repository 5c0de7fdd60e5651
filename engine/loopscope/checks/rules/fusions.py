"""Rules about loops that a runtime fuses or that a converter changed (measured on OpenVINO 2026.4
CPU and its PyTorch frontend).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loopscope.checks import trips
from loopscope.checks.diagnostic import Severity
from loopscope.checks.known import computed, of_constant, same, scalar_value
from loopscope.checks.order import backwards, dependencies, order
from loopscope.checks.propagate import propagate
from loopscope.checks.region import bindings
from loopscope.checks.rule import OPENVINO, CheckedRegion, Finding, Rule, Subject
from loopscope.checks.rules.suspicious import execution_condition, trip_count
from loopscope.ir.address import ROOT
from loopscope.ir.model import Edge, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import NOTHING_KNOWN, AttributeProblem, Known, typed

_LENGTHS = frozenset(
    {"Convert", "Gather", "Reshape", "Slice", "Squeeze", "StridedSlice", "Unsqueeze"}
)
"""Operations that extract a length from a shape."""
_PASSED_ON_TYPES = frozenset({"Const", "Constant", "Parameter"})
"""Types of nodes whose value a body passes on without computing it."""
_ARITHMETIC_TYPES = frozenset(
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
_LOGIC_TYPES = frozenset(
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
_SHAPE_TYPES = frozenset({"Gather", "Reshape", "Shape", "Size", "Slice", "Squeeze", "Unsqueeze"})
_CONDITION_TYPES = _ARITHMETIC_TYPES | _LOGIC_TYPES | _SHAPE_TYPES
"""ONNX operations that compute conditions; none of them makes a large tensor from small ones."""
_NO_LIMIT = 2**31 - 1
"""Trip count from which OpenVINO's PyTorch frontend means no limit; a negative trip count also
means no limit.
"""


def fused_recurrence(subject: Subject) -> Iterator[Finding]:
    """A Loop is a gated delta net that does not read all slices.

    What it does:
        Looks for the cell of linear attention, as exporters write it, in a Loop. The trip count is
        not the length of the sliced inputs, or the condition is not constant true.
    Why it matters:
        OpenVINO's CPU runs such a Loop as one GatedDeltaNet, which reads all slices and ignores the
        trip count and the condition.
    Example that fails:
        trip count 5, sliced inputs of 16 slices
    Example that passes:
        trip count Gather(ShapeOf(value), 2), condition constant true
    """
    for region in subject.loops:
        if not is_gated_delta_net(region):
            continue
        condition, count = execution_condition(subject, region), trip_count(subject, region)
        parts = trips.of_slices(region.body, subject.outer(region))
        if condition is not None and scalar_value(condition) is not True:
            problem = "a condition that the body computes"
        elif count is not None and not (parts.is_static and parts.length == count) and count >= 0:
            problem = f"trip count {count:,}"
        elif count is None and not _is_length(region.place.graph, region.node):
            problem = "a trip count that is not the length of a tensor"
        else:
            continue
        yield Finding(
            subject.where(region.place, region.node, "input 0"),
            "OpenVINO's CPU runs this Loop as one GatedDeltaNet, which reads all slices and "
            "ignores the trip count and the condition.",
            found=problem,
            expected="the length of the sliced inputs as trip count, and a constant true condition",
            advice="Loopscope respects trip count and condition. Slice the inputs to the intended "
            "length to get equal results everywhere.",
        )


def is_gated_delta_net(region: CheckedRegion) -> bool:
    """Return True if the body computes the state as S * exp(g) + k * delta, and writes sum(S * q)
    into its output with ScatterUpdate.
    """
    graph = region.body_place.graph
    ends = [
        _without_converts(graph, source.layer)
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
        state.id in [operand.id for operand in _operands(graph, product)]
        for product in products
        if product.type == "Multiply"
    )
    terms = _operands(graph, state)
    decays = any(_is_decayed(graph, term) for term in terms)
    return reads_state and decays and [term.type for term in terms] == ["Multiply", "Multiply"]


def _is_decayed(graph: ModelGraph, product: Node) -> bool:
    spread = (factor for factor in _operands(graph, product) if factor.type == "Unsqueeze")
    return any(inner.type == "Exp" for factor in spread for inner in _operands(graph, factor)[:1])


def _operands(graph: ModelGraph, node: Node) -> Sequence[Node]:
    return [
        _without_converts(graph, source.layer)
        for source in graph.sources[node.id]
        if source is not None
    ]


def _without_converts(graph: ModelGraph, layer: LayerId) -> Node:
    """Return the node that computes a value, skipping Convert."""
    node = graph.by_id[layer]
    for _, node in backwards(graph, OutputRef(layer, 0)):
        if node.type != "Convert":
            break
    return node


def _is_length(graph: ModelGraph, loop: Node) -> bool:
    """Return True if a Loop's trip count is extracted from a shape."""
    for _, node in backwards(graph, _first_source(graph, loop)):
        if node.type not in _LENGTHS:
            return node.type == "ShapeOf"
    return False


def _first_source(graph: ModelGraph, node: Node) -> OutputRef | None:
    """Return the source of a node's first input, or None if a damaged file has no inputs for it."""
    return next(iter(graph.sources[node.id]), None)


def while_as_do_while(subject: Subject) -> Iterator[Finding]:
    """A Loop without a trip count evaluates its condition only after the first iteration.

    What it does:
        Looks for Loops without a trip count whose initial condition is a constant true, and whose
        body computes the condition from carried values. The condition is evaluated on the initial
        values, as far as they are known; if it is true, nothing is reported. An initial condition
        that is computed, even from constants only, is not reported either.
    Why it matters:
        OpenVINO's PyTorch frontend converts torch.while_loop to such a Loop. If the condition is
        false at the start, PyTorch runs 0 iterations and this Loop runs 1.
    Example that fails:
        trip count -1, initial condition constant true, condition i < n in the body
    Example that passes:
        i < n as initial condition too
    """
    for region in subject.loops:
        count = trip_count(subject, region)
        starts = scalar_value(subject.outer(region)[1])
        condition = execution_condition(subject, region)
        if (
            count is None
            or 0 <= count < _NO_LIMIT
            or starts is not True
            or condition is None
            or scalar_value(condition) is not None
        ):
            continue
        if _tests_first(region) or not _depends_on_carried(region):
            continue
        first = scalar_value(condition_on_initial_values(subject, region))
        if first:
            continue
        where = subject.where(region.place, region.node, "input 1")
        expected = "the same condition before the first iteration, if the source is a while loop"
        if first is None:
            yield Finding(
                where,
                "This Loop runs at least once; if it was converted from a while loop, that may "
                "run 0 times.",
                found="a constant true initial condition, and a condition that the body computes "
                "from carried values",
                expected=expected,
                advice="Correct if the source is a do-while loop; otherwise compute the condition "
                "before the Loop too.",
            )
        else:
            yield Finding(
                where,
                "This Loop runs once although its condition is false for the initial values; a "
                "while loop runs 0 times.",
                found="a constant true initial condition, and a condition that is false for the "
                "initial values",
                expected=expected,
                advice="Compute the condition before the Loop too, unless the source is a "
                "do-while loop.",
                severity=Severity.WARNING,
            )


def condition_on_initial_values(subject: Subject, region: CheckedRegion) -> Known:
    """Return the knowledge about a Loop's condition evaluated on the initial values, before the
    first iteration.

    The body computes the condition from the values that it carries; each of them is replaced by its
    initial value.
    """
    graph = region.body.graph
    initial = bindings(region.node, region.body, subject.outer(region), None)
    condition = next(
        entry.internal for entry in region.body.outputs if entry.purpose == "execution_condition"
    )
    replaced: dict[OutputRef, Known] = {}
    for edge in region.body.back_edges:
        source = next(iter(graph.sources.get(edge.from_layer, ())), None)
        if (
            source is None
            or edge.from_layer == condition
            or graph.by_id[source.layer].type in _PASSED_ON_TYPES
        ):
            continue
        value = initial.get(edge.to_layer, NOTHING_KNOWN)
        replaced[source] = (
            value if source not in replaced or same(value, replaced[source]) else NOTHING_KNOWN
        )
    free = max(graph.by_id, default=0) + 1
    replacements = {source: LayerId(number) for number, source in enumerate(replaced, free)}
    ports = {
        OutputRef(node.id, index): (node.id, port.id)
        for node in graph.nodes
        for index, port in enumerate(node.outputs)
    }
    cut = {ports[source]: layer for source, layer in replacements.items() if source in ports}
    edges = tuple(
        edge
        if (layer := cut.get((edge.from_layer, edge.from_port))) is None
        else Edge(layer, 0, edge.to_layer, edge.to_port)
        for edge in graph.edges
    )
    parameters = tuple(
        Node(layer, f"initial {layer}", "Parameter", outputs=(Port(0),))
        for layer in replacements.values()
    )
    subgraph = ModelGraph((*graph.nodes, *parameters), edges)
    needed = {condition, *dependencies(subgraph, condition)}
    subgraph = ModelGraph(
        tuple(node for node in subgraph.nodes if node.id in needed),
        tuple(edge for edge in edges if edge.to_layer in needed),
    )
    values = {**initial, **{layer: replaced[source] for source, layer in replacements.items()}}
    if subject.is_openvino:
        return propagate(replace(subject.model, graph=subgraph), subject.catalogue, values).output(
            ROOT, condition
        )
    return _fold(subject, subgraph, values).get(condition, NOTHING_KNOWN)


def _fold(
    subject: Subject, graph: ModelGraph, values: Mapping[LayerId, Known]
) -> Mapping[LayerId, Known]:
    """Return the first output of each node, computed from known inputs.

    ONNX operations lack the shape rules that propagation needs.
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
            known[layer] = _fold_node(subject, node, inputs)
    return known


def _fold_node(subject: Subject, node: Node, inputs: Sequence[Known]) -> Known:
    operation = subject.operation(node)
    if (
        operation is None
        or not operation.pure
        or node.type not in _CONDITION_TYPES
        or len(node.outputs) != 1
    ):
        return NOTHING_KNOWN
    try:
        attributes = typed(operation, node.attributes)
    except (AttributeProblem, TypeError, LookupError):
        return NOTHING_KNOWN
    return computed(operation, inputs, attributes, [Known(shape=PartialShape(()))])[0]


def _tests_first(region: CheckedRegion) -> bool:
    """Return True if the initial condition is computed in the model, such as ``0 < 20`` from a
    source that tests first.
    """
    graph = region.place.graph
    source = next(iter(graph.sources[region.node.id][1:]), None)
    return source is not None and graph.by_id[source.layer].type not in ("Const", "Parameter")


def _depends_on_carried(region: CheckedRegion) -> bool:
    graph = region.body_place.graph
    condition = next(
        entry.internal for entry in region.body.outputs if entry.purpose == "execution_condition"
    )
    carried = {edge.to_layer for edge in region.body.back_edges if edge.from_layer != condition}
    return not dependencies(graph, condition).isdisjoint(carried)


RULES = (
    Rule("LS930", "fused-recurrence", Severity.WARNING, fused_recurrence, runtimes=OPENVINO),
    Rule("LS931", "while-as-do-while", Severity.NOTE, while_as_do_while),
)
