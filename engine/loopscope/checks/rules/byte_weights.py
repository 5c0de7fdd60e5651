"""Rules about products of 8-bit integers, whose sums ONNX Runtime 1.31 keeps in 16 bits on some
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
"""Which operands of an operation on bytes are its weights."""
_FUSED = frozenset({"MatMul", "Gemm", "Conv"})
"""Becomes an operation on bytes where both operands come from a DequantizeLinear."""
_DEQUANTIZE = "DequantizeLinear"
SEVEN_BITS = (-64, 63)
"""Two products of these with a u8 fit in 16 bits: 2 x 255 x 64 = 32640."""


def eight_bit_weights(subject: Subject) -> Iterator[Finding]:
    """A product of 8-bit integers has signed weights of all 8 bits.

    What it does:
        Looks for constant i8 weights below -64 or above 63 in MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv and their kin of
        com.microsoft, and in MatMul, Gemm and Conv between values from DequantizeLinear, which ONNX Runtime makes such operations of.
    Why it matters:
        On x64 processors without VNNI, ONNX Runtime adds two products of u8 and i8 in 16 bits: 2 x 255 x 127 becomes 32767, without
        a word. The same file gives other numbers on another machine. It is a warning where this processor has no VNNI.
    Example that fails:
        MatMulInteger of u8 data and a constant of i8 that holds 127
    Example that passes:
        weights from -64 to 63, as the quantizer makes them with reduce_range
    """
    if subject.is_openvino:
        return
    lacks = lacks_vnni()
    machine, severity = (
        ("This processor has no VNNI:", Severity.WARNING)
        if lacks
        else ("On x64 without VNNI,", None)
    )
    for place, node in subject.nodes():
        for least, most in filter(
            None, (_range(subject, place, source) for source in weights(place, node))
        ):
            if least < SEVEN_BITS[0] or most > SEVEN_BITS[1]:
                yield Finding(
                    subject.where(place, node),
                    f"{machine} ONNX Runtime adds pairs of its products in 16 bits, where they stop at 32767 or -32768.",
                    found=f"weights from {least} to {most}",
                    expected=f"weights from {SEVEN_BITS[0]} to {SEVEN_BITS[1]}",
                    advice="Here the sums are exact; for such processors quantize with reduce_range=True, or with u8 weights.",
                    severity=severity,
                )


def weights(place: PlacedGraph, node: Node) -> Iterator[OutputRef]:
    """The operands of a node that are weights of a product of bytes."""
    sources = place.graph.sources.get(node.id, ())
    if node.type in _FUSED:
        made = [_maker(place, source) for source in sources[:2]]
        if len(made) == 2 and all(one is not None and one.type == _DEQUANTIZE for one in made):
            inner = place.graph.sources.get(made[1].id, ()) if made[1] is not None else ()
            yield from (source for source in inner[:1] if source is not None)
    else:
        found = (sources[index] for index in _WEIGHTS.get(node.type, ()) if index < len(sources))
        yield from (source for source in found if source is not None)


def _maker(place: PlacedGraph, source: OutputRef | None) -> Node | None:
    return None if source is None else place.graph.by_id.get(source.layer)


def _range(subject: Subject, place: PlacedGraph, source: OutputRef) -> tuple[int, int] | None:
    """The least and the greatest of constant i8 weights; None for anything else, and for none at
    all.
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
