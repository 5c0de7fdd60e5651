"""Rules about models that ONNX Runtime 1.31 or 1.32 computes differently.

They concern fused products with vectors, sums of 8-bit products (in 16 bits on some processors),
and ONNX bodies with an unchanged input as output.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import backwards
from loopscope.checks.rule import ONNXRUNTIME, CheckedRegion, Finding, Rule, Subject
from loopscope.checks.rules.onnx_loading import captures
from loopscope.ir.address import PlacedGraph
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId, Node, OutputRef
from loopscope.ir.shape import static

_TRANSPARENT_TYPES = frozenset({"Cast", "Div", "Identity", "Mul"})
"""Operations that ONNX Runtime fuses too (Mul and Div with a constant operand) or moves away."""
_FUSED_TYPES = frozenset({ElementType.F32, ElementType.F64})
_VECTOR = 1


def transposed_matrix_times_vector(subject: Subject) -> Iterator[Finding]:
    """A matrix is transposed and multiplied by a vector.

    What it does:
        Looks in ONNX models for MatMul of f32 or f64 with a vector as second operand. The first
        operand is a Transpose of the last two axes, possibly cast or scaled. FusedMatMul of
        com.microsoft with transA is included. A transposed constant is harmless, and so is a
        transposed matrix that is an output of its graph.
    Why it matters:
        ONNX Runtime 1.31 and 1.32 replace both nodes with a FusedMatMul, which reads the matrix as
        if it were not transposed.
    Example that fails:
        y = MatMul (Transpose <perm = [1, 0]> (matrix), vector)
    Example that passes:
        y = MatMul (vector, matrix)
    """
    if subject.is_openvino:
        return
    for place, node in subject.nodes():
        if node.type not in ("MatMul", "FusedMatMul"):
            continue
        first, second = (*subject.inputs(place, node), None, None)[:2]
        if (
            first is None
            or second is None
            or second.shape.dimensions is None
            or len(second.shape.dimensions) != _VECTOR
        ):
            continue
        lengths = (first.shape.dimensions or ())[-2:]
        if static(1) in lengths or second.element_type not in _FUSED_TYPES:
            continue
        if _is_fused(node) or (
            node.type == "MatMul"
            and _is_transposed(subject, place, place.graph.sources[node.id][0])
        ):
            yield Finding(
                subject.where(place, node),
                "ONNX Runtime 1.31 and 1.32 multiply the matrix by the vector as if it were not "
                "transposed: the numbers are wrong.",
                found="a transposed matrix and a vector",
                expected="MatMul (vector, matrix), without the Transpose",
                advice="Loopscope follows the ONNX specification; for ONNX Runtime exchange the "
                "operands, or disable graph optimizations.",
            )


def _is_fused(node: Node) -> bool:
    return node.type == "FusedMatMul" and node.attributes.get("transA") == 1


def _is_transposed(subject: Subject, place: PlacedGraph, source: OutputRef | None) -> bool:
    """Return True if a tensor comes from a Transpose of the last two axes that ONNX Runtime
    fuses.
    """
    results = {result.id for result in place.graph.results}
    for tensor, node in backwards(place.graph, source):
        if any(layer in results for layer, _ in place.graph.consumers.get(tensor, ())):
            return False
        if node.type == "Transpose":
            return (
                _swaps_last_axes(node)
                and subject.constant(place, place.graph.sources[node.id][0]) is None
            )
        scales = place.graph.sources[node.id][1:2] if node.type in ("Mul", "Div") else ()
        if node.type not in _TRANSPARENT_TYPES or any(
            subject.constant(place, scale) is None for scale in scales
        ):
            return False
    return False


def _swaps_last_axes(node: Node) -> bool:
    axes = node.attributes.get("perm")
    if axes is None:
        rank = node.outputs[0].shape.dimensions
        return rank is not None and len(rank) == 2  # without perm, all axes are reversed
    if not isinstance(axes, tuple):
        return False
    last = len(axes) - 1
    return last > 0 and axes == (*range(last - 1), last, last - 1)


TRANSPOSED_VECTOR_RULES = (
    Rule(
        "LS924",
        "transposed-matrix-times-vector",
        Severity.WARNING,
        transposed_matrix_times_vector,
        runtimes=ONNXRUNTIME,
    ),
)


_WEIGHTS = {
    "MatMulInteger": (1,),
    "ConvInteger": (1,),
    "QLinearMatMul": (3,),
    "QLinearConv": (3,),
    "MatMulIntegerToFloat": (1,),
    "DynamicQuantizeMatMul": (1,),
    "DynamicQuantizeLSTM": (1, 2),
    "QAttention": (1,),
    "QGemm": (3,),
}
"""Input indices of the weights, by operation on bytes."""
_FUSED = frozenset({"MatMul", "Gemm", "Conv"})
"""Operations that become operations on bytes if both operands come from a DequantizeLinear."""
_DEQUANTIZE = "DequantizeLinear"
SEVEN_BITS = (-64, 63)
"""Range of weights for which two products with a u8 fit in 16 bits: 2 x 255 x 64 = 32640."""


def eight_bit_weights(subject: Subject) -> Iterator[Finding]:
    """A product of 8-bit integers has signed weights that use all 8 bits.

    What it does:
        Looks for constant i8 weights below -64 or above 63 in MatMulInteger, ConvInteger,
        QLinearMatMul, QLinearConv and related operations of com.microsoft. MatMul, Gemm and Conv of
        DequantizeLinear outputs are included, because ONNX Runtime replaces them with such
        operations.
    Why it matters:
        On x64 processors without VNNI, ONNX Runtime adds two products of u8 and i8 in 16 bits: 2 x
        255 x 127 silently becomes 32767. The same file returns other numbers on another machine.
        The finding is a warning if this processor has no VNNI.
    Example that fails:
        MatMulInteger of u8 data and an i8 constant that contains 127
    Example that passes:
        weights from -64 to 63, as the quantizer writes them with reduce_range
    """
    if subject.is_openvino:
        return
    lacks_instructions = lacks_vnni()
    machine, severity = (
        ("This processor has no VNNI:", Severity.WARNING)
        if lacks_instructions
        else ("On x64 without VNNI,", None)
    )
    for place, node in subject.nodes():
        for lower, upper in filter(
            None, (_range(subject, place, source) for source in weights(place, node))
        ):
            if lower < SEVEN_BITS[0] or upper > SEVEN_BITS[1]:
                yield Finding(
                    subject.where(place, node),
                    f"{machine} ONNX Runtime adds pairs of products in 16 bits, which saturate at "
                    "32767 or -32768.",
                    found=f"weights from {lower} to {upper}",
                    expected=f"weights from {SEVEN_BITS[0]} to {SEVEN_BITS[1]}",
                    advice="Loopscope computes exact sums; for such processors quantize with "
                    "reduce_range=True, or with u8 weights.",
                    severity=severity,
                )


_PROCESSOR_FACTS = Path("/proc/cpuinfo")
_VNNI = frozenset({"avx512_vnni", "avx_vnni"})


@lru_cache(maxsize=1)
def lacks_vnni() -> bool:
    """Return True if this is an x64 processor without VNNI instructions; False if unknown."""
    try:
        lines = _PROCESSOR_FACTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return lacks_vnni_of(platform.machine(), lines)


def lacks_vnni_of(machine: str, lines: list[str]) -> bool:
    """Return True if this architecture and these lines of /proc/cpuinfo show x64 without VNNI."""
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return machine.lower() in ("x86_64", "amd64") and bool(flags) and _VNNI.isdisjoint(flags)


def weights(place: PlacedGraph, node: Node) -> Iterator[OutputRef]:
    """Yield the operands of a node that are weights of a product of bytes."""
    sources = place.graph.sources.get(node.id, ())
    if node.type in _FUSED:
        producers = [_producer(place, source) for source in sources[:2]]
        if len(producers) == 2 and all(
            producer is not None and producer.type == _DEQUANTIZE for producer in producers
        ):
            inner = place.graph.sources.get(producers[1].id, ()) if producers[1] is not None else ()
            yield from (source for source in inner[:1] if source is not None)
    else:
        weight_sources = (
            sources[index] for index in _WEIGHTS.get(node.type, ()) if index < len(sources)
        )
        yield from (source for source in weight_sources if source is not None)


def _producer(place: PlacedGraph, source: OutputRef | None) -> Node | None:
    return None if source is None else place.graph.by_id.get(source.layer)


def _range(subject: Subject, place: PlacedGraph, source: OutputRef) -> tuple[int, int] | None:
    """Return the minimum and maximum of constant i8 weights, or None for anything else and for an
    empty constant.
    """
    constant = subject.constant(place, source)
    if (
        constant is None
        or constant.element_type is not ElementType.I8
        or not constant.elements
        or not constant.is_kept
    ):
        return None
    array = constant.array()
    return int(array.min()), int(array.max())


BYTE_WEIGHTS_RULES = (
    Rule("LS921", "eight-bit-weights", Severity.NOTE, eight_bit_weights, runtimes=ONNXRUNTIME),
)


def given_back_by_a_scan(subject: Subject) -> Iterator[Finding]:
    """An output of a Scan's body is an unchanged input of the body.

    What it does:
        Looks for outputs of ONNX Scan bodies that no node computes: a state that is passed on, two
        states that are exchanged, or a slice.
    Why it matters:
        ONNX Runtime silently fills such an output with the contents of memory: zeros, or any
        numbers.
    Example that fails:
        body = step (a, b, x) => (b, a)
    Example that passes:
        the same with next_a = Identity (b), next_b = Identity (a) and => (next_a, next_b)
    """
    for region in subject.regions if not subject.is_openvino else ():
        if region.node.type != "Scan":
            continue
        for parameter, result in _unchanged_outputs(region):
            yield _finding(subject, region, result, parameter, "ONNX Runtime does not write it")


def iteration_number_given_back(subject: Subject) -> Iterator[Finding]:
    """An output of a Loop's body is the iteration number itself.

    What it does:
        Looks for outputs of ONNX Loop bodies that are the unchanged iteration number, carried or
        concatenated.
    Why it matters:
        ONNX Runtime counts in that tensor. It carries 3 if the last iteration was number 2, and
        concatenates 3, 3, 3 instead of 0, 1, 2.
    Example that fails:
        body = step (i, going, last) => (going, i)
    Example that passes:
        the same with number = Identity (i) and => (going, number)
    """
    for region in subject.loops if not subject.is_openvino else ():
        counters = {entry.internal for entry in region.body.inputs if entry.is_iteration_number}
        for parameter, result in _unchanged_outputs(region):
            if parameter in counters:
                yield _finding(
                    subject,
                    region,
                    result,
                    parameter,
                    "ONNX Runtime returns the number of a later iteration",
                )


def _unchanged_outputs(region: CheckedRegion) -> Iterator[tuple[LayerId, LayerId]]:
    """Yield each body input that is an output of the body without a node between them, with its
    Result.
    """
    graph = region.body.graph
    inputs = {parameter.id for parameter in graph.parameters} - captures(region.body_place)
    for result in graph.results:
        source = (graph.sources.get(result.id) or (None,))[0]
        if source is not None and source.layer in inputs:
            yield source.layer, result.id


def _finding(
    subject: Subject, region: CheckedRegion, result: LayerId, parameter: LayerId, consequence: str
) -> Finding:
    graph = region.body.graph
    name = graph.by_id[parameter].name
    output = next(number for number, node in enumerate(graph.results) if node.id == result)
    return Finding(
        subject.where(region.place, region.node),
        f"Output {output} of the body is its unchanged input {name}: {consequence}.",
        found=f"{name} itself",
        expected=f"a node between them, such as Identity ({name})",
        advice="Loopscope follows the ONNX specification; for ONNX Runtime insert an Identity.",
    )


GIVEN_BACK_RULES = (
    Rule(
        "LS922",
        "given-back-by-a-scan",
        Severity.WARNING,
        given_back_by_a_scan,
        runtimes=ONNXRUNTIME,
    ),
    Rule(
        "LS923",
        "iteration-number-given-back",
        Severity.WARNING,
        iteration_number_given_back,
        runtimes=ONNXRUNTIME,
    ),
)
