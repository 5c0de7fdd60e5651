"""Rules about products of 8-bit integers, whose sums ONNX Runtime 1.31 computes in 16 bits on some
processors.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import ONNXRUNTIME, Finding, Rule
from loopscope.checks.subject import Subject
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Node, OutputRef
from loopscope.ir.walk import PlacedGraph
from loopscope.native.processor import lacks_vnni

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


RULES = (
    Rule("LS921", "eight-bit-weights", Severity.NOTE, eight_bit_weights, runtimes=ONNXRUNTIME),
)
