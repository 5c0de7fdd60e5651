"""Rules about matrix products that OpenVINO 2026.4's CPU computes differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import OPENVINO, Finding, Rule
from loopscope.checks.subject import Subject
from loopscope.ir.constant import Constant
from loopscope.ir.model import Node
from loopscope.ir.walk import PlacedGraph

_MATMUL, _TRUE = "MatMul", ("true", "1")


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    place: PlacedGraph
    node: Node
    weights: Constant

    @property
    def is_turned(self) -> bool:
        return str(self.node.attributes.get("transpose_b", "false")).lower() in _TRUE


def square_weights_turned(subject: Subject) -> Iterator[Finding]:
    """Products with a square constant and with what it is turned (transposed).

    What it does:
        Looks for MatMul layers whose second operand is the same square matrix, or one with the same elements, of which some have
        transpose_b and others have not. Weights that are handed into bodies count too.
    Why it matters:
        OpenVINO's CPU packs weights once for all products that have the same ones, and takes a square matrix for what it is turned:
        one of the products is wrong, without a word, always where it computes in f32.
    Example that fails:
        x times w, and that times w turned, with a constant w of 4 by 4
    Example that passes:
        the same with a Transpose and w as the first operand of one of the two
    """
    by_shape: dict[tuple[object, tuple[int, ...]], list[_Product]] = {}
    for one in _with_square_weights(subject):
        by_shape.setdefault((one.weights.element_type, one.weights.shape), []).append(one)
    for alike in by_shape.values():
        yield from _wrong(subject, alike)


def _wrong(subject: Subject, alike: Sequence[_Product]) -> Iterator[Finding]:
    plain, turned = ([one for one in alike if one.is_turned is wanted] for wanted in (False, True))
    for one in turned:
        other = next((each for each in plain if each.weights.data == one.weights.data), None)
        if other is not None:
            yield Finding(
                subject.where(one.place, one.node),
                f"It multiplies by the square weights of {other.node.name!r} turned: OpenVINO's CPU packs them once, and one is wrong.",
                found="transpose_b is true here and false there",
                expected="the same transpose_b, or the weights as the first operand of one of them",
                advice="Here both are as they are written; for OpenVINO write one of them as a Transpose of the turned product.",
            )


def _with_square_weights(subject: Subject) -> Iterator[_Product]:
    for place, node in subject.nodes():
        if node.type != _MATMUL:
            continue
        second = next(iter(place.graph.sources.get(node.id, ())[1:2]), None)
        weights = subject.constant(place, second)
        if (
            weights is not None
            and len(weights.shape) == 2
            and weights.shape[0] == weights.shape[1] > 1
        ):
            yield _Product(place, node, weights)


RULES = (
    Rule(
        "LS919", "square-weights-turned", Severity.WARNING, square_weights_turned, runtimes=OPENVINO
    ),
)
