"""The rule about matrix products that OpenVINO 2026.4's CPU computes differently."""

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
    """A square constant is multiplied both as it is and transposed.

    What it does:
        Looks for MatMul layers whose second operand is the same square matrix, or one with the same
        elements, with different transpose_b. Weights that are passed into bodies are included.
    Why it matters:
        OpenVINO's CPU packs equal weights once for all products, and confuses a square matrix with
        its transpose. One of the products is silently wrong; this always happens in f32.
    Example that fails:
        x times w, and the result times w transposed, with a constant w of 4 by 4
    Example that passes:
        the same with a Transpose and w as the first operand of one of the products
    """
    by_shape: dict[tuple[object, tuple[int, ...]], list[_Product]] = {}
    for product in _with_square_weights(subject):
        by_shape.setdefault((product.weights.element_type, product.weights.shape), []).append(
            product
        )
    for products in by_shape.values():
        yield from _wrong_products(subject, products)


def _wrong_products(subject: Subject, products: Sequence[_Product]) -> Iterator[Finding]:
    plain, transposed = (
        [product for product in products if product.is_turned is flag] for flag in (False, True)
    )
    for product in transposed:
        untransposed = next(
            (candidate for candidate in plain if candidate.weights.data == product.weights.data),
            None,
        )
        if untransposed is not None:
            yield Finding(
                subject.where(product.place, product.node),
                f"It multiplies by the transposed square weights of {untransposed.node.name!r}: "
                "OpenVINO's CPU packs them once, and one product is wrong.",
                found="transpose_b is true in this product and false in the other",
                expected="the same transpose_b, or the weights as the first operand of one product",
                advice="Loopscope computes both correctly; for OpenVINO write one product as the "
                "Transpose of the transposed product.",
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
