"""Advice on loops that a runtime executes slowly, or that some execution providers refuse.

Costs are measured by ``tests/benchmarks/advice.py`` on ONNX Runtime 1.31 and 1.32 and OpenVINO
2026.4, on a CPU with one thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.known import scalar_value
from loopscope.checks.order import order
from loopscope.checks.rule import ONNXRUNTIME, OPENVINO, CheckedRegion, Finding, Rule, Subject
from loopscope.checks.rules.recurrence_patterns import (
    CONCAT,
    COPIES,
    CellPattern,
    last_operation,
    recurrence_of,
)
from loopscope.checks.rules.suspicious import trip_count
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import IF, LOOP, LayerId, Node
from loopscope.ops.declare import Known

_MAX_UNROLLED = 64
"""Largest trip count for which unrolling is advised."""
_MIN_INVARIANT_WORK = 1024
_MIN_INVARIANT_SHARE = 0.05
"""Smallest work, and share of a body's work, for which moving operations out is advised."""
_MAX_CONSTANT_TRIPS = 65_535
"""Largest trip count of a Loop that MIGraphX compiles (onnxruntime, pull request 31978)."""
_PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "Convolution", "Einsum"})
_NO_WORK = frozenset({"Const", "Constant", "Parameter", "Result"})
_RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def known_recurrence(subject: Subject) -> Iterator[Finding]:
    """A loop computes a recurrence that the runtime has an operator for.

    What it does:
        Looks for the cells of LSTM, GRU, a simple RNN and linear attention in loops that read one
        slice per iteration.
    Why it matters:
        One operator reads all steps at once. As a Scan of 256 steps, an LSTM of width 64 takes 4.7
        times as long in ONNX Runtime 1.31 and 6.2 times in OpenVINO 2026.4.
    Example that fails:
        a Scan with the gates of an LSTM in its body
    Example that passes:
        the operator LSTM
    """
    for region in _loops(subject):
        recurrence = recurrence_of(subject, region)
        if recurrence is None:
            continue
        operator = _operator(subject, recurrence)
        if operator:
            yield Finding(
                subject.where(region.place, region.node),
                f"This {region.node.type} computes {recurrence.title} with one step per iteration.",
                found=f"the cell of {recurrence.title}",
                expected=operator,
                advice=f"Export the recurrence as {operator}; an LSTM of 256 steps then ran 4.7 "
                "times as fast in ONNX Runtime 1.31 and 6.2 times in OpenVINO 2026.4.",
            )


def _operator(subject: Subject, recurrence: CellPattern) -> str:
    """Return the operator for a recurrence, or an empty text if the runtime fuses the loop."""
    return recurrence.openvino if subject.is_openvino else recurrence.onnx


def invariant_work(subject: Subject) -> Iterator[Finding]:
    """A body computes in each iteration what does not depend on the iteration.

    What it does:
        Looks for operations of a body whose inputs are constants and invariant inputs, at least one
        of them not constant. Their share of the body's arithmetic is estimated from shapes.
    Why it matters:
        Runtimes do not move such operations before the loop. A Scan of 256 steps that repeats a
        product of two 64 x 64 matrices takes 5 times as long in ONNX Runtime 1.31.
    Example that fails:
        MatMul(context, weights) in the body, where context comes from outside
    Example that passes:
        MatMul(context, weights) before the loop, and its result as input
    """
    for region in _loops(subject):
        trips = subject.trips(region)
        if trips.most is not None and trips.most <= 1:
            continue
        invariant = _invariant_nodes(subject, region)
        if not invariant:
            continue
        total = sum(_work(subject, region, node) for node in region.body_place.graph.nodes)
        work = sum(_work(subject, region, node) for node in invariant)
        if work < _MIN_INVARIANT_WORK or work < _MIN_INVARIANT_SHARE * total:
            continue
        largest = max(invariant, key=lambda node: _work(subject, region, node))
        names = ", ".join(sorted({node.type for node in invariant}))
        yield Finding(
            subject.where(region.body_place, largest),
            f"The body of {region.node.type} {region.place.labels[region.node.id]} computes this "
            "in every iteration, but it does not depend on the iteration.",
            found=f"{names}: {100 * work / total:.0f} % of the body's arithmetic",
            expected="computed once before the loop",
            advice="Move these operations before the loop. A Scan of 256 steps without its "
            "repeated product of matrices ran 5 times as fast in ONNX Runtime 1.31.",
        )


def growing_state(subject: Subject) -> Iterator[Finding]:
    """A carried tensor grows by Concat in each iteration.

    What it does:
        Looks for back edges whose value is a Concat of the carried value with something else.
    Why it matters:
        Each iteration copies everything collected so far: the cost grows with the square of the
        number of iterations. 1,024 iterations of 256 numbers take 23 to 28 times as long as a
        concatenated output in ONNX Runtime 1.31.
    Example that fails:
        rows = Concat(rows, row), carried
    Example that passes:
        row as an output that the loop concatenates
    """
    for region in _loops(subject):
        graph = region.body_place.graph
        for edge in region.body.back_edges:
            node = last_operation(graph, edge.from_layer)
            if node is None or node.type not in CONCAT:
                continue
            operands = [
                last_operation(graph, source.layer)
                for source in graph.sources[node.id]
                if source is not None
            ]
            if all(operand is None or operand.id != edge.to_layer for operand in operands):
                continue
            yield Finding(
                subject.where(region.body_place, node),
                "The carried tensor grows in every iteration, and each iteration copies all of it.",
                found=_growth(subject, region),
                expected="an output that the loop concatenates, or a tensor of the final length",
                advice="Return the new rows as a concatenated output (ONNX: scan output). 1,024 "
                "iterations of 256 numbers then ran 25 times as fast in ONNX Runtime 1.31.",
            )


def _growth(subject: Subject, region: CheckedRegion) -> str:
    trips = subject.trips(region)
    if not trips.is_static:
        return "Concat on a back edge: n iterations copy about n * n / 2 of its rows"
    count = trips.length
    rows = count * (count + 1) // 2
    return f"Concat on a back edge: {count:,} iterations copy {rows:,} times what one adds"


def constant_loop(subject: Subject) -> Iterator[Finding]:
    """A Loop has a constant trip count and a constant true condition.

    What it does:
        Looks for Loops of 2 to 64 iterations whose count and conditions are constants, and whose
        body has no loop or branch.
    Why it matters:
        Such a loop can be unrolled, and its operations are then fused with each other and with
        their surroundings. 8 iterations take 1.5 times as long as 8 copies of the body in ONNX
        Runtime 1.31, and 1.2 times in OpenVINO 2026.4.
    Example that fails:
        trip count 8, condition constant true
    Example that passes:
        8 copies of the body, or a trip count that is an input
    """
    for region in subject.loops:
        count = trip_count(subject, region)
        is_flat = all(not node.bodies for node in region.body_place.graph.nodes)
        if (
            count is not None
            and 2 <= count <= _MAX_UNROLLED
            and is_flat
            and _always_continues(subject, region)
        ):
            yield Finding(
                subject.where(region.place, region.node),
                f"This Loop always runs {count} iterations.",
                found=f"constant trip count {count}, condition constant true",
                expected=f"{count} copies of the body",
                advice="Unroll the loop, so that the runtime can fuse its operations. 8 copies ran "
                "1.5 times as fast as 8 iterations in ONNX Runtime 1.31.",
            )


def _always_continues(subject: Subject, region: CheckedRegion) -> bool:
    """Return True if a Loop starts, and if its body returns true or the condition that it got."""
    starts = subject.outer(region)[1]
    if starts.value is not None and scalar_value(starts) is not True:
        return False
    if starts.value is None and region.place.graph.sources[region.node.id][1] is not None:
        return False
    entry = next(
        (entry for entry in region.body.outputs if entry.purpose == "execution_condition"), None
    )
    if entry is None or scalar_value(subject.parameter(region, entry.internal)) is True:
        return True
    origin = last_operation(region.body_place.graph, entry.internal)
    return origin is not None and any(
        edge.from_layer == entry.internal and edge.to_layer == origin.id
        for edge in region.body.back_edges
    )


def wide_counter(subject: Subject) -> Iterator[Finding]:
    """A body computes 64-bit integers.

    What it does:
        Looks for loops with values of type i64 in their bodies.
    Why it matters:
        OpenVINO's GPU plugin fails on i64 in a body (openvino, issue 35411).
    Example that fails:
        an i64 counter in a body
    Example that passes:
        an i32 counter
    """
    for region in _loops(subject):
        graph = region.body_place.graph
        wide = [
            node
            for node in graph.nodes
            if node.type not in _NO_WORK
            and _output(subject, region, node).element_type is ElementType.I64
        ]
        if wide:
            yield Finding(
                subject.where(region.body_place, wide[0]),
                "The body computes 64-bit integers, on which OpenVINO's GPU plugin fails.",
                found=f"i64 in {len(wide)} operation{'s' * (len(wide) > 1)} of the body",
                expected="i32",
                advice="Use i32 counters if the model shall run on a GPU; the CPU accepts both.",
            )


def unbounded_trips(subject: Subject) -> Iterator[Finding]:
    """A Loop has no constant trip count up to 65,535.

    What it does:
        Looks for ONNX Loops whose trip count is computed, missing, or larger than 65,535.
    Why it matters:
        ONNX Runtime's execution provider MIGraphX compiles only Loops with a constant trip count up
        to 65,535; other Loops run on the CPU.
    Example that fails:
        a trip count that is an input
    Example that passes:
        a constant trip count of 100
    """
    for region in subject.loops:
        count = scalar_value(subject.outer(region)[0])
        if count is None or not 0 <= int(count) <= _MAX_CONSTANT_TRIPS:
            yield Finding(
                subject.where(region.place, region.node, "input 0"),
                "ONNX Runtime's MIGraphX does not compile this Loop; it runs on the CPU.",
                found="a computed trip count" if count is None else f"trip count {int(count):,}",
                expected=f"a constant trip count up to {_MAX_CONSTANT_TRIPS:,}",
                advice="Set a constant trip count if the model shall run on MIGraphX.",
            )


def unfused_surroundings(subject: Subject) -> Iterator[Finding]:
    """A body reads a value between two operations that ONNX Runtime would fuse.

    What it does:
        Looks for MatMul followed by Add whose product is also an input of a loop or branch.
    Why it matters:
        ONNX Runtime fuses MatMul and Add to Gemm only if nothing else reads the product. Eight such
        pairs take 1.2 to 1.4 times as long in ONNX Runtime 1.31.
    Example that fails:
        Add(MatMul(x, weights), bias), where a body reads the product
    Example that passes:
        a body that reads the sum
    """
    for place in subject.places:
        graph = place.graph
        readers: dict[LayerId, list[Node]] = {}
        for node in graph.nodes:
            for source in graph.sources[node.id]:
                if source is not None:
                    readers.setdefault(source.layer, []).append(node)
        for node in graph.nodes:
            nodes = readers.get(node.id, ())
            if (
                node.type == "MatMul"
                and any(reader.type == "Add" for reader in nodes)
                and any(reader.bodies for reader in nodes)
                and all(reader.bodies or reader.type == "Add" for reader in nodes)
            ):
                yield Finding(
                    subject.where(place, node),
                    "A body reads this product, so that ONNX Runtime cannot fuse it with the Add.",
                    found="a product that a body and an Add read",
                    expected="a body that reads the sum",
                    advice="Let the body read the sum and subtract the bias, or compute the "
                    "product there. Eight fused pairs ran 1.2 to 1.4 times as fast.",
                )


def _loops(subject: Subject) -> Iterator[CheckedRegion]:
    """Yield the bodies that iterate and that can run."""
    for region in subject.regions:
        if (
            region.node.type != IF
            and (region.node.type == LOOP or region.body.inputs)
            and region.body_place.address not in subject.never_run
        ):
            yield region


def _invariant_nodes(subject: Subject, region: CheckedRegion) -> list[Node]:
    """Return the operations of a body whose value is the same in all iterations, without those
    that are computed from constants only: a runtime folds them.
    """
    graph = region.body_place.graph
    varying = {
        *region.per_iteration_parameters,
        *(edge.to_layer for edge in region.body.back_edges),
    }
    constant = {node.id for node in graph.nodes if node.type in ("Const", "Constant")}
    invariant: list[Node] = []
    for layer in order(graph).layers:
        node = graph.by_id[layer]
        if node.type in _NO_WORK or layer in varying:
            continue
        sources = [source.layer for source in graph.sources[layer] if source is not None]
        if node.bodies or node.type in _RANDOM or any(source in varying for source in sources):
            varying.add(layer)
        elif all(source in constant for source in sources):
            constant.add(layer)
        elif subject.operation(node) is None:
            varying.add(layer)
        else:
            invariant.append(node)
    return [node for node in invariant if node.type not in COPIES]


def _work(subject: Subject, region: CheckedRegion, node: Node) -> float:
    """Return an estimate of a node's arithmetic: a number per output element, times the contracted
    length of a product. Unknown lengths count as 1.
    """
    if node.type in _NO_WORK or node.type in COPIES:
        return 0.0
    elements = _elements(_output(subject, region, node))
    if node.type not in _PRODUCTS:
        return elements
    inputs = subject.inputs(region.body_place, node)
    sizes = [_elements(known) for known in inputs[:2]]
    # For C = A B, the contracted length is sqrt(|A| |B| / |C|), whatever is transposed.
    return 2.0 * elements * math.sqrt(max(1.0, math.prod(sizes) / elements))


def _output(subject: Subject, region: CheckedRegion, node: Node) -> Known:
    return subject.propagated.output(region.body_place.address, node.id, 0)


def _elements(known: Known) -> float:
    dimensions = known.shape.dimensions or ()
    return float(
        math.prod(
            max(1, dimension.length if dimension.is_static else 1) for dimension in dimensions
        )
    )


RULES = (
    Rule("LS960", "known-recurrence", Severity.NOTE, known_recurrence),
    Rule("LS961", "invariant-work", Severity.NOTE, invariant_work),
    Rule("LS962", "growing-state", Severity.NOTE, growing_state),
    Rule("LS963", "constant-loop", Severity.NOTE, constant_loop),
    Rule("LS964", "wide-counter", Severity.NOTE, wide_counter, runtimes=OPENVINO, is_habit=True),
    Rule(
        "LS965",
        "unbounded-trips",
        Severity.NOTE,
        unbounded_trips,
        runtimes=ONNXRUNTIME,
        is_habit=True,
    ),
    Rule(
        "LS966",
        "unfused-surroundings",
        Severity.NOTE,
        unfused_surroundings,
        runtimes=ONNXRUNTIME,
    ),
)
