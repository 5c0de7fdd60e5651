"""The rule about products with vectors that ONNX Runtime 1.31 and 1.32 fuse incorrectly."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import backwards
from loopscope.checks.rule import ONNXRUNTIME, Finding, Rule
from loopscope.checks.subject import Subject
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Node, OutputRef
from loopscope.ir.shape import static
from loopscope.ir.walk import PlacedGraph

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


RULES = (
    Rule(
        "LS924",
        "transposed-matrix-times-vector",
        Severity.WARNING,
        transposed_matrix_times_vector,
        runtimes=ONNXRUNTIME,
    ),
)
